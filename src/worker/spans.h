/* Slow spans: only the samples of long spans are kept.
 *
 * A span of a thread is the time for which ticks find it with the same value of a label and the
 * same ids. Until a span is known to be long, its samples are set aside: their rows in the stack
 * table are the thread's own (sample_labels.aside), and the next span of the thread uses the same
 * rows. Once a span has become long, they are added to the rows that count; if it ends before, they
 * are emptied. Samples outside of all spans are set aside for good. */
#ifndef FGPROF_WORKER_SPANS_H
#define FGPROF_WORKER_SPANS_H

#include "worker/labels.h"
#include "worker/means.h"
#include "worker/results.h"
#include "worker/threads.h"

/* The thread was seen at `at_ns`: begins a new span, or ends the current one, to whose samples
 * nothing may be owed. `number` is the thread's. Returns 0 or -ENOMEM. */
int spans_note(const struct span_options *options, struct results *results,
               struct counted_thread *thread, uint32_t number, const struct span_sight *sight,
               uint64_t at_ns);

/* Whether spans_note with these arguments would end the span, or find that it is long. */
bool spans_change(const struct span_options *options, const struct counted_thread *thread,
                  const struct span_sight *sight, uint64_t at_ns);

/* The thread is gone: ends its span. Returns 0 or -ENOMEM. */
int spans_end(const struct span_options *options, struct results *results,
              struct counted_thread *thread, uint32_t number);

/* Call this before each tick of the process: places open waits of spans that have ended. Returns 0
 * or -ENOMEM. */
int spans_place_waits(struct results *results, const struct counted_threads *threads,
                      uint32_t process_number);

/* For sample_labels.aside of the thread's next sample. */
uint32_t spans_aside(const struct span_options *options, const struct counted_thread *thread,
                     uint32_t number);

#endif
