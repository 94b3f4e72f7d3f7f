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

/* The sampler waits: it is the test's turn. */
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

/* Gives back what the observation owns. */
static void take_observation(struct fake_told *told, struct observation *observation)
{
    struct snapshot *snapshot = observation->snapshot;
    if (observation->program)
        told->program = observation->program->number;
    observation_release(observation);
    told->has_snapshot = snapshot != NULL;
    if (!snapshot)
        return;
    told->pc = registers_pc(&snapshot->registers);
    told->stack_capacity = snapshot->stack.capacity;
    told->stack_bytes = snapshot->stack.bytes;
    told->stack_byte = told->stack_bytes ? snapshot->stack.memory[0] : 0;
    snapshots_give(channel_snapshots(fake->channel), snapshot, true);
    observation->snapshot = NULL;
}

static void take(struct fake_told *told)
{
    struct message *message = &told->message;
    switch (message->kind) {
    case MESSAGE_OBSERVATION:
        take_observation(told, &message->observation);
        break;
    case MESSAGE_OBJECT:
        take_observation(told, &message->object.observation);
        if (message->object.news.name)
            snprintf(told->name, sizeof told->name, "%s", message->object.news.name);
        free(message->object.news.name);
        message->object.news.name = NULL;
        break;
    case MESSAGE_TICK:
        for (size_t i = 0; i < message->tick.thread_count && i < 8; i++)
            told->awake[i] = message->tick.threads[i];
        free(message->tick.threads);
        message->tick.threads = NULL;
        break;
    case MESSAGE_PROGRAM_ENDED:
        told->program = message->program->number;
        program_release(message->program);
        break;
    case MESSAGE_COPY:
    case MESSAGE_MOMENT:
        free(message->state);
        break;
    default:
        break;
    }
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
        count += message->kind == MESSAGE_OBJECT && message->object.news.kind == kind &&
                 message->object.news.change == change;
    }
    return count;
}

void fake_request(const struct request *request)
{
    assert_int_equal(channel_request(fake->channel, request), 0);
}

/* The worker knows a thread by what it was told of it. */
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

void fake_hoard(size_t left)
{
    static const struct stack_place no_place = {0};
    struct snapshots *snapshots = channel_snapshots(fake->channel);
    struct snapshot *snapshot;
    while ((snapshot = snapshots_take(snapshots, STACK_LIMIT_FIRST, &no_place)))
        fake->hoarded[fake->hoarded_count++] = snapshot;
    while (left-- && fake->hoarded_count)
        snapshots_give(snapshots, fake->hoarded[--fake->hoarded_count], false);
}

void fake_hoard_no_more(void)
{
    while (fake->hoarded_count)
        snapshots_give(channel_snapshots(fake->channel), fake->hoarded[--fake->hoarded_count],
                       false);
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

static void resume(void)
{
    sem_post(&fake->goes);
    while (sem_wait(&fake->waits)) {
    }
    work();
}

bool fake_step(void)
{
    if (fake->has_ended)
        return false;
    if (fake->wait_until_ns > fake->now_ns)
        fake->now_ns = fake->wait_until_ns;
    resume();
    return !fake->has_ended;
}

void fake_wake(void)
{
    fake->wait_until_ns = fake->now_ns;
    assert_true(fake_step());
}

void fake_begin(void)
{
    fake->sampler.clock.start_ns = fake->now_ns;
    assert_int_equal(sampler_init(&fake->sampler, &fake->options, fake->channel), 0);
    fake->sampler.watches.keep_fds_below = 1000;
    fake->sampler.clock.start_ns = fake->now_ns;
    for (size_t i = 0; i < fake->process_count; i++)
        assert_int_equal(sampled_add(&fake->sampler, fake->processes[i].pid), 0);
    assert_int_equal(sampler_prepare(&fake->sampler), 0);
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
    fake->scope = KERNEL_SCOPE_CPUS;
    fake->record_error = -EPERM;
    assert_int_equal(channel_new(&fake->channel), 0);
    assert_int_equal(sem_init(&fake->goes, 0, 0), 0);
    assert_int_equal(sem_init(&fake->waits, 0, 0), 0);
    *state = fake;
    return 0;
}

/* A test that has failed may have left the sampler in the middle. */
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
