/* The faults that tests plant in the reader process. */
#ifndef FGPROF_TESTS_UNIT_READER_PLANTED_H
#define FGPROF_TESTS_UNIT_READER_PLANTED_H

#include <stdlib.h>

static volatile int crash_at; /* not a constant, so that the compiler does not warn */

static inline void eat_memory(void)
{
    for (;;) {
        volatile char *memory = malloc(1 << 20);
        if (!memory)
            abort();
        memory[0] = 1;
    }
}

#endif
