/* Reads the hierarchies below CGROUP_ROOT (cgroups(7)): a single one of version 2, or several of
 * version 1, which may contain the same group. */
#include "cli/cgroup.h"
#include "base/starter.h"
#include "cli/options/values.h"
#include "cli/say.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A container's id has 64 hexadecimal digits; fewer could be part of another name. */
#define CONTAINER_ID_MIN 8

struct search {
    enum cgroup_by by;
    const char *name;
    pid_t **pids;
    size_t *count;
    bool was_found;
};

/* Not this profiler, nor a helper process of any profiler. */
static bool is_wanted(const struct search *search, pid_t pid)
{
    char name[64];
    fgprof_process_name(pid, name, sizeof name);
    return pid != getpid() && !is_helper_name(name) &&
           !id_is_there(*search->pids, *search->count, pid);
}

/* Processes that are not visible in our PID namespace are 0. Returns false if memory is short. */
static bool read_processes(const struct search *search, const char *directory)
{
    char *path;
    int pid;
    bool ok = true;
    if (asprintf(&path, "%s/cgroup.procs", directory) < 0)
        return false;
    FILE *file = fopen(path, "re");
    free(path);
    while (file && ok && fscanf(file, "%d", &pid) == 1) {
        if (pid > 0 && is_wanted(search, pid))
            ok = id_add(search->pids, search->count, pid);
    }
    if (file)
        fclose(file);
    return ok;
}

/* "redis" is the unit "redis.service". */
static bool is_unit(const char *directory, const char *name)
{
    size_t length = strlen(name);
    return strncmp(directory, name, length) == 0 &&
           (!directory[length] || strcmp(directory + length, ".service") == 0);
}

/* "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID.scope" or just the id. */
static bool is_container(const char *directory, const char *id)
{
    const char *at = strstr(directory, id);
    return at && (at == directory || at[-1] == '-');
}

static bool is_sought(const struct search *search, const FTSENT *entry)
{
    switch (search->by) {
    case CGROUP_BY_PATH:
        return entry->fts_level == FTS_ROOTLEVEL;
    case CGROUP_BY_UNIT:
        return is_unit(entry->fts_name, search->name);
    case CGROUP_BY_CONTAINER:
        return is_container(entry->fts_name, search->name);
    }
    return false;
}

/* fts_number: whether the folder is in a group that is sought. */
static bool visit(struct search *search, FTSENT *entry)
{
    bool is_below = entry->fts_level > FTS_ROOTLEVEL && entry->fts_parent->fts_number;
    if (entry->fts_info != FTS_D)
        return true;
    entry->fts_number = is_below || is_sought(search, entry);
    search->was_found |= entry->fts_number != 0;
    return !entry->fts_number || read_processes(search, entry->fts_path);
}

static bool walk(struct search *search, const char *from)
{
    char *const paths[] = {(char *)from, NULL};
    FTSENT *entry;
    bool ok = true;
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    while (walk && ok && (entry = fts_read(walk)))
        ok = visit(search, entry);
    if (walk)
        fts_close(walk);
    return ok && walk;
}

/* The path in each hierarchy: of version 2, or below a folder for each of version 1. */
static bool walk_path(struct search *search)
{
    const char *name = search->name + strspn(search->name, "/");
    char *path;
    bool is_whole = strncmp(search->name, CGROUP_ROOT, sizeof CGROUP_ROOT - 1) == 0;
    if (is_whole)
        return walk(search, search->name);
    static const char *const roots[] = {CGROUP_ROOT, CGROUP_ROOT "/unified", CGROUP_ROOT "/systemd",
                                        CGROUP_ROOT "/pids"};
    bool ok = true;
    for (size_t i = 0; i < sizeof roots / sizeof *roots && ok; i++) {
        ok = asprintf(&path, "%s/%s", roots[i], name) >= 0;
        if (ok) {
            ok = walk(search, path);
            free(path);
        }
    }
    return ok;
}

static bool complain_of(const struct search *search)
{
    static const char *const what[] = {[CGROUP_BY_PATH] = "control group",
                                       [CGROUP_BY_UNIT] = "unit",
                                       [CGROUP_BY_CONTAINER] = "container"};
    return say(search->was_found ? "%s %s has no process to sample here"
                                 : "there is no %s %s below " CGROUP_ROOT,
               what[search->by], search->name);
}

bool find_cgroup_processes(enum cgroup_by by, const char *name, pid_t **ret_pids, size_t *ret_count)
{
    struct search search = {.by = by, .name = name, .pids = ret_pids, .count = ret_count};
    *ret_pids = NULL;
    *ret_count = 0;
    if (by == CGROUP_BY_CONTAINER && strlen(name) < CONTAINER_ID_MIN)
        return say("container id %s is too short: give %d characters or more", name,
                   CONTAINER_ID_MIN);
    if (!(by == CGROUP_BY_PATH ? walk_path(&search) : walk(&search, CGROUP_ROOT)))
        return say("can't read " CGROUP_ROOT ": %s", strerror(errno));
    return *ret_count || complain_of(&search);
}
