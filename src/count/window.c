#include "count/window.h"
#include "base/array.h"

#include <stdlib.h>

/* So that all ticks of a window have 32 bits. */
#define ROW_TICKS_MAX (UINT32_MAX / WINDOW_ROWS_MAX)
/* The weight of a tick at which the thread had all of its process's time. */
#define WEIGHT_ONE 65536

struct window_row *window_rows(struct window *window)
{
    return window->count > 1 ? window->rows : &window->only;
}

static const struct window_row *rows_of(const struct window *window)
{
    return window->count > 1 ? window->rows : &window->only;
}

void window_free(struct window *window)
{
    free(window->rows);
    *window = (struct window){0};
}

static void add_ticks(struct window_row *row, uint64_t ticks, double part)
{
    uint64_t room = ROW_TICKS_MAX - row->ticks;
    if (ticks > room)
        ticks = room;
    row->ticks += (uint32_t)ticks;
    row->weight += ticks * (uint64_t)(part * WEIGHT_ONE);
}

static struct window_row *find(struct window *window, uint32_t sample)
{
    struct window_row *rows = window_rows(window);
    for (uint32_t i = 0; i < window->count; i++) {
        if (rows[i].sample == sample)
            return &rows[i];
    }
    return NULL;
}

int window_add(struct window *window, uint32_t sample, uint64_t ticks, double part)
{
    struct window_row *row = find(window, sample);
    if (!row && window->count) {
        if (array_reserve(&window->rows, &window->capacity, window->count + 1))
            return -ENOMEM;
        if (window->count == 1)
            window->rows[0] = window->only;
    }
    if (!row) {
        row = window->count ? &window->rows[window->count] : &window->only;
        *row = (struct window_row){.sample = sample};
        window->count++;
    }
    add_ticks(row, ticks ? ticks : 1, part);
    return 0;
}

uint64_t window_move(struct window *window, uint32_t from, uint32_t to, uint64_t ticks)
{
    struct window_row *source = find(window, from);
    if (!source || !ticks)
        return 0;
    if (ticks >= source->ticks && !find(window, to)) {
        source->sample = to;
        return source->ticks;
    }
    /* A full window is closed at once, which is not done here. */
    if ((window->count >= WINDOW_ROWS_MAX - 1 && !find(window, to)) || window_add(window, to, 1, 0))
        return 0;
    source = find(window, from);
    struct window_row *target = find(window, to);
    if (ticks > source->ticks)
        ticks = source->ticks;
    uint64_t weight = source->weight * ticks / source->ticks;
    target->ticks += (uint32_t)ticks - 1;
    target->weight += weight;
    source->weight -= weight;
    source->ticks -= (uint32_t)ticks;
    if (!source->ticks) {
        *source = window_rows(window)[window->count - 1];
        window->count--;
    }
    if (window->count == 1)
        window->only = window->rows[0];
    return ticks;
}

static uint64_t ticks_of_all(const struct window *window)
{
    const struct window_row *rows = rows_of(window);
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < window->count; i++)
        ticks += rows[i].ticks;
    return ticks;
}

bool window_is_over(const struct window *window, uint64_t now_ns)
{
    return window->count == WINDOW_ROWS_MAX || (now_ns >= window->begin_ns + WINDOW_SPAN_NS &&
                                                ticks_of_all(window) >= WINDOW_TICKS_MIN);
}

/* time * ticks / all, rounded down; all has at most 32 bits. */
static uint64_t part_of(uint64_t time_ns, uint64_t ticks, uint64_t all)
{
    return time_ns / all * ticks + time_ns % all * ticks / all;
}

/* Divides the thread's part of its process's time among the rows. If it had no part at any of their
 * ticks, divides it by ticks. */
static void divide_part(const struct window *window, uint64_t part_ns,
                        struct window_part ret_parts[WINDOW_ROWS_MAX])
{
    const struct window_row *rows = rows_of(window);
    double all = 0, sum = 0;
    uint64_t given_ns = 0;
    for (uint32_t i = 0; i < window->count; i++)
        all += (double)rows[i].weight;
    for (uint32_t i = 0; i < window->count; i++) {
        sum += all > 0 ? (double)rows[i].weight : rows[i].ticks;
        double until = (double)part_ns * sum / (all > 0 ? all : (double)ticks_of_all(window));
        bool is_all = i + 1 == window->count || until >= (double)part_ns;
        uint64_t until_ns = is_all ? part_ns : (uint64_t)until;
        ret_parts[i].part_ns = until_ns - given_ns;
        given_ns = until_ns;
    }
}

unsigned window_close(struct window *window, uint64_t now_ns, uint64_t time_ns, uint64_t part_ns,
                      struct window_part ret_parts[WINDOW_ROWS_MAX])
{
    const struct window_row *rows = rows_of(window);
    uint64_t all = ticks_of_all(window), ticks = 0, given_ns = 0;
    unsigned count = window->count;
    for (unsigned i = 0; i < count; i++) {
        ticks += rows[i].ticks;
        uint64_t until_ns = part_of(time_ns, ticks, all);
        ret_parts[i] = (struct window_part){rows[i].sample, rows[i].ticks, until_ns - given_ns, 0};
        given_ns = until_ns;
    }
    divide_part(window, part_ns, ret_parts);
    window->count = 0;
    window->begin_ns = now_ns;
    return count;
}
