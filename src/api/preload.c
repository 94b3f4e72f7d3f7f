#include "api/preload.h"
#include "base/own_directory.h"
#include "observe/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGENT_FILE "libfgprof-agent.so"
#define PRELOAD "LD_PRELOAD="
#define SEPARATORS " :" /* ld.so(8): a path can't have them */
#define VARIABLES_MAX 4

extern char **environ;

/* Beside us, as where it was built, or where libraries are installed. */
static bool find_agent(char path[PATH_MAX])
{
    static const char *const directories[] = {"", "/../lib", "/../" FGPROF_LIBRARIES};
    char own[PATH_MAX], name[PATH_MAX];
    bool has_own = own_directory_find(own);
    for (size_t i = 0; has_own && i < sizeof directories / sizeof *directories; i++) {
        int length = snprintf(name, sizeof name, "%s%s/" AGENT_FILE, own, directories[i]);
        if (length < PATH_MAX && access(name, R_OK) == 0 && realpath(name, path))
            return true;
    }
    return access(FGPROF_LIBRARIES_FULL "/" AGENT_FILE, R_OK) == 0 &&
           realpath(FGPROF_LIBRARIES_FULL "/" AGENT_FILE, path);
}

/* The agent is the first, so that it is asked before another allocator that is preloaded. */
static int make_variables(const char *path, const struct object_options *objects, bool has_children,
                          char *variables[VARIABLES_MAX])
{
    const char *others = getenv("LD_PRELOAD");
    bool has_others = others && *others;
    int lengths[VARIABLES_MAX] = {
        asprintf(&variables[0], PRELOAD "%s%s%s", path, has_others ? ":" : "",
                 has_others ? others : ""),
        asprintf(&variables[1], "FGPROF_AGENT_HEAP_RATE=%" PRIu64,
                 objects->kinds[OBJECT_ALLOCATION] ? objects->heap_rate : 0),
        asprintf(&variables[2], "FGPROF_AGENT_WANTED=%u", agent_wants(objects)),
        asprintf(&variables[3], "FGPROF_AGENT_CHILDREN=%d", has_children),
    };
    int err = 0;
    for (size_t i = 0; i < VARIABLES_MAX; i++) {
        if (lengths[i] < 0) {
            variables[i] = NULL;
            err = -ENOMEM;
        }
    }
    return err;
}

/* Whether one of the variables stands in place of this one. */
static bool is_replaced(const char *variable, char *const variables[VARIABLES_MAX])
{
    for (size_t i = 0; i < VARIABLES_MAX; i++) {
        size_t length = strcspn(variables[i], "=") + 1;
        if (strncmp(variable, variables[i], length) == 0)
            return true;
    }
    return false;
}

/* The calling process's, with the variables, which it takes over. */
static int make_environment(char *variables[VARIABLES_MAX], char **environment)
{
    size_t count = 0;
    for (size_t i = 0; i < VARIABLES_MAX; i++)
        environment[count++] = variables[i];
    for (char **at = environ; at && *at; at++) {
        if (is_replaced(*at, variables))
            continue;
        environment[count] = strdup(*at);
        if (!environment[count++])
            return -ENOMEM;
    }
    return 0;
}

void preload_free(char **environment)
{
    for (char **at = environment; at && *at; at++)
        free(*at);
    free(environment);
}

static size_t count_variables(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

int preload_environment(const struct object_options *objects, bool has_children,
                        char ***ret_environment)
{
    char path[PATH_MAX], *variables[VARIABLES_MAX];
    if (!find_agent(path))
        return -ELIBACC;
    if (strpbrk(path, SEPARATORS))
        return -ELIBBAD;
    char **environment = calloc(count_variables() + VARIABLES_MAX + 1, sizeof *environment);
    if (!environment)
        return -ENOMEM;
    int err = make_variables(path, objects, has_children, variables);
    if (err) {
        for (size_t i = 0; i < VARIABLES_MAX; i++)
            free(variables[i]);
    } else {
        err = make_environment(variables, environment);
    }
    if (err)
        preload_free(environment);
    else
        *ret_environment = environment;
    return err;
}
