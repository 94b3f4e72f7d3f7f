#include "cli/select_pids.h"
#include "cli/cgroup.h"
#include "cli/options/values.h"
#include "cli/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool attach(fgprof_recorder *recorder, pid_t pid)
{
    int err = fgprof_recorder_attach(recorder, pid);
    if (err) {
        char why[256];
        fgprof_explain(pid, err, why, sizeof why);
        fprintf(stderr, "fgprof-c: %s\n", why);
    }
    return !err;
}

static bool has(const struct selected_pids *targets, pid_t pid)
{
    for (size_t i = 0; i < targets->count; i++) {
        if (targets->pids[i] == pid)
            return true;
    }
    return false;
}

static bool add(struct selected_pids *targets, pid_t pid)
{
    bool ok = id_add(&targets->pids, &targets->count, pid);
    if (!ok)
        fprintf(stderr, "fgprof-c: out of memory\n");
    return ok;
}

/* Attaches processes that were found, but this one. Some may belong to another user: the others are
 * sampled. */
static bool attach_found(fgprof_recorder *recorder, const pid_t *pids, size_t count,
                         struct selected_pids *targets)
{
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        if (pids[i] != getpid() && !has(targets, pids[i]) && attach(recorder, pids[i]))
            ok = add(targets, pids[i]);
    }
    return ok && targets->count;
}

static bool attach_named(const struct cli_options *options, fgprof_recorder *recorder,
                         struct selected_pids *targets)
{
    pid_t *pids = NULL;
    size_t count = 0;
    bool ok = find_named_processes(options->pgrep, &pids, &count) &&
              attach_found(recorder, pids, count, targets);
    free(pids);
    return ok;
}

static bool attach_group(const struct cli_options *options, fgprof_recorder *recorder,
                         struct selected_pids *targets)
{
    pid_t *pids = NULL;
    size_t count = 0;
    bool ok = find_cgroup_processes(options->cgroup_by, options->cgroup, &pids, &count) &&
              attach_found(recorder, pids, count, targets);
    free(pids);
    return ok;
}

static bool attach_processes(const struct cli_options *options, fgprof_recorder *recorder,
                             struct selected_pids *targets)
{
    for (size_t i = 0; i < options->pid_count; i++) {
        if (!attach(recorder, options->pids[i]) || !add(targets, options->pids[i]))
            return false;
    }
    if (options->cgroup && !attach_group(options, recorder, targets))
        return false;
    return !options->pgrep || attach_named(options, recorder, targets);
}

static bool check_threads(const struct cli_options *options, const fgprof_recorder *recorder)
{
    for (size_t i = 0; i < options->tid_count; i++) {
        if (!fgprof_recorder_has_thread(recorder, options->tids[i])) {
            fprintf(stderr,
                    "fgprof-c: no thread %d in the chosen processes: give ids as ps -L shows them "
                    "where fgprof-c runs\n",
                    (int)options->tids[i]);
            return false;
        }
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
