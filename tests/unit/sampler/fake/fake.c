/* The sampler's thread, its clock, and the worker. */
#include "fake.h"
#include "base/array.h"
#include "base/bell.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>

#define STEPS_MAX 20000
#define STACK_LIMIT_MAX (64u << 10)

struct fake *fake;

/* ---- The clock ---- */

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_boot_ns(void);
uint64_t __wrap_thread_cpu_ns(void);
int __wrap_sched_yield(void);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);
void __wrap_bell_wait(struct bell *bell, uint32_t heard, uint64_t until_ns);

uint64_t __wrap_monotonic_ns(void)
{
    return fake->now_ns;
}

uint64_t __wrap_boot_ns(void)
{
    return fake->now_ns;
}

uint64_t __wrap_thread_cpu_ns(void)
{
    return 0;
}

int __wrap_sched_yield(void)
{
    fake->yields++;
    return 0;
}

/* The sampler waits, so the test continues. */
void fake_wait(uint64_t until_ns)
{
    fake->wait_until_ns = until_ns;
    sem_post(&fake->waits);
    while (sem_wait(&fake->goes)) {
    }
}

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    fake_wait(fake->now_ns + ns_of(wanted));
    return 0;
}

int __wrap_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    (void)files, (void)count, (void)mask;
    fake_wait(fake->now_ns + ns_of(timeout));
    return 0;
}

void __wrap_bell_wait(struct bell *bell, uint32_t heard, uint64_t until_ns)
{
    if (bell_heard(bell) == heard)
        fake_wait(until_ns);
}

/* ---- The worker ---- */

static void keep(const struct message *message)
{
    assert_int_equal(array_reserve(&fake->told, &fake->told_capacity, fake->told_count + 1), 0);
    fake->told[fake->told_count++] = (struct fake_told){.message = *message, .program = UINT32_MAX};
}

static void look_at(struct fake_told *told, const struct snapshot *snapshot,
                    const struct program *program)
{
    if (program)
        told->program = program->number;
    told->has_snapshot = snapshot != NULL;
    if (!snapshot)
        return;
    told->pc = registers_pc(&snapshot->registers);
    told->stack_capacity = snapshot->stack.capacity;
    told->stack_bytes = snapshot->stack.bytes;
    told->stack_byte = told->stack_bytes ? snapshot->stack.memory[0] : 0;
}

/* Keeps what tests check of the message, and releases it. */
static void take(struct fake_told *told)
{
    struct message *message = &told->message;
    if (message->kind == MESSAGE_OBSERVATION)
        look_at(told, message->observation.snapshot, message->observation.program);
    if (message->kind == MESSAGE_OBJECT)
        look_at(told, message->object.snapshot, message->object.program);
    if (message->kind == MESSAGE_OBJECT && message->object.name)
        snprintf(told->name, sizeof told->name, "%s", message->object.name);
    if (message->kind == MESSAGE_OBJECT_COUNTS)
        memcpy(fake->object_counts, message->object_counts, sizeof fake->object_counts);
    if (message->kind == MESSAGE_PROGRAM_ENDED)
        told->program = message->program->number;
    for (size_t i = 0; message->kind == MESSAGE_TICK && i < message->tick.thread_count && i < 8;
         i++)
        told->awake[i] = message->tick.threads[i];
    channel_release(fake->channel, message);
}

static void work(void)
{
    struct message message;
    while (!fake->is_absent && channel_receive(fake->channel, false, &message)) {
        keep(&message);
        take(&fake->told[fake->told_count - 1]);
        channel_done(fake->channel);
    }
}

const struct fake_told *fake_next(enum message_kind kind)
{
    while (fake->told_next < fake->told_count) {
        const struct fake_told *told = &fake->told[fake->told_next++];
        if (told->message.kind == kind)
            return told;
    }
    return NULL;
}

const struct observation *fake_next_of(pid_t tid)
{
    const struct fake_told *told;
    while ((told = fake_next(MESSAGE_OBSERVATION))) {
        if (told->message.observation.tid == tid)
            return &told->message.observation;
    }
    return NULL;
}

void fake_forget_told(void)
{
    fake->told_next = fake->told_count;
}

unsigned fake_count(pid_t tid, enum evidence evidence)
{
    unsigned count = 0;
    for (size_t i = fake->told_next; i < fake->told_count; i++) {
        const struct message *message = &fake->told[i].message;
        count += message->kind == MESSAGE_OBSERVATION && message->observation.tid == tid &&
                 message->observation.evidence == evidence;
    }
    return count;
}

unsigned fake_count_news(enum object_kind kind, enum object_change change)
{
    unsigned count = 0;
    for (size_t i = fake->told_next; i < fake->told_count; i++) {
        const struct message *message = &fake->told[i].message;
        count += message->kind == MESSAGE_OBJECT && message->object.kind == kind &&
                 message->object.change == change;
    }
    return count;
}

void fake_request(const struct request *request)
{
    assert_int_equal(channel_request(fake->channel, request), 0);
}

/* Finds the thread's number in an earlier message, as the worker does. */
void fake_request_of(pid_t tid, struct request request)
{
    for (size_t i = fake->told_count; i-- > 0;) {
        const struct message *message = &fake->told[i].message;
        if (message->kind != MESSAGE_OBSERVATION || message->observation.tid != tid)
            continue;
        request.thread = message->observation.thread;
        request.tid = tid;
        fake_request(&request);
        return;
    }
    fail();
}

static struct snapshot_pool *pool(size_t number)
{
    return number ? channel_news(fake->channel)->snapshots : channel_snapshots(fake->channel);
}

static void give_back(size_t number, size_t count)
{
    struct fake_hoard *hoard = &fake->hoards[number];
    while (count-- && hoard->count)
        snapshot_pool_give(pool(number), hoard->items[--hoard->count], false);
}

void fake_hoard(size_t left)
{
    static const struct stack_place no_place = {0};
    struct snapshot *snapshot;
    for (size_t i = 0; i < 2; i++) {
        struct fake_hoard *hoard = &fake->hoards[i];
        while ((snapshot = snapshot_pool_take(pool(i), STACK_LIMIT_FIRST, &no_place)))
            hoard->items[hoard->count++] = snapshot;
        give_back(i, left);
    }
}

void fake_fall_behind(void)
{
    const struct message message = {.kind = MESSAGE_TICK};
    fake->is_absent = true;
    while (!channel_is_behind(fake->channel))
        assert_int_equal(channel_send(fake->channel, &message), 0);
}

void fake_hoard_no_more(void)
{
    for (size_t i = 0; i < 2; i++)
        give_back(i, SNAPSHOTS_MAX);
}

/* ---- The sampler's thread ---- */

static void *run(void *context)
{
    struct fake *own = context;
    while (sem_wait(&own->goes)) {
    }
    own->result = sampler_run(&own->sampler);
    own->has_ended = true;
    sem_post(&own->waits);
    return NULL;
}

static bool is_collecting(void)
{
    return fake->sampler.collector && !fake->collector_has_ended;
}

static void collect(void)
{
    if (!is_collecting())
        return;
    fake->collector_until_ns = collector_step(fake->sampler.collector);
    fake->collector_has_ended = !fake->collector_until_ns;
    work();
}

static void resume(void)
{
    sem_post(&fake->goes);
    while (sem_wait(&fake->waits)) {
    }
    work();
    collect();
}

bool fake_step(void)
{
    bool is_collectors =
        is_collecting() && (fake->has_ended || fake->collector_until_ns < fake->wait_until_ns);
    uint64_t until_ns = is_collectors ? fake->collector_until_ns : fake->wait_until_ns;
    if (fake->has_ended && !is_collectors)
        return false;
    if (until_ns > fake->now_ns)
        fake->now_ns = until_ns;
    if (is_collectors)
        collect();
    else
        resume();
    return !fake->has_ended || is_collecting();
}

void fake_wake(void)
{
    fake->wait_until_ns = fake->now_ns;
    assert_true(fake_step());
}

void fake_begin(void)
{
    fake->sampler.clock.ticks.start_ns = fake->now_ns;
    assert_int_equal(sampler_init(&fake->sampler, &fake->options, fake->channel), 0);
    fake->sampler.watches.keep_fds_below = 1000;
    fake->sampler.clock.ticks.start_ns = fake->now_ns;
    for (size_t i = 0; i < fake->process_count; i++)
        assert_int_equal(processes_add(&fake->sampler, fake->processes[i].pid), 0);
    assert_int_equal(sampler_prepare(&fake->sampler), 0);
    if (fake->sampler.collector)
        collector_start(fake->sampler.collector, false);
    assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
    fake->is_running = true;
    resume();
}

void fake_ticks(unsigned count)
{
    uint64_t until = atomic_load(&fake->sampler.progress.ticks) + count;
    for (unsigned steps = 0; atomic_load(&fake->sampler.progress.ticks) < until; steps++) {
        assert_true(steps < STEPS_MAX);
        assert_true(fake_step());
    }
}

void fake_run(struct fake_thread *thread, unsigned ticks)
{
    for (unsigned i = 0; i < ticks; i++) {
        thread->activity.running_ns += FAKE_PERIOD_NS;
        fake_ticks(1);
    }
}

void fake_end(void)
{
    sampler_stop(&fake->sampler);
    fake->wait_until_ns = fake->now_ns;
    for (unsigned steps = 0; fake_step(); steps++)
        assert_true(steps < STEPS_MAX);
    assert_int_equal(fake->result, 0);
}

int fake_set_up(void **state)
{
    fake = calloc(1, sizeof *fake);
    assert_non_null(fake);
    fake->now_ns = FAKE_START_NS;
    fake->options = (struct sampler_options){
        .capture = CAPTURE_PTRACE,
        .period_ns = FAKE_PERIOD_NS,
        .has_seed = true,
        .seed = 1,
        .max_pause_percent = 1,
    };
    fake->scope = PERF_SCOPE_CPUS;
    fake->record_error = -EPERM;
    assert_int_equal(channel_new(&fake->channel), 0);
    assert_int_equal(sem_init(&fake->goes, 0, 0), 0);
    assert_int_equal(sem_init(&fake->waits, 0, 0), 0);
    *state = fake;
    return 0;
}

/* A failed test may have left the sampler running. */
int fake_tear_down(void **state)
{
    (void)state;
    fake->is_absent = false;
    fake_hoard_no_more();
    if (fake->is_running) {
        sampler_stop(&fake->sampler);
        for (unsigned steps = 0; steps < STEPS_MAX && fake_step(); steps++) {
        }
        pthread_join(fake->thread, NULL);
        sampler_free(&fake->sampler);
    }
    work();
    channel_free(fake->channel);
    sem_destroy(&fake->goes);
    sem_destroy(&fake->waits);
    free(fake->told);
    free(fake);
    fake = NULL;
    return 0;
}
