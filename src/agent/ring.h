/* The ring that records go through to the reader: see agent/format.h. Any thread may append, and
 * so may a signal handler on top of a thread that does. Nobody waits for another one. */
#ifndef FGPROF_AGENT_RING_H
#define FGPROF_AGENT_RING_H

#include "agent/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record that is being written. */
struct ring_place {
    struct agent_record *record;
    uint64_t position;
};

/* Room that only records of AGENT_FREED may use: a lost free makes an object look live for ever,
 * while a lost allocation only makes the sample smaller. */
#define RING_RESERVE_BYTES (AGENT_RING_BYTES / 8)

/* After the ring has been full for this long without the reader taking anything, the agent becomes
 * idle. */
#define RING_PATIENCE_NS 10000000000ull

/* Reserves a record and the `bytes` that follow it. Sets the record's size and kind, and zeroes the
 * other fields. Returns false if there is no room: that is counted as lost. */
bool ring_reserve(struct agent_header *header, enum agent_record_kind kind, size_t bytes,
                  struct ring_place *ret_place);

/* Hands the record to the reader. */
void ring_commit(const struct ring_place *place);

/* Makes padding of the record, and counts it as lost. */
void ring_give_up(struct agent_header *header, const struct ring_place *place);

/* Counts a record that could not be made. */
void ring_count_lost(struct agent_header *header, enum agent_record_kind kind);

/* CLOCK_MONOTONIC, as in records. */
uint64_t ring_now_ns(void);

#endif
