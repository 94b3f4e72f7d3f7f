/* How the targets of the part "truth" account for their own time.
 *
 * Each thread has one account, and each of its functions reads the clocks once, as the last thing
 * that it does, and is charged the time since the thread's previous reading. So every moment
 * belongs to one function, and the parts add up. The time of a reading itself is divided equally:
 * one half goes to the function that reads, the other to the next, so each function gets the same.
 *
 * The answer to a line of input:
 *   {"ns": time, "threads": [{"thread": NAME, "tid": TID, "open_ns": N,
 *     "functions": {NAME: {"calls": N, "wall_ns": N, "cpu_ns": N, "delay_ns": N}, ...}}, ...]}
 * where open_ns is the time since the thread's last reading, which is negative if it has read
 * since, and delay_ns is how long it waited for a CPU, if its account has that. */
#ifndef TRUTH_ACCOUNT_H
#define TRUTH_ACCOUNT_H

#include "../target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ACCOUNTS_MAX 64
#define FUNCTIONS_MAX 6
/* Steps of compute() to time, to learn how long one takes. */
#define STEPS_TRIED 200000

struct clocks {
    _Atomic uint64_t wall_ns, cpu_ns, delay_ns;
};

struct account {
    const char *thread;
    const char *functions[FUNCTIONS_MAX + 1]; /* ends with NULL */
    bool has_delay;
    unsigned number; /* for the thread's own use */
    pid_t tid;
    int schedstat_fd;
    uint64_t random;
    struct clocks last;
    struct {
        _Atomic uint64_t calls;
        struct clocks spent;
    } totals[FUNCTIONS_MAX];
};

static struct account accounts[ACCOUNTS_MAX];
static unsigned account_count;
static _Atomic unsigned accounts_begun;
static double steps_per_us;

static inline uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The second value in schedstat, "time spent waiting on a runqueue (in nanoseconds)": the kernel's
 * Documentation/scheduler/sched-stats.rst. */
static inline uint64_t thread_delay_ns(const struct account *account)
{
    char text[96];
    if (!account->has_delay)
        return 0;
    ssize_t length = pread(account->schedstat_fd, text, sizeof text - 1, 0);
    require(length > 0, "schedstat");
    text[length] = '\0';
    const char *space = strchr(text, ' ');
    require(space != NULL, "schedstat");
    return strtoull(space, NULL, 10);
}

/* Only the thread itself writes to its account. */
static inline void pass(_Atomic uint64_t *total, _Atomic uint64_t *last, uint64_t now)
{
    uint64_t before = atomic_load_explicit(last, memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(total, memory_order_relaxed);
    atomic_store_explicit(total, sum + (now - before), memory_order_relaxed);
    atomic_store_explicit(last, now, memory_order_relaxed);
}

/* Ends a function of the calling thread: all the time since the last call belongs to that function.
 */
static __attribute__((noinline)) void end_of(struct account *account, unsigned function)
{
    struct clocks *spent = &account->totals[function].spent;
    account->totals[function].calls++;
    if (account->has_delay)
        pass(&spent->delay_ns, &account->last.delay_ns, thread_delay_ns(account));
    pass(&spent->wall_ns, &account->last.wall_ns, now_ns());
    pass(&spent->cpu_ns, &account->last.cpu_ns, thread_cpu_ns());
}

/* Never 0, because all further numbers would be 0, too. */
static inline uint64_t random_seed(unsigned number)
{
    return 0x9e3779b97f4a7c15u * ((uint64_t)number + 1);
}

/* xorshift64*, by S. Vigna: "An experimental exploration of Marsaglia's xorshift generators"
 * (2014). Returns a number from 0 to 1. */
static inline double random_share(uint64_t *random)
{
    uint64_t state = *random;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    *random = state;
    return (double)((state * 0x2545f4914f6cdd1du) >> 11) / 9007199254740992.0;
}

static inline double chance(struct account *account)
{
    return random_share(&account->random);
}

/* Starts the account of the calling thread. */
static inline void begin(struct account *account)
{
    char path[64];
    account->tid = gettid();
    account->random = random_seed(account->number);
    pthread_setname_np(pthread_self(), account->thread);
    /* By default a sleep may take 50 us longer (PR_SET_TIMERSLACK, prctl(2)). */
    prctl(PR_SET_TIMERSLACK, 1);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)account->tid);
    account->schedstat_fd = account->has_delay ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    account->last.delay_ns = thread_delay_ns(account);
    account->last.wall_ns = now_ns();
    account->last.cpu_ns = thread_cpu_ns();
    accounts_begun++;
}

/* Computes without calls or clock readings. Each step depends on the one before it. */
static inline __attribute__((always_inline)) void compute_steps(uint64_t steps)
{
    uint64_t state = 1;
    for (uint64_t i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state));
    }
}

static inline __attribute__((always_inline)) void compute_us(double us)
{
    compute_steps((uint64_t)(us * steps_per_us));
}

/* The minimum of several tries, so that interrupts do not count. */
static inline void learn_speed(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t begin_ns = thread_cpu_ns();
        compute_steps(STEPS_TRIED);
        uint64_t ns = thread_cpu_ns() - begin_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    steps_per_us = STEPS_TRIED * 1000.0 / (double)least_ns;
}

/* A separate function, so that a tool that follows frame pointers, which libc lacks, misses this
 * one and finds its caller. */
static __attribute__((noinline)) void nap(double us)
{
    uint64_t ns = (uint64_t)(us * 1000);
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static inline void start(void *(*function)(void *), struct account account)
{
    pthread_t thread;
    require(account_count < ACCOUNTS_MAX, "accounts");
    account.number = account_count;
    accounts[account_count] = account;
    require(!pthread_create(&thread, NULL, function, &accounts[account_count]), "thread");
    account_count++;
}

static void print_account(const struct account *account, uint64_t ns)
{
    printf("{\"thread\": \"%s\", \"tid\": %d, \"open_ns\": %" PRId64 ", \"functions\": {",
           account->thread, (int)account->tid, (int64_t)(ns - account->last.wall_ns));
    for (unsigned i = 0; i < FUNCTIONS_MAX && account->functions[i]; i++)
        printf("%s\"%s\": {\"calls\": %" PRIu64 ", \"wall_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64
               ", \"delay_ns\": %" PRIu64 "}",
               i ? ", " : "", account->functions[i], account->totals[i].calls,
               account->totals[i].spent.wall_ns, account->totals[i].spent.cpu_ns,
               account->totals[i].spent.delay_ns);
    printf("}}");
}

static void answer(void)
{
    uint64_t ns = now_ns();
    printf("{\"ns\": %" PRIu64 ", \"threads\": [", ns);
    for (unsigned i = 0; i < account_count; i++) {
        printf("%s", i ? ", " : "");
        print_account(&accounts[i], ns);
    }
    printf("]}");
}

/* Prints "ready" once all threads have started their accounts. */
static inline void serve_accounts(void)
{
    while (accounts_begun < account_count)
        nap(1000);
    serve(answer);
}

#endif
