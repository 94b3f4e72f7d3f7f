/* bench-malloc-cost: the cost of one pair of malloc and free, 24 frames deep and with 516 bytes,
 * and, with the agent preloaded, the cost of a sample. Prints two lines of figures, in ns: for
 * objects that are freed immediately, and for replacing one of 16384 by a new one, at random:
 *
 *     LD_PRELOAD=.../libfgprof-agent.so FGPROF_AGENT_CHILDREN=1 bench-malloc-cost
 *
 * All ways are measured in turn in one process, so that the machine's state affects them equally.
 * Each figure is the upper end of the fastest tenth of 101 rounds. Plain: libc's functions, by
 * their addresses. */
#include "reader.h"

#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

#define DEPTH 24
#define BYTES 516
#define PAIRS 100000
#define ROUNDS 101

static void *slots[16384];
static bool is_kept;
static const unsigned multiplier = 2654435761u;
static void *(*allocate)(size_t);
static void (*give_back)(void *);

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Recurses with frames of at least 100 bytes, and runs the pairs at the end. */
__attribute__((noinline)) static uint64_t at_depth(unsigned depth, unsigned pairs)
{
    char frame[100];
    __asm__ volatile("" : : "r"(frame) : "memory");
    if (depth) {
        uint64_t ns = at_depth(depth - 1, pairs);
        __asm__ volatile("" : : "r"(frame) : "memory");
        return ns;
    }
    uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < pairs; i++) {
        void **slot = &slots[(i * multiplier >> 8) % (sizeof slots / sizeof *slots)];
        void *object = allocate(BYTES);
        *(volatile char *)object = 1;
        give_back(is_kept ? *slot : object);
        *slot = is_kept ? object : NULL;
    }
    return now_ns() - start_ns;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double quick(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 10];
}

static double plain[ROUNDS], idle[ROUNDS], sampling[ROUNDS], dense[ROUNDS];

static void measure(struct reader *reader, void *next_malloc, void *next_free)
{
    uint64_t samples = 0, made = reader->made, stack_bytes = reader->stack_bytes;
    uint64_t lost = reader->header->made_lost;
    for (unsigned round = 0; round < ROUNDS; round++) {
        allocate = (void *(*)(size_t))next_malloc;
        give_back = (void (*)(void *))next_free;
        plain[round] = (double)at_depth(DEPTH, PAIRS) / PAIRS;
        allocate = malloc;
        give_back = free;
        idle[round] = (double)at_depth(DEPTH, PAIRS) / PAIRS;
        reader_start(reader, AGENT_WANTS_HEAP, AGENT_RATE_DEFAULT);
        sampling[round] = (double)at_depth(DEPTH, PAIRS) / PAIRS;
        reader_drain(reader);
        /* Every pair is a sample, as many as fit in the ring. */
        reader_start(reader, AGENT_WANTS_HEAP, 1);
        uint64_t before = reader->made;
        uint64_t dense_ns = at_depth(DEPTH, 100);
        reader_drain(reader);
        dense[round] = (double)dense_ns / (double)(reader->made - before);
        samples += reader->made - before;
        reader_stop(reader);
    }
    double base = quick(plain);
    stack_bytes = (reader->stack_bytes - stack_bytes) / (reader->made - made);
    printf("%s: plain %.1f  idle +%.1f  sampling at 512 KiB +%.1f  a sample with its free +%.0f "
           "(stack of %llu bytes, %llu samples, %llu lost)\n",
           is_kept ? "replaced" : "freed", base, quick(idle) - base, quick(sampling) - base,
           quick(dense) - base, (unsigned long long)stack_bytes, (unsigned long long)samples,
           (unsigned long long)(reader->header->made_lost - lost));
}

int main(void)
{
    struct reader reader;
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    if (!libc || !reader_open(&reader, getpid())) {
        fputs("bench-malloc-cost: there is no agent\n", stderr);
        return 1;
    }
    measure(&reader, dlsym(libc, "malloc"), dlsym(libc, "free"));
    is_kept = true;
    measure(&reader, dlsym(libc, "malloc"), dlsym(libc, "free"));
    return 0;
}
