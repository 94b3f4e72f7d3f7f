/* The cost of custom profiles to the program that has them: the CPU time of fgprof_custom_add and
 * fgprof_custom_remove, by stack size, while some values are held all the time.
 *
 *   bench-custom [THREADS [HELD [PAIRS]]] */
#include "fgprof_profiles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 64
#define ROUNDS 5
#define MEMORY_BYTES (32u << 20) /* more stacks than this may not fit */

static fgprof_custom_profile *profile;
static unsigned long threads = 1, held = 1000, pairs = 200000;
static size_t depth;

struct work {
    pthread_t thread;
    uintptr_t first;
    double add_ns, remove_ns; /* per call */
};

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* CPU time, because other programs may run
                                                     meanwhile */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const void *value_of(uintptr_t number)
{
    return (const void *)number;
}

/* In blocks of as many calls as values are held, so that each kind of call is timed separately. */
static void measure(struct work *work)
{
    uintptr_t value = work->first;
    for (unsigned long done = 0; done < pairs; done += held, value += held) {
        double begin_ns = cpu_ns();
        for (unsigned long i = 0; i < held; i++) {
            if (fgprof_custom_add(profile, value_of(value + i), 0))
                abort();
        }
        double added_ns = cpu_ns();
        for (unsigned long i = 0; i < held; i++)
            fgprof_custom_remove(profile, value_of(value + i));
        work->add_ns += added_ns - begin_ns;
        work->remove_ns += cpu_ns() - added_ns;
    }
}

/* Measures with that much more of the stack in use. */
static __attribute__((noinline)) void measure_below(struct work *work, size_t bytes)
{
    volatile char filled[bytes + 1];
    filled[bytes] = filled[0] = 1;
    measure(work);
    filled[bytes] = 2;
}

static void *run(void *context)
{
    struct work *work = context;
    measure_below(work, depth);
    unsigned long done = (pairs + held - 1) / held * held;
    work->add_ns /= (double)done;
    work->remove_ns /= (double)done;
    return NULL;
}

static void run_round(double *ret_add_ns, double *ret_remove_ns)
{
    static struct work all[THREADS_MAX];
    *ret_add_ns = *ret_remove_ns = 0;
    for (unsigned long i = 0; i < threads; i++) {
        all[i] = (struct work){.first = (i + 1) << 32};
        if (pthread_create(&all[i].thread, NULL, run, &all[i]))
            abort();
    }
    for (unsigned long i = 0; i < threads; i++) {
        pthread_join(all[i].thread, NULL);
        *ret_add_ns += all[i].add_ns / (double)threads;
        *ret_remove_ns += all[i].remove_ns / (double)threads;
    }
}

static int by_size(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void measure_depth(void)
{
    double add_ns[ROUNDS], remove_ns[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++)
        run_round(&add_ns[i], &remove_ns[i]);
    qsort(add_ns, ROUNDS, sizeof *add_ns, by_size);
    qsort(remove_ns, ROUNDS, sizeof *remove_ns, by_size);
    printf("%8lu %8lu %10zu %8.0f %10.0f\n", threads, held, depth, add_ns[ROUNDS / 2],
           remove_ns[ROUNDS / 2]);
}

int main(int argc, char **argv)
{
    static const size_t depths[] = {0, 1000, 3000, 7000, 15000};
    threads = argc > 1 ? strtoul(argv[1], NULL, 10) : threads;
    held = argc > 2 ? strtoul(argv[2], NULL, 10) : held;
    pairs = argc > 3 ? strtoul(argv[3], NULL, 10) : pairs;
    if (!threads || threads > THREADS_MAX || !held || fgprof_custom_new("bench", &profile)) {
        fprintf(stderr, "usage: bench-custom [THREADS [HELD [PAIRS]]]\n");
        return 2;
    }
    printf("%8s %8s %10s %8s %10s\n", "threads", "held", "stack B", "add ns", "remove ns");
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        fflush(stdout);
        depth = depths[i];
        /* A child starts with empty memory. */
        if (threads * held * (depth + 1000) < MEMORY_BYTES && fork() == 0) {
            measure_depth();
            return 0;
        }
        wait(NULL);
    }
    return 0;
}
