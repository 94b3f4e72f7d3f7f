#include "proc/activity.h"
#include "proc/procfs.h"

#include <stdlib.h>

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
