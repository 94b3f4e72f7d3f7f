#include "count/elapsed.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>

#define SHORT_WAIT_NS 1000000000u
/* How old a tick is when it is divided: by then a wait that began at it has been reported as ended,
 * or is not short. */
#define SHARED_AFTER_NS 1250000000u
/* How far back a thread's account is remembered, in periods: many turns on a CPU, so that shares
 * are steady, but not so many that it misses a program's phases. */
#define MEMORY_PERIODS 8

void elapsed_begin(struct elapsed *process, uint64_t begin_ns, uint64_t period_ns, unsigned cpus)
{
    *process =
        (struct elapsed){.begin_ns = begin_ns, .period_ns = period_ns, .cpus = cpus ? cpus : 1};
    process->kept_ticks = SHARED_AFTER_NS / period_ns + 2;
}

void elapsed_free(struct elapsed *process)
{
    free(process->found_none);
    free(process->waits);
    process->found_none = NULL;
    process->waits = NULL;
    process->wait_count = process->wait_capacity = 0;
}

/* The part of its recent awake time that the thread ran. */
static double running_part(const struct elapsed_thread *thread)
{
    double awake_ns = thread->ran_ns + thread->waited_ns;
    return awake_ns > 0 ? thread->ran_ns / awake_ns : 1;
}

static void remember(const struct elapsed *process, struct elapsed_thread *thread, uint64_t ran_ns,
                     uint64_t waited_ns)
{
    thread->ran_ns += (double)ran_ns;
    thread->waited_ns += (double)waited_ns;
    while (thread->ran_ns + thread->waited_ns > (double)(MEMORY_PERIODS * process->period_ns)) {
        thread->ran_ns /= 2;
        thread->waited_ns /= 2;
    }
}

/* Gives the thread its part of the process's time so far. `share` is its average part of an instant
 * at which it was awake. */
static void give_due(struct elapsed_thread *thread, double share, uint64_t *ret_running_ns,
                     uint64_t *ret_runnable_ns)
{
    double due_ns = thread->awake_ns * share - (double)thread->given_ns;
    uint64_t given_ns = due_ns > 0 ? (uint64_t)(due_ns + 0.5) : 0;
    uint64_t unpaid_ns = (uint64_t)(thread->unpaid_ns + 0.5);
    /* If others always run while it waits, all is for when it runs. */
    bool has_waits = thread->of_runnable > 0;
    *ret_running_ns = has_waits && unpaid_ns < given_ns ? unpaid_ns : given_ns;
    *ret_runnable_ns = given_ns - *ret_running_ns;
    thread->unpaid_ns = has_waits ? thread->unpaid_ns - (double)*ret_running_ns : 0;
    thread->given_ns += given_ns;
}

double elapsed_part(const struct elapsed_thread *thread, enum account account)
{
    if (thread->found_ns <= 0 || account == ACCOUNT_ASLEEP)
        return 1;
    return account == ACCOUNT_RUNNING ? thread->of_running : thread->of_runnable;
}

void elapsed_book(const struct elapsed *process, struct elapsed_thread *thread, uint64_t ran_ns,
                  uint64_t waited_ns, uint64_t *ret_running_ns, uint64_t *ret_runnable_ns)
{
    thread->awake_ns += (double)(ran_ns + waited_ns);
    thread->unpaid_ns += (double)ran_ns * elapsed_part(thread, ACCOUNT_RUNNING);
    *ret_running_ns = *ret_runnable_ns = 0;
    if (thread->found_ns > 0)
        give_due(thread, thread->own_ns / thread->found_ns, ret_running_ns, ret_runnable_ns);
    remember(process, thread, ran_ns, waited_ns);
}

void elapsed_book_rest(const struct elapsed *process, struct elapsed_thread *thread,
                       uint64_t *ret_running_ns, uint64_t *ret_runnable_ns)
{
    double instances = (double)process->awake_instances;
    double mean = instances > 0 ? (double)process->awake_ticks / instances : 1;
    *ret_running_ns = *ret_runnable_ns = 0;
    if (thread->found_ns <= 0) {
        thread->unpaid_ns = thread->awake_ns * mean;
        give_due(thread, mean, ret_running_ns, ret_runnable_ns);
    }
}

void elapsed_add_awake(struct elapsed_instant *instant, const struct elapsed_thread *thread)
{
    instant->threads++;
    instant->running += running_part(thread);
}

/* How many CPUs the threads may use at once, and for what part of the time each CPU is theirs. */
static size_t cpus_of(const struct elapsed *process, const struct elapsed_instant *instant,
                      double *ret_part)
{
    size_t cpus = instant->threads < process->cpus ? instant->threads : process->cpus;
    double part = instant->running / (double)cpus;
    *ret_part = part < 1 ? part : 1;
    return cpus;
}

/* The chance that none of the CPUs is theirs. */
static double chance_of_none(double of_cpu, size_t cpus)
{
    double chance = 1;
    for (size_t i = 0; i < cpus && chance > 0; i++)
        chance *= 1 - of_cpu;
    return chance;
}

void elapsed_share(const struct elapsed *process, const struct elapsed_instant *instant,
                   uint64_t ticks, struct elapsed_thread *thread)
{
    double found_ns = (double)(ticks * process->period_ns), of_cpu;
    size_t cpus = cpus_of(process, instant, &of_cpu);
    double running = instant->running, waiting = (double)instant->threads - running;
    double nobody_runs = chance_of_none(of_cpu, cpus), part = running_part(thread);
    thread->of_running = running > 0 ? (1 - nobody_runs) / running : 0;
    thread->of_runnable = waiting > 0 ? nobody_runs / waiting : 0;
    /* A single thread needs no figures. */
    if (instant->threads == 1)
        thread->of_running = thread->of_runnable = 1;
    thread->own_ns += found_ns * (part * thread->of_running + (1 - part) * thread->of_runnable);
    thread->found_ns += found_ns;
}

bool elapsed_is_short(const struct elapsed *process, uint64_t first_tick, uint64_t last_tick)
{
    return last_tick <= first_tick + SHORT_WAIT_NS / process->period_ns;
}

int elapsed_add_wait(struct elapsed *process, const struct elapsed_wait *wait, uint64_t *ret_number)
{
    if (array_reserve(&process->waits, &process->wait_capacity, process->wait_count + 1))
        return -ENOMEM;
    struct elapsed_wait *added = &process->waits[process->wait_count++];
    *added = *wait;
    *ret_number = added->number = ++process->waits_added;
    return 0;
}

/* Finds a wait; NULL if all of its ticks have been divided. */
static struct elapsed_wait *find_wait(const struct elapsed *process, uint64_t number)
{
    return FIND_SORTED(process->waits, process->wait_count, number, number);
}

void elapsed_end_wait(struct elapsed *process, uint64_t number, uint64_t last_tick)
{
    struct elapsed_wait *wait = find_wait(process, number);
    if (wait)
        wait->last_tick = last_tick;
}

void elapsed_place_wait(struct elapsed *process, uint64_t number, uint32_t sample)
{
    struct elapsed_wait *wait = find_wait(process, number);
    if (wait)
        wait->sample = sample;
}

/* The classes of threads that an instant in which none is awake may belong to, the first first. */
enum rank { RANK_BLOCKED, RANK_SHORT, RANK_COUNT };

static bool has_part(const struct elapsed_wait *wait, uint64_t tick, enum rank rank)
{
    return wait->first_tick <= tick && tick <= wait->last_tick &&
           wait->is_blocked == (rank == RANK_BLOCKED);
}

static bool share_among(const struct elapsed *process, struct stack_table *table, uint64_t tick,
                        enum rank rank)
{
    size_t count = 0;
    for (size_t i = 0; i < process->wait_count; i++)
        count += has_part(&process->waits[i], tick, rank);
    for (size_t i = 0; i < process->wait_count && count; i++) {
        if (has_part(&process->waits[i], tick, rank))
            stack_table_count_waited(table, process->waits[i].sample, 1 / (double)count);
    }
    return count > 0;
}

static void forget_waits(struct elapsed *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < process->wait_count; i++) {
        if (process->waits[i].last_tick > process->shared_tick)
            process->waits[kept++] = process->waits[i];
    }
    process->wait_count = kept;
}

static void share_next(struct elapsed *process, struct stack_table *table)
{
    uint64_t tick = ++process->shared_tick;
    bool is_shared = false;
    if (!process->found_none[tick % process->kept_ticks])
        return;
    process->pending--;
    for (enum rank rank = 0; rank < RANK_COUNT && !is_shared; rank++)
        is_shared = share_among(process, table, tick, rank);
    process->idle_ticks += !is_shared;
}

static void pass_one(struct elapsed *process, struct stack_table *table, bool found_none)
{
    if (process->told_tick - process->shared_tick == process->kept_ticks)
        share_next(process, table);
    process->told_tick++;
    process->found_none[process->told_tick % process->kept_ticks] = found_none;
    process->pending += found_none;
}

int elapsed_pass(struct elapsed *process, struct stack_table *table, uint64_t tick,
                 uint64_t idle_ticks, uint64_t ticks, const struct elapsed_instant *instant)
{
    if (!process->found_none) {
        process->found_none = calloc(process->kept_ticks, sizeof *process->found_none);
        if (!process->found_none)
            return -ENOMEM;
        process->told_tick = process->shared_tick = tick - idle_ticks - ticks;
    }
    for (uint64_t i = 0; i < idle_ticks; i++)
        pass_one(process, table, true);
    for (uint64_t i = 0; i < ticks; i++)
        pass_one(process, table, !instant->threads);
    if (instant->threads) {
        process->awake_ticks += ticks;
        process->awake_instances += ticks * instant->threads;
    }
    forget_waits(process);
    return 0;
}

void elapsed_end(struct elapsed *process, struct stack_table *table, uint64_t end_ns)
{
    while (process->shared_tick < process->told_tick)
        share_next(process, table);
    process->end_ns = end_ns;
    process->end_epoch = table->epoch;
    elapsed_free(process);
}

void parallelism_add(struct parallelism *parallelism, const struct elapsed *process,
                     const struct elapsed_instant *instant, uint64_t ticks)
{
    double of_cpu;
    size_t cpus = cpus_of(process, instant, &of_cpu);
    if (of_cpu >= 1) {
        parallelism->ticks[cpus < PARALLELISM_MAX ? cpus : PARALLELISM_MAX] += (double)ticks;
        return;
    }
    /* The binomial distribution, each row from the one before it. It begins at the likelier end,
     * because the other end's probability may be too small for a double. */
    bool is_from_all = of_cpu > 0.5;
    double chance = is_from_all ? 1 - of_cpu : of_cpu, row = chance_of_none(chance, cpus);
    for (size_t i = 0; i <= cpus; i++) {
        size_t at_once = is_from_all ? cpus - i : i;
        if (i)
            row *= (double)(cpus - i + 1) / (double)i * chance / (1 - chance);
        if (at_once)
            parallelism->ticks[at_once < PARALLELISM_MAX ? at_once : PARALLELISM_MAX] +=
                row * (double)ticks;
    }
}

/* One process's time, and the factors by which the table's figures fill it. */
struct fit {
    uint64_t all_ns, awake_ns;
    double waited_ticks;    /* and idle ones */
    double of_awake, of_ns; /* factors of time awake, and of a tick */
    double sum_ns;          /* as it is divided: before rounding, and */
    uint64_t given_ns;      /* after */
};

static void make_fit(struct fit *fit, const struct elapsed *process, uint64_t until_ns)
{
    if (process->is_settled) {
        fit->all_ns = process->settled_ns;
        fit->of_awake = 1;
        fit->of_ns = (double)process->period_ns;
        return;
    }
    uint64_t end_ns = process->end_ns ? process->end_ns : until_ns;
    fit->all_ns = end_ns > process->begin_ns ? end_ns - process->begin_ns : 0;
    fit->waited_ticks += (double)(process->idle_ticks + process->pending);
    fit->of_awake = 1;
    if (fit->awake_ns > fit->all_ns || (fit->awake_ns && fit->waited_ticks <= 0))
        fit->of_awake = (double)fit->all_ns / (double)fit->awake_ns;
    else if (fit->waited_ticks > 0)
        fit->of_ns = (double)(fit->all_ns - fit->awake_ns) / fit->waited_ticks;
}

/* Rounds running sums, so that nothing is lost. */
static uint64_t give(struct fit *fit, double part_ns)
{
    fit->sum_ns += part_ns;
    uint64_t sum_ns = (uint64_t)(fit->sum_ns + 0.5);
    if (sum_ns > fit->all_ns)
        sum_ns = fit->all_ns;
    uint64_t given_ns = sum_ns - fit->given_ns;
    fit->given_ns = sum_ns;
    return given_ns;
}

/* By process. NULL if memory is short. */
static struct fit *make_fits(const struct stack_table *table, const struct elapsed *processes,
                             uint64_t until_ns)
{
    struct fit *fits = calloc(table->process_count + 1, sizeof *fits);
    for (size_t i = 0; i < table->sample_count && fits; i++) {
        struct fit *fit = &fits[table->samples[i].labels.process];
        fit->awake_ns += table->samples[i].part_ns;
        fit->waited_ticks += table->samples[i].waited_ticks;
    }
    for (size_t i = 0; i < table->process_count && fits; i++)
        make_fit(&fits[i], &processes[i], until_ns);
    return fits;
}

int elapsed_settle(struct stack_table *table, struct elapsed *processes,
                   const struct renumber *rows)
{
    struct fit *fits = make_fits(table, processes, 0);
    if (!fits)
        return -ENOMEM;
    for (size_t i = 0; i < table->sample_count; i++) {
        struct counted_sample *sample = &table->samples[i];
        const struct fit *fit = &fits[sample->labels.process];
        const struct elapsed *process = &processes[sample->labels.process];
        if (renumber_of(rows, sample->labels.process) == ROW_GONE || process->is_settled)
            continue;
        sample->part_ns = (uint64_t)((double)sample->part_ns * fit->of_awake);
        sample->waited_ticks *= fit->of_ns / (double)process->period_ns;
    }
    for (uint32_t i = 0; i < table->process_count; i++) {
        if (renumber_of(rows, i) == ROW_GONE || processes[i].is_settled)
            continue;
        processes[i].is_settled = true;
        processes[i].settled_ns = fits[i].all_ns;
    }
    free(fits);
    return 0;
}

void elapsed_join(struct elapsed *to, struct elapsed *from)
{
    to->settled_ns += from->settled_ns;
    from->settled_ns = 0;
}

int elapsed_divide(const struct stack_table *table, const struct elapsed *processes,
                   uint64_t until_ns, uint64_t *ret_sample_ns, uint64_t *ret_idle_ns)
{
    struct fit *fits = make_fits(table, processes, until_ns);
    if (!fits)
        return -ENOMEM;
    for (size_t i = 0; i < table->sample_count; i++) {
        const struct counted_sample *sample = &table->samples[i];
        struct fit *fit = &fits[sample->labels.process];
        ret_sample_ns[i] =
            give(fit, (double)sample->part_ns * fit->of_awake + sample->waited_ticks * fit->of_ns);
    }
    for (size_t i = 0; i < table->process_count; i++)
        ret_idle_ns[i] = fits[i].all_ns - fits[i].given_ns;
    free(fits);
    return 0;
}

void parallelism_divide(const struct parallelism *parallelism, uint64_t all_ns, uint64_t running_ns,
                        uint64_t ret_ns[PARALLELISM_MAX + 1])
{
    double ticks = 0;
    for (size_t i = 1; i <= PARALLELISM_MAX; i++)
        ticks += parallelism->ticks[i];
    struct fit fit = {.all_ns = running_ns < all_ns ? running_ns : all_ns};
    double of_ns = ticks > 0 ? (double)fit.all_ns / ticks : 0;
    for (size_t i = 1; i <= PARALLELISM_MAX; i++)
        ret_ns[i] = give(&fit, parallelism->ticks[i] * of_ns);
    /* No tick found a thread: they ran one at a time. */
    ret_ns[1] += fit.all_ns - fit.given_ns;
    ret_ns[0] = all_ns - fit.all_ns;
}
