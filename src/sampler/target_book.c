#include "sampler/target_book.h"

/* A gap of less than this many ticks is none: a tick may come late. */
#define GAP_TICKS 2

void target_book_begin(struct target *target, struct thread *thread, uint64_t from_ns)
{
    const struct watch_place place = {target->process.proc_fd, thread->tid,
                                      target->recording->keep_fds_below};
    struct activity activity;
    bool is_known = watch_read_activity(&place, &thread->watch, &activity) == 0;
    thread->ledger = (struct ledger){0};
    ledger_begin(&thread->ledger, from_ns, is_known ? &activity : NULL);
    thread->first_switches = is_known ? activity.switches : 0;
}

void target_book_first_look(const struct target *target, struct thread *thread)
{
    uint64_t now_ns = recording_now_ns(target->recording);
    if (thread->is_new && now_ns > target->listed_ns)
        thread->ledger.booked_ns += now_ns - target->listed_ns;
    thread->is_new = false;
}

static const struct activity *activity_of(const struct capture *capture)
{
    return capture->has_activity ? &capture->activity : NULL;
}

_Static_assert((int)TIMELINE_ACCOUNTS == (int)ACCOUNT_COUNT, "a timeline has a ledger's accounts");

void target_book_until(struct recording *recording, struct thread *thread, uint64_t now_ns,
                       const struct activity *activity, enum account account)
{
    struct ledger *ledger = &thread->ledger;
    uint64_t from_ns = ledger->booked_ns, booked_ns[ACCOUNT_COUNT];
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        booked_ns[i] = ledger->owed_ns[i];
    ledger_book(ledger, now_ns, activity, account);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        booked_ns[i] = ledger->owed_ns[i] - booked_ns[i];
    timeline_book(&recording->timeline, &thread->timeline, (uint32_t)thread->tid, from_ns,
                  booked_ns);
}

uint64_t target_book_seen_ns(const struct target *target, const struct thread *thread)
{
    uint64_t now_ns = recording_now_ns(target->recording);
    uint64_t seen_ns = thread->looked_ns > target->round_ns ? thread->looked_ns : target->round_ns;
    return seen_ns < now_ns ? seen_ns : now_ns;
}

void target_book(struct target *target, struct thread *thread, enum account account)
{
    struct recording *recording = target->recording;
    struct ledger *ledger = &thread->ledger;
    uint64_t owed_before_ns = ledger->owed_ns[ACCOUNT_RUNNING];
    bool is_stop = target->capture != &target->look;
    uint64_t until_ns = is_stop ? target_book_seen_ns(target, thread) : recording_now_ns(recording);
    target_book_until(recording, thread, until_ns, activity_of(target->capture), account);
    recording->running_ns += ledger->owed_ns[ACCOUNT_RUNNING] - owed_before_ns;
}

bool target_book_has_gap(const struct target *target, const struct thread *thread,
                         uint64_t until_ns)
{
    return until_ns >= thread->ledger.booked_ns + GAP_TICKS * target->recording->period_ns;
}

uint64_t target_book_gone_ns(const struct target *target)
{
    uint64_t now_ns = recording_now_ns(target->recording);
    uint64_t there_ns =
        target->listed_ns > target->last_round_ns ? target->listed_ns : target->last_round_ns;
    return there_ns < now_ns ? there_ns : now_ns;
}
