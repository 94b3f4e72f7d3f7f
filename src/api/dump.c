/* The functions of fgprof.h for dumps: what every thread is doing now. */
#include "profile/dump.h"
#include "recorder/recorder.h"

#include <errno.h>
#include <stdlib.h>

/* A dump is a recording with one round. */
int fgprof_recorder_dump(fgprof_recorder *recorder, fgprof_dump **ret_dump)
{
    if (recorder->has_run)
        return -EALREADY; /* and its profiles stay as they are */
    fgprof_dump *dump = calloc(1, sizeof *dump);
    if (!dump)
        return -ENOMEM;
    recorder->options.threads = FGPROF_THREADS_BY_ID;
    recorder->options.sampler.is_dump = true;
    recorder->options.sampler.objects.kinds[OBJECT_THREAD] = true;
    recorder->waits = &dump->waits;
    recorder->tasks = &dump->listed;
    int err = fgprof_recorder_run(recorder, &dump->profile);
    recorder->waits = NULL;
    recorder->tasks = NULL;
    if (!err)
        err = dump->profile->summary.error;
    if (!err) {
        /* Leaves out the stacks of where threads began, which are counted, too. */
        dump->profile->summary.stacks = dump->profile->stack_count;
        err = dump_complete(dump);
    }
    if (err) {
        fgprof_dump_free(dump);
        return err;
    }
    *ret_dump = dump;
    return 0;
}

size_t fgprof_dump_threads(const fgprof_dump *dump)
{
    return dump->thread_count + dump->task_count;
}

size_t fgprof_dump_deadlocks(const fgprof_dump *dump)
{
    return dump->deadlock_count;
}

void fgprof_dump_summary(const fgprof_dump *dump, struct fgprof_summary *ret_summary, size_t bytes)
{
    fgprof_profile_summary(dump->profile, ret_summary, bytes);
}
