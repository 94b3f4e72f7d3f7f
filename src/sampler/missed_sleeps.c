#include "sampler/missed_sleeps.h"

/* So that a place that is hardly ever proven does not outweigh all others when it is. */
#define TICKS_MAX 16u

static bool is_at(const struct missed_sleep *sleep, const struct observation *observation)
{
    return sleep->ticks && sleep_place_has(&sleep->place, &observation->snapshot->registers) &&
           sleep->place.syscall_number == observation->wait.syscall_number;
}

static struct missed_sleep *find(struct thread_missed_sleeps *missed,
                                 const struct observation *observation)
{
    for (unsigned i = 0; i < MISSED_PLACES; i++) {
        if (is_at(&missed->sleeps[i], observation))
            return &missed->sleeps[i];
    }
    return NULL;
}

void missed_sleeps_note(struct thread_missed_sleeps *missed, const struct observation *observation,
                        uint64_t ticks)
{
#ifdef FGPROF_WITHOUT_MISSED_SLEEPS
    return;
#endif
    const struct registers *registers = &observation->snapshot->registers;
    struct missed_sleep *sleep = find(missed, observation);
    if (!sleep) {
        sleep = &missed->sleeps[missed->next];
        missed->next = (missed->next + 1) % MISSED_PLACES;
        sleep->place = (struct sleep_place){.pc = registers_pc(registers),
                                            .sp = registers_sp(registers),
                                            .syscall_number = observation->wait.syscall_number};
        sleep->ticks = 0;
    }
    sleep->ticks += (uint32_t)(ticks < TICKS_MAX ? ticks : TICKS_MAX);
    if (sleep->ticks > TICKS_MAX)
        sleep->ticks = TICKS_MAX;
}

uint64_t missed_sleeps_take(struct thread_missed_sleeps *missed,
                            const struct observation *observation)
{
    struct missed_sleep *sleep = observation->asleep.is_over ? find(missed, observation) : NULL;
    uint64_t ticks = sleep ? sleep->ticks : 0;
    if (sleep)
        sleep->ticks = 0;
    return ticks;
}
