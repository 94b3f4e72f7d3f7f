/* The sampled mappings that still exist. Programs often map more than they need and unmap the head
 * and the tail, to get an aligned rest: a mapping counts as existing as long as its middle does.
 *
 * Data: a table of starts and lengths, which is searched linearly. Samples are rare, because
 * mappings are large. Nobody waits. In a child of fork it is empty. */
#ifndef FGPROF_AGENT_MAPPINGS_H
#define FGPROF_AGENT_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#define MAPPINGS_MAX 4096u

/* Makes the table. Returns false if there is no memory. */
bool mappings_init(void);

/* Returns false if the table is full. */
bool mappings_add(uint64_t start, uint64_t bytes);

/* Removes one whose middle is in the range, and returns its start; 0: there is none. */
uint64_t mappings_take(uint64_t start, uint64_t bytes);

#endif
