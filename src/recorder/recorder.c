#include "recorder/recorder.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int recorder_add_target(struct fgprof_recorder *recorder, pid_t pid, struct target **ret_target)
{
    if (array_reserve(&recorder->targets, &recorder->target_capacity, recorder->target_count + 1))
        return -ENOMEM;
    struct target *target = malloc(sizeof *target);
    if (!target)
        return -ENOMEM;
    int err = target_open(target, pid, &recorder->recording, &recorder->options.sampling);
    if (err) {
        free(target);
        return err;
    }
    recorder->targets[recorder->target_count++] = target;
    *ret_target = target;
    return 0;
}
