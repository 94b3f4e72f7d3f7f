/* bench-switch-cost ROUNDS MILLISECONDS: the cost of recording context switches, for each switch.
 *
 * A child has two threads that wake each other over pipes, on one CPU: each round trip is two
 * switches. In turn, in random order, nothing is recorded; all switches of other processes; those
 * of the child, with the top of its stacks or without; and those of the child by perf events.
 * Prints, for each, the median time of a switch in ns, and the median of its difference from the
 * turn of the same round in which nothing was recorded: {"nothing": [2500, 0], ...}. What is not
 * permitted is left out. */
#include "base/clock.h"
#include "observe/bpf/switch_record.h"
#include "observe/switches.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 200
#define DEEP_BYTES 16384 /* stack in use, so that there is enough to copy */
#define SETTLE_US 20000
#define TICK_US 10000
/* As in sampler/off_cpu_samples.c. */
#define WINDOW_NS 5000000
#define PAUSE_NS 500000
#define STACK_BYTES 4096

struct shared {
    _Atomic uint64_t trips;
    _Atomic pid_t tids[2];
};

struct player {
    int from, to;
    unsigned number;
};

static struct shared *shared;

/* ---- The child ---- */

static void *play(void *argument)
{
    const struct player *player = argument;
    volatile char deep[DEEP_BYTES];
    char byte = 'x';
    deep[0] = deep[DEEP_BYTES - 1] = byte;
    shared->tids[player->number] = (pid_t)syscall(SYS_gettid);
    if (player->number == 0 && write(player->to, &byte, 1) != 1)
        return NULL;
    while (read(player->from, &byte, 1) == 1 && write(player->to, &byte, 1) == 1)
        shared->trips += player->number;
    return NULL;
}

static void pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static pid_t start_child(void)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    int there[2], back[2];
    pthread_t threads[2];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(0);
    if (pipe(there) || pipe(back))
        _exit(1);
    struct player players[2] = {{back[0], there[1], 0}, {there[0], back[1], 1}};
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, play, &players[i]);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    _exit(1);
}

/* ---- Ways to record ---- */

struct recorder {
    struct switch_record *record;
    struct switches *events;
};

static int open_record(const struct switch_options *options, pid_t followed,
                       struct recorder *recorder)
{
    const struct ticks ticks = {monotonic_ns(), TICK_US * 1000, 1};
    int err = switch_record_open(options, &recorder->record);
    if (!err)
        switch_record_set_ticks(recorder->record, &ticks);
    if (!err && followed)
        err = switch_record_follow(recorder->record, followed);
    return err;
}

static int start_record(uint32_t stack_bytes, pid_t followed, struct recorder *recorder)
{
    const struct switch_options options = {.stack_bytes = stack_bytes};
    return open_record(&options, followed, recorder);
}

static int record_nothing(pid_t pid, struct recorder *recorder)
{
    (void)pid, (void)recorder;
    return 0;
}

static int record_others(pid_t pid, struct recorder *recorder)
{
    (void)pid;
    return start_record(STACK_BYTES, 0, recorder);
}

static int record_1_kib(pid_t pid, struct recorder *recorder)
{
    return start_record(1024, pid, recorder);
}

static int record_4_kib(pid_t pid, struct recorder *recorder)
{
    return start_record(STACK_BYTES, pid, recorder);
}

static const struct switch_options before_ticks = {
    .stack_bytes = STACK_BYTES, .stack_window_ns = WINDOW_NS, .stack_pause_ns = PAUSE_NS};

static int record_before_ticks(pid_t pid, struct recorder *recorder)
{
    return open_record(&before_ticks, pid, recorder);
}

static int record_wakes(pid_t pid, struct recorder *recorder)
{
    struct switch_options options = before_ticks;
    options.tells_wakes = true;
    return open_record(&options, pid, recorder);
}

static int record_chains(pid_t pid, struct recorder *recorder)
{
    struct switch_options options = before_ticks;
    options.tells_wakes = options.keeps_chains = true;
    return open_record(&options, pid, recorder);
}

static int watched(int err, const struct recorder *recorder)
{
    if (!err)
        switch_record_watch_cpus(recorder->record, true);
    return err;
}

static int watch_others(pid_t pid, struct recorder *recorder)
{
    return watched(record_others(pid, recorder), recorder);
}

static int watch_wakes(pid_t pid, struct recorder *recorder)
{
    return watched(record_wakes(pid, recorder), recorder);
}

static int record_events(pid_t pid, struct recorder *recorder)
{
    (void)pid;
    int err = switches_new(&recorder->events);
    for (unsigned i = 0; i < 2 && !err; i++)
        err = switches_add(recorder->events, SWITCHES_ALWAYS, i, shared->tids[i]);
    return err;
}

static const struct way {
    const char *name;
    int (*start)(pid_t pid, struct recorder *recorder);
} ways[] = {
    {"nothing", record_nothing},
    {"other processes", record_others},
    {"registers, 1 KiB of stack", record_1_kib},
    {"registers, 4 KiB of stack", record_4_kib},
    {"4 KiB in the last 5 ms before a tick", record_before_ticks},
    {"as used: also who ends waits", record_wakes},
    {"with --kernel", record_chains},
    {"other processes, while threads wait for CPUs", watch_others},
    {"as used, while threads wait for CPUs", watch_wakes},
    {"perf events", record_events},
};
#define WAYS (sizeof ways / sizeof *ways)

/* ---- Turns ---- */

static int ignore(void *argument, const struct past_departure *past)
{
    (void)argument, (void)past;
    return 0;
}

/* Returns the time of a switch; 0: this can't be recorded. */
static double take_turn(const struct way *way, pid_t pid, unsigned ms)
{
    struct recorder recorder = {0};
    double ns = 0;
    if (way->start(pid, &recorder) == 0) {
        usleep(SETTLE_US);
        uint64_t from_ns = monotonic_ns(), trips = shared->trips;
        uint64_t end_ns = from_ns + ms * 1000000ull;
        while (monotonic_ns() < end_ns) {
            if (recorder.record)
                switch_record_drain(recorder.record, ignore, NULL);
            usleep(TICK_US);
        }
        ns = (double)(monotonic_ns() - from_ns) / (double)(shared->trips - trips) / 2;
    }
    switch_record_free(recorder.record);
    if (recorder.events)
        switches_free(recorder.events);
    return ns;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

static void take_round(pid_t pid, unsigned ms, double ret_ns[WAYS])
{
    unsigned order[WAYS];
    for (unsigned i = 0; i < WAYS; i++) {
        unsigned j = (unsigned)rand() % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (unsigned i = 0; i < WAYS; i++)
        ret_ns[order[i]] = take_turn(&ways[order[i]], pid, ms);
}

int main(int argc, char **argv)
{
    static double ns[ROUNDS_MAX][WAYS], times[ROUNDS_MAX], more[ROUNDS_MAX];
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
    unsigned ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 300;
    const char *comma = "{";
    if (rounds == 0 || rounds > ROUNDS_MAX)
        return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    pid_t pid = start_child();
    while (shared->trips < 1000 && waitpid(pid, NULL, WNOHANG) == 0)
        usleep(1000);
    for (unsigned i = 0; i < rounds; i++)
        take_round(pid, ms, ns[i]);
    for (unsigned way = 0; way < WAYS; way++) {
        unsigned count = 0;
        for (unsigned i = 0; i < rounds; i++) {
            times[count] = ns[i][way];
            more[count] = ns[i][way] - ns[i][0];
            count += ns[i][way] > 0;
        }
        if (count == 0)
            continue;
        printf("%s\"%s\": [%.0f, %.0f]", comma, ways[way].name, median(times, count),
               median(more, count));
        comma = ", ";
    }
    printf("}\n");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}
