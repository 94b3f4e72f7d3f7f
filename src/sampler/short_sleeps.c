#include "sampler/short_sleeps.h"
#include "sampler/otel_context.h"
#include "sampler/subject.h"

/* A sleep is known if it began this long before the tick, or later; at high rates, in this part of
 * the time between two ticks. */
#define WINDOW_NS 1000000u
#define WINDOW_PART 2
/* A thread that switches less often spends little of its time in sleeps that are over before a
 * look. */
#define SWITCHES_PER_S_MIN 100
/* How much longer a switch takes in a window (bench/results/record.md), and the most that this may
 * cost a thread, for each second. */
#define SWITCH_NS 5000u
#define COST_NS_MAX 20000000u
/* After a sleep of this length, a thread has no event. */
#define LONG_SLEEP_NS 1000000000u

/* What the events do not record is not known once the thread has moved. */
static bool may_have_event(const struct sampler *sampler, const struct subject *subject)
{
#ifdef FGPROF_WITHOUT_SHORT_SLEEPS
    return false;
#endif
    return sampler->kernel.source && !sampler->options->is_dump && !subject->python.layout &&
           !subject->wants_kernel_stack && !subject->other_stack.address;
}

static uint64_t window_ns(const struct sampler *sampler)
{
    uint64_t part_ns = sampler->clock.ticks.period_ns / WINDOW_PART;
    return part_ns < WINDOW_NS ? part_ns : WINDOW_NS;
}

static bool are_worth_it(const struct sampler *sampler, uint64_t switches_per_s)
{
    uint64_t windows_per_s = 1000000000u / sampler->clock.ticks.period_ns;
    uint64_t recorded = switches_per_s * windows_per_s * window_ns(sampler) / 1000000000u;
    return switches_per_s >= SWITCHES_PER_S_MIN && recorded * SWITCH_NS <= COST_NS_MAX;
}

void short_sleeps_decide(struct sampler *sampler, const struct sampled_process *process,
                         const struct thread *thread)
{
    const struct subject subject = subject_of(sampler, process, thread);
    bool is_wanted = are_worth_it(sampler, thread->switch_events.switches_per_s) &&
                     may_have_event(sampler, &subject) &&
                     !switches_have(sampler->switches, SWITCHES_ALWAYS, thread->number);
    /* Without an event, the thread is observed as it is found. */
    if (is_wanted)
        switches_add(sampler->switches, SWITCHES_IN_WINDOW, thread->number, thread->tid);
    else
        switches_drop(sampler->switches, SWITCHES_IN_WINDOW, thread->number);
}

void short_sleeps_note_unmoved(struct sampler *sampler, const struct thread *thread)
{
    const struct thread_schedule *schedule = &thread->schedule;
    uint64_t slept_ticks = schedule->looked_tick - schedule->asleep_since_tick;
    if (slept_ticks * sampler->clock.ticks.period_ns > LONG_SLEEP_NS)
        switches_drop(sampler->switches, SWITCHES_IN_WINDOW, thread->number);
}

uint64_t short_sleeps_begin(struct sampler *sampler, uint64_t tick_ns)
{
    bool is_late = monotonic_ns() >= tick_ns;
    return is_late ? UINT64_MAX
                   : switches_open_windows(sampler->switches, tick_ns - window_ns(sampler));
}

void short_sleeps_stop(struct sampler *sampler)
{
    switches_close_windows(sampler->switches);
}

enum outcome short_sleeps_observe(struct sampler *sampler, const struct sampled_process *process,
                                  const struct thread *thread, uint64_t tick,
                                  const struct subject *subject, enum outcome outcome,
                                  struct observation *observation)
{
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    if (!tick || !watch || !may_have_event(sampler, subject))
        return outcome;
    struct subject at_tick = *subject;
    at_tick.tick_ns = ticks_due_ns(&sampler->clock.ticks, tick - 1);
    outcome = switches_observe_at_tick(sampler->switches, &at_tick, watch, outcome, observation);
    if (outcome == OUTCOME_OBSERVED && observation->record.returned_ns)
        otel_context_read_late(sampler, process, thread, observation->snapshot);
    return outcome;
}
