/* The samples of one account that wait for their time, and the number of ticks that each stands
 * for.
 *
 * Ticks and time come separately: a tick shows where a thread is, and the kernel's figures say how
 * long it was in that state since they were last read, which may be many ticks ago. If each sample
 * took the time since the one before it, its weight would be the distance of two ticks that
 * happened to find the thread in that state: for a thread that runs in bursts, an exponential
 * distribution, which doubles the variance of every stack's share, and favours one stack that is
 * found soon after another. So samples are collected, and the time booked meanwhile is divided
 * among them by ticks, each tick alike.
 *
 * A window has a row for each distinct sample. It closes after a second, so that a profile of the
 * last seconds has what happened then, but not before it has enough ticks to be useful; and it
 * closes when its rows are full. A thread that stays where it is has one row, for which nothing is
 * allocated. */
#ifndef FGPROF_COUNT_WINDOW_H
#define FGPROF_COUNT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_ROWS_MAX 64
#define WINDOW_TICKS_MIN 16
#define WINDOW_SPAN_NS 1000000000u

struct window_row {
    uint32_t sample; /* in the stack table */
    uint32_t ticks;  /* for which it stands */
    uint64_t weight; /* of its part of the process's time */
};

/* Zeroed at first. */
struct window {
    uint64_t begin_ns;       /* CLOCK_MONOTONIC: when the window before it closed */
    struct window_row only;  /* the row, if there is just one */
    struct window_row *rows; /* all rows, if there are more */
    size_t capacity;
    uint32_t count;
};

void window_free(struct window *window);

/* Its `count` rows. */
struct window_row *window_rows(struct window *window);

/* Adds a sample that stands for `ticks`, at least one. At these ticks the thread had `part` of its
 * process's time, 0 to 1. There must be room for another row. Returns 0, or -ENOMEM, and then
 * nothing has changed. */
int window_add(struct window *window, uint32_t sample, uint64_t ticks, double part);

/* Moves this many ticks from one sample to another. Returns how many it moved: none if the sample
 * has none, or there is no room. */
uint64_t window_move(struct window *window, uint32_t from, uint32_t to, uint64_t ticks);

/* Whether the window should close at `now_ns`. */
bool window_is_over(const struct window *window, uint64_t now_ns);

/* Divides `time_ns` among the rows by ticks, and `part_ns` also by the parts of the process's time,
 * both to the nanosecond, and begins a new window at `now_ns`. Fills in each row's sample and
 * times, and returns how many rows there were. */
struct window_part {
    uint32_t sample;
    uint32_t ticks; /* for which the row stood */
    uint64_t time_ns;
    uint64_t part_ns;
};
unsigned window_close(struct window *window, uint64_t now_ns, uint64_t time_ns, uint64_t part_ns,
                      struct window_part ret_parts[WINDOW_ROWS_MAX]);

#endif
