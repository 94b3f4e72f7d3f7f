#include "proc/activity.h"
#include "proc/procfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWITCH_NS 1000

/* By hand, because sscanf is a tenth of the cost of looking at a sleeping thread. */
static bool parse_number(const char **at, uint64_t *ret_number)
{
    char *end;
    *ret_number = strtoull(*at, &end, 10);
    bool is_number = end != *at;
    *at = end;
    return is_number;
}

bool activity_parse(const char *line, struct activity *ret_activity)
{
    struct activity activity = {0};
    if (!parse_number(&line, &activity.running_ns) || !parse_number(&line, &activity.waiting_ns) ||
        !parse_number(&line, &activity.switches) || !activity.switches)
        return false;
    *ret_activity = activity;
    return true;
}

bool activity_parse_preemptions(const char *status, uint64_t *ret_preemptions)
{
    long count = procfs_status_number(status, "nonvoluntary_ctxt_switches:");
    if (count < 0)
        return false;
    *ret_preemptions = (uint64_t)count;
    return true;
}

bool activity_parse_status(const char *status, struct activity *ret_activity)
{
    long voluntary = procfs_status_number(status, "voluntary_ctxt_switches:");
    uint64_t preemptions;
    if (voluntary < 0 || !activity_parse_preemptions(status, &preemptions))
        return false;
    *ret_activity = (struct activity){
        .switches = (uint64_t)voluntary + preemptions,
        .counts_ends = true,
    };
    return true;
}

/* Reads a number of milliseconds with six decimals, or a whole one. */
static bool find_value(const char *sched, const char *key, uint64_t *ret_value)
{
    const char *line = strstr(sched, key);
    uint64_t ms = 0, ns;
    int fields = line ? sscanf(line + strlen(key), " : %" SCNu64 ".%" SCNu64, &ms, &ns) : 0;
    *ret_value = fields == 2 ? ms * 1000000 + ns : ms;
    return fields > 0;
}

bool activity_parse_last_run(const char *sched, struct last_run *ret_last_run)
{
    struct last_run last_run;
    if (!find_value(sched, "\nse.exec_start", &last_run.at_ns) ||
        !find_value(sched, "\nse.sum_exec_runtime", &last_run.running_ns) ||
        !find_value(sched, "\nse.nr_migrations", &last_run.migrations))
        return false;
    *ret_last_run = last_run;
    return true;
}

bool last_run_is_before(const struct last_run *last_run, uint64_t came_ns)
{
    return last_run->at_ns + SWITCH_NS < came_ns;
}

uint64_t last_run_slept_ns(const struct last_run *before, const struct last_run *after,
                           uint64_t waited_ns)
{
    uint64_t passed_ns = after->at_ns - before->at_ns;
    uint64_t awake_ns = after->running_ns - before->running_ns + waited_ns;
    return after->migrations == before->migrations && passed_ns > awake_ns ? passed_ns - awake_ns
                                                                           : 0;
}
