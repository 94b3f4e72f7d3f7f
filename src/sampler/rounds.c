#include "sampler/rounds.h"
#include "proc/priority.h"
#include "recorder/recorder.h"

#include <time.h>

/* At the end, how often threads that have not stopped yet are looked at; what is waited in all is
 * more where the machine makes a pause. */
#define FINISH_LOOKS 250
/* By a dump, which has no other stack of them: since the last that came. Many that want few CPUs
 * come one by one. */
#define DUMP_LOOKS 2000
/* Of a dump: who ran at a look, and slept when it was to be stopped, is looked at again. */
#define DUMP_ROUNDS_MAX 10

int rounds_begin(struct fgprof_recorder *recorder)
{
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_begin_round(recorder->targets[i]);
    return err;
}

bool rounds_are_pending(const struct fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (recorder->targets[i]->stops.count)
            return true;
    }
    return false;
}

int rounds_continue(struct fgprof_recorder *recorder)
{
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_continue_round(recorder->targets[i]);
    if (!rounds_are_pending(recorder))
        priority_run_as_others(&recorder->recording.runs_first);
    return err;
}

static int await_stops(struct fgprof_recorder *recorder)
{
    const struct recording *recording = &recorder->recording;
    int looks_max = recording->waits ? DUMP_LOOKS : FINISH_LOOKS, err = 0;
    for (int looks = 0; !err && rounds_are_pending(recorder) && looks < looks_max; looks++) {
        struct timespec nap = {0, ROUNDS_LOOK_PERIOD_NS};
        uint64_t samples = recording->samples;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
        err = rounds_continue(recorder);
        if (recording->waits && recording->samples != samples)
            looks = 0;
    }
    return err;
}

/* What threads were found to wait for is read before others are waited for, which may be long. */
static int last_round(struct fgprof_recorder *recorder)
{
    struct wait_list *waits = recorder->recording.waits;
    int err = rounds_begin(recorder);
    if (!err && waits)
        err = wait_list_read(waits);
    if (!err)
        err = rounds_continue(recorder);
    return err ? err : await_stops(recorder);
}

static bool lacks_sample(const struct fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (target_lacks_sample(recorder->targets[i]))
            return true;
    }
    return false;
}

int rounds_finish(struct fgprof_recorder *recorder)
{
    struct wait_list *waits = recorder->recording.waits;
    int err = last_round(recorder);
    for (int i = 1; i < DUMP_ROUNDS_MAX && waits && !err; i++) {
        if (rounds_are_pending(recorder) || !lacks_sample(recorder))
            break;
        err = last_round(recorder);
    }
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_finish(recorder->targets[i]);
    if (!err && waits)
        err = wait_list_finish(waits);
    return err;
}
