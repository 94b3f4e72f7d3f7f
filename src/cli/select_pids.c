#include "cli/select_pids.h"
#include "base/procfs_file.h"
#include "cli/cgroup.h"
#include "cli/options/values.h"
#include "cli/say.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_LENGTH_MAX 15 /* the kernel's TASK_COMM_LEN, less the NUL */
#define LISTED_MAX 20
#define COMMAND_LINE_BYTES 61

static bool is_id(const char *word)
{
    return *word && !word[strspn(word, "0123456789,")];
}

int find_by_name(const char *name, pid_t **ret_pids, size_t *ret_count)
{
    char cut[NAME_LENGTH_MAX + 3];
    bool is_long = strlen(name) > NAME_LENGTH_MAX && !strpbrk(name, "^$.*+?()[]{}|\\");
    snprintf(cut, sizeof cut, "^%.*s$", NAME_LENGTH_MAX, name);
    return fgprof_find_processes(is_long ? cut : name, ret_pids, ret_count);
}

bool is_target(const char *word)
{
    pid_t *pids = NULL;
    size_t count = 0;
    if (is_id(word))
        return true;
    bool is_found = *word && !find_by_name(word, &pids, &count) && count;
    free(pids);
    return is_found;
}

/* Lists the processes whose name matches, as pgrep(1) does. A name longer than the kernel keeps
 * matches the part that it keeps. The caller frees *ret_pids. Returns whether there are any; if
 * not, prints the reason on stderr. */
static bool find_named_processes(const char *name, pid_t **ret_pids, size_t *ret_count)
{
    int err = find_by_name(name, ret_pids, ret_count);
    if (err == -EINVAL)
        regex_check("name", name);
    else if (err)
        say("processes can't be listed: %s", strerror(-err));
    else if (!*ret_count)
        say("no process's name matches '%s'", name);
    return !err && *ret_count;
}

/* If only one of the processes has exactly this name, it becomes the only one. */
static void prefer_whole_name(const char *name, pid_t *pids, size_t *count)
{
    char known[64];
    size_t exact = 0, last = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!fgprof_process_name(pids[i], known, sizeof known) || strcmp(known, name) != 0)
            continue;
        exact++;
        last = i;
    }
    if (exact != 1)
        return;
    pids[0] = pids[last];
    *count = 1;
}

/* Reads the beginning of the process's command line, or its name if it has none. */
static void read_command_line(pid_t pid, char line[COMMAND_LINE_BYTES])
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    ssize_t bytes = procfs_read(AT_FDCWD, path, line, COMMAND_LINE_BYTES);
    for (ssize_t i = 0; i + 1 < bytes; i++)
        line[i] = line[i] ? line[i] : ' ';
    /* Programs that change their title leave what they do not need as spaces. */
    while (bytes > 0 && (!line[bytes - 1] || line[bytes - 1] == ' '))
        bytes--;
    line[bytes > 0 ? bytes : 0] = '\0';
    if (!*line)
        fgprof_process_name(pid, line, COMMAND_LINE_BYTES);
}

static int by_id(const void *a, const void *b)
{
    return ORDER(*(const pid_t *)a, *(const pid_t *)b);
}

static void list(const char *name, pid_t *pids, size_t count)
{
    char line[COMMAND_LINE_BYTES];
    say("%zu processes match '%s': give the id of one, or --pgrep %s", count, name, name);
    array_sort(pids, count, by_id);
    for (size_t i = 0; i < count && i < LISTED_MAX; i++) {
        read_command_line(pids[i], line);
        say_more("%7d  %s", (int)pids[i], line);
    }
    if (count > LISTED_MAX)
        say_more("and %zu more", count - LISTED_MAX);
}

static bool add(pid_t **pids, size_t *count, pid_t pid)
{
    return id_add(pids, count, pid) || say("out of memory");
}

static bool find_named(struct cli_options *options, const char *name)
{
    pid_t *pids = NULL;
    size_t count = 0;
    char line[COMMAND_LINE_BYTES];
    bool ok = find_named_processes(name, &pids, &count);
    if (count > 1)
        prefer_whole_name(name, pids, &count);
    if (count > 1)
        list(name, pids, count);
    ok = ok && count == 1 && add(&options->pids, &options->pid_count, pids[0]);
    if (ok && !options->is_quiet && options->command != COMMAND_TOP) {
        read_command_line(pids[0], line);
        say("%s is process %d: %s", name, (int)pids[0], line);
    }
    free(pids);
    return ok;
}

bool find_targets(struct cli_options *options)
{
    bool ok = true;
    for (size_t i = 0; i < options->target_count && ok; i++) {
        const char *word = options->targets[i];
        ok = is_id(word) ? ids_parse(word, "process id", &options->pids, &options->pid_count)
                         : find_named(options, word);
    }
    return ok;
}

static bool attach(fgprof_recorder *recorder, pid_t pid)
{
    int err = fgprof_recorder_attach(recorder, pid);
    if (err) {
        char why[256];
        fgprof_explain(pid, err, why, sizeof why);
        return say("%s", why);
    }
    return true;
}

/* Attaches processes that were found. Some may belong to another user: the others are sampled. */
static bool attach_found(fgprof_recorder *recorder, const pid_t *pids, size_t count,
                         struct selected_pids *targets)
{
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        if (!id_is_there(targets->pids, targets->count, pids[i]) && attach(recorder, pids[i]))
            ok = add(&targets->pids, &targets->count, pids[i]);
    }
    return ok && targets->count;
}

/* Those of the control group, or with the name. */
static bool find_and_attach(const struct cli_options *options, bool is_group,
                            fgprof_recorder *recorder, struct selected_pids *targets)
{
    pid_t *pids = NULL;
    size_t count = 0;
    bool ok = is_group ? find_cgroup_processes(options->cgroup_by, options->cgroup, &pids, &count)
                       : find_named_processes(options->pgrep, &pids, &count);
    ok = ok && attach_found(recorder, pids, count, targets);
    free(pids);
    return ok;
}

static bool attach_processes(const struct cli_options *options, fgprof_recorder *recorder,
                             struct selected_pids *targets)
{
    for (size_t i = 0; i < options->pid_count; i++) {
        if (!attach(recorder, options->pids[i]) ||
            !add(&targets->pids, &targets->count, options->pids[i]))
            return false;
    }
    if (options->cgroup && !find_and_attach(options, true, recorder, targets))
        return false;
    return !options->pgrep || find_and_attach(options, false, recorder, targets);
}

static bool check_threads(const struct cli_options *options, const fgprof_recorder *recorder)
{
    for (size_t i = 0; i < options->tid_count; i++) {
        if (!fgprof_recorder_has_thread(recorder, options->tids[i]))
            return say("no thread %d in the chosen processes: give ids as ps -L shows them where "
                       "fgprof-c runs",
                       (int)options->tids[i]);
    }
    return true;
}

bool select_pids_listed(const struct cli_options *options, fgprof_recorder *recorder,
                        struct selected_pids *ret_selected)
{
    *ret_selected = (struct selected_pids){0};
    return attach_processes(options, recorder, ret_selected) && check_threads(options, recorder);
}

bool select_pids(const struct cli_options *options, fgprof_recorder *recorder)
{
    struct selected_pids targets;
    bool ok = select_pids_listed(options, recorder, &targets);
    free(targets.pids);
    return ok;
}
