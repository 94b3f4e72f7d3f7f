/* What faults that are planted in the reader do. */
#ifndef FGPROF_TESTS_UNIT_READER_PLANTED_H
#define FGPROF_TESTS_UNIT_READER_PLANTED_H

#include <stdlib.h>

static volatile int crash_at; /* not a constant: the compiler sees nothing wrong */

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
