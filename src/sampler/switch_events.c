#include "sampler/switch_events.h"
#include "sampler/short_sleeps.h"
#include "sampler/subject.h"

#include <errno.h>

/* A thread is watched for this long before deciding whether it waits much and gets an event. */
#define SPAN_NS 100000000u
/* It waits much if it waited for a CPU for more than this part of that time. */
#define PART_OF_TIME 50
/* It gets no event if it was switched more often than this. An event makes a switch 4 us longer
 * (bench/results/record.md), so it costs at most 0.4 % of the thread's time. */
#define SWITCHES_PER_S_MAX 1000

static bool events_are_permitted(const struct sampler *sampler)
{
#ifdef FGPROF_WITHOUT_SWITCH_EVENTS
    return false;
#endif
    return sampler->switches && sampler->kernel.source;
}

static bool switches_often(const struct thread *thread)
{
    return thread->switch_events.switches_per_s > SWITCHES_PER_S_MAX;
}

static bool may_have_event(const struct sampler *sampler, const struct reading *now)
{
    return events_are_permitted(sampler) && reading_has_times(now);
}

/* Gives the thread an event. If that fails and the thread waits much, those waits are not seen. */
static void arm(struct sampler *sampler, struct thread *thread, bool waits)
{
    int err = switches_add(sampler->switches, SWITCHES_ALWAYS, thread->number, thread->tid);
    bool has_ended = err == -ESRCH || err == -ENODEV;
    if (!err || has_ended || !waits)
        return;
    thread_count_once(thread, FACT_WAITS_UNSEEN, &sampler->counts.threads_waits_unseen);
    sampler->counts.waits_refusal = -err;
}

static void decide(struct sampler *sampler, struct thread *thread)
{
    struct thread_switch_events *own = &thread->switch_events;
    if (!events_are_permitted(sampler))
        return;
    if (switches_often(thread))
        switches_drop(sampler->switches, SWITCHES_ALWAYS, thread->number);
    else if (own->waits || own->needs_registers)
        arm(sampler, thread, own->waits);
}

void switch_events_note_look(struct sampler *sampler, const struct sampled_process *process,
                             struct thread *thread, const struct reading *now)
{
    struct thread_switch_events *own = &thread->switch_events;
    const struct activity *before = &own->before.activity, *after = &now->activity;
    if (!reading_has_times(now))
        return;
    uint64_t span_ns = now->at_ns - own->before.at_ns;
    bool is_same = own->before.at_ns && after->waiting_ns >= before->waiting_ns &&
                   after->switches >= before->switches;
    if (is_same && span_ns < SPAN_NS)
        return;
    if (is_same) {
        own->switches_per_s = (after->switches - before->switches) * 1000000000u / span_ns;
        own->waits = after->waiting_ns - before->waiting_ns > span_ns / PART_OF_TIME;
        decide(sampler, thread);
        short_sleeps_decide(sampler, process, thread);
    }
    own->before = *now;
}

bool switch_events_observe(struct sampler *sampler, const struct sampled_process *process,
                           struct thread *thread, const struct reading *now,
                           struct observation *observation)
{
    struct subject subject = subject_of(sampler, process, thread);
    if (!may_have_event(sampler, now))
        return false;
    subject.look = *now;
    return switches_observe(sampler->switches, &subject, observation) == OUTCOME_OBSERVED;
}

void switch_events_need_registers(struct sampler *sampler, struct thread *thread)
{
    thread->switch_events.needs_registers = true;
    if (events_are_permitted(sampler) && !switches_often(thread))
        arm(sampler, thread, false);
}

void switch_events_complete(struct sampler *sampler, struct thread *thread,
                            const struct reading *now, struct registers *registers)
{
    if (!thread->switch_events.needs_registers || !may_have_event(sampler, now))
        return;
    switches_complete(sampler->switches, thread->number, registers);
}

void switch_events_close(struct sampler *sampler, const struct thread *thread)
{
    if (sampler->kernel.source)
        perf_source_forget(sampler->kernel.source, thread->tid);
    switches_drop(sampler->switches, SWITCHES_ALWAYS, thread->number);
    switches_drop(sampler->switches, SWITCHES_IN_WINDOW, thread->number);
}

void switch_events_end(struct sampler *sampler)
{
    switches_free(sampler->switches);
    sampler->switches = NULL;
}
