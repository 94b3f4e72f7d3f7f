/* Linked into a second fgprof-c, which bench/parts/switches.py runs: writes what each look saw to
 * the file $FGPROF_LOOK_LOG. The normal outputs do not have this: they give the time of looks only
 * to within a tick, and merge successive equal stacks.
 *
 * The linker puts __wrap_count_book, by which the worker learns of each observation, and
 * __wrap_sampler_run before the functions of these names (ld's --wrap). The sampling thread does
 * nothing more than without this.
 *
 * A line is one of
 *   look TID EVIDENCE STATE TICK TICKS ASLEEP_TICKS MISSED_TICKS AT_NS ASLEEP_AT_NS DEPARTED_NS
 *   tick NUMBER NS
 * where TICK is the number of the last tick that the look stands for, and NS is when it was due.
 * DEPARTED_NS is when the thread left its CPU, if the record of switches shows it, or 0. */
#include "base/clock.h"
#include "sampler/sampler.h"
#include "worker/count.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int __real_count_book(const struct means *means, const struct observation *observation,
                      struct counted_thread *thread);
int __wrap_count_book(const struct means *means, const struct observation *observation,
                      struct counted_thread *thread);
int __real_sampler_run(struct sampler *sampler);
int __wrap_sampler_run(struct sampler *sampler);

static const char *const evidence_names[] = {
    [EVIDENCE_ASLEEP] = "asleep",   [EVIDENCE_STOPPED] = "stopped", [EVIDENCE_WAITING] = "waiting",
    [EVIDENCE_SAMPLED] = "sampled", [EVIDENCE_UNMOVED] = "unmoved", [EVIDENCE_WOKEN] = "woken",
    [EVIDENCE_ASSUMED] = "assumed", [EVIDENCE_GONE] = "gone",
};
static const char *const state_names[THREAD_STATE_COUNT] = {
    [THREAD_UNKNOWN] = "unknown",
    [THREAD_RUNNING] = "running",
    [THREAD_RUNNABLE] = "runnable",
    [THREAD_SLEEPING] = "sleeping",
    [THREAD_UNINTERRUPTIBLE] = "uninterruptible",
    [THREAD_STOPPED] = "stopped",
};
static FILE *file;
static struct ticks ticks;
static uint64_t ticks_planned;

__attribute__((constructor)) static void open_log(void)
{
    const char *path = getenv("FGPROF_LOOK_LOG");
    file = path ? fopen(path, "we") : NULL;
}

/* By now the times of all ticks are known. */
__attribute__((destructor)) static void close_log(void)
{
    if (!file)
        return;
    for (uint64_t i = 0; i < ticks_planned; i++)
        fprintf(file, "tick %" PRIu64 " %" PRIu64 "\n", i + 1, ticks_due_ns(&ticks, i));
    fclose(file);
}

int __wrap_count_book(const struct means *means, const struct observation *observation,
                      struct counted_thread *thread)
{
    if (file && observation->evidence != EVIDENCE_SAMPLED)
        fprintf(file,
                "look %d %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                " %" PRIu64 "\n",
                (int)observation->tid, evidence_names[observation->evidence],
                state_names[observation->state], observation->tick, observation->ticks,
                observation->before.asleep_ticks, observation->missed_ticks, observation->now.at_ns,
                observation->before.asleep.at_ns, observation->record.departed_ns);
    return __real_count_book(means, observation, thread);
}

/* It has ended: all its ticks are known. */
int __wrap_sampler_run(struct sampler *sampler)
{
    int err = __real_sampler_run(sampler);
    ticks = sampler->clock.ticks;
    ticks_planned = sampler->counts.ticks_planned;
    return err;
}
