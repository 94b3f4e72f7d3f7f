/* What all targets of the benchmarks share: how they talk to the benchmark.
 *
 * A target prints "ready" when it is in the state to be sampled. To each line that it then reads
 * from its standard input it answers with one line, what it has counted so far: the difference of
 * two answers is one measured window. It exits when its input ends, so that an interrupted
 * benchmark leaves none behind.
 *
 * Meanwhile, the thread that answers sleeps in a read, which a stop does not interrupt. It is one
 * more thread for samplers to observe. */
#ifndef TARGET_H
#define TARGET_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ends the program unless `holds`, because the benchmark would not measure what it claims. */
static inline void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static inline unsigned number_of(int argc, char **argv, int i, unsigned missing)
{
    long value = argc > i ? strtol(argv[i], NULL, 10) : (long)missing;
    if (value < 0 || value > 1000000) {
        fprintf(stderr, "not a usable number: %s\n", argv[i]);
        exit(2);
    }
    return (unsigned)value;
}

/* Answers with `answer` until the end of the input. */
static inline void serve(void (*answer)(void))
{
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        answer();
        putchar('\n');
        fflush(stdout);
    }
}

#endif
