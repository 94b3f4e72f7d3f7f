/* The tables: functions, threads, waits. */
#include "cli/top/screen.h"

#include <curses.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP_COLUMNS_MAX 8

/* The columns of a table: which fit into the window, and where they are. */
struct top_column {
    const char *title;
    int columns;    /* its width; 0: the width that the others leave */
    int shown_from; /* shown in windows of at least this width */
    bool is_number; /* aligned to the right */
};

struct top_layout {
    const struct top_column *table;
    size_t count;
    int at[TOP_COLUMNS_MAX], columns[TOP_COLUMNS_MAX]; /* 0 columns: not shown */
};

static struct top_layout top_lay_out(const struct top_column *table, size_t count)
{
    struct top_layout layout = {.table = table, .count = count};
    int left = COLS - 1, x = 0;
    for (size_t i = 0; i < count; i++) {
        if (COLS >= table[i].shown_from && table[i].columns)
            left -= table[i].columns + 1;
    }
    for (size_t i = 0; i < count; i++) {
        int columns = table[i].columns ? table[i].columns : left;
        if (COLS < table[i].shown_from || columns <= 0 || x + columns >= COLS)
            continue;
        layout.at[i] = x;
        layout.columns[i] = columns;
        x += columns + 1;
    }
    return layout;
}

/* Moves the cursor to the cell. Returns whether the cell is shown. */
static bool go_to_cell(const struct top_layout *layout, int y, size_t column)
{
    return layout->columns[column] && move(y, layout->at[column]) == OK;
}

/* `sorted`: the column that the rows are sorted by. */
static void put_titles(const struct top_layout *layout, int y, size_t sorted)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct top_column *column = &layout->table[i];
        attr_t look = i == sorted ? A_BOLD | A_REVERSE : A_BOLD;
        if (!go_to_cell(layout, y, i))
            continue;
        attron(look);
        put_format(column->is_number ? "%*s" : "%-*s", layout->columns[i], column->title);
        attroff(look);
    }
}

static void put_cell(const struct top_layout *layout, int y, size_t column, const char *text)
{
    if (go_to_cell(layout, y, column))
        put_text(text, layout->columns[column]);
}

static void put_number(const struct top_layout *layout, int y, size_t column, int digits,
                       double number)
{
    if (go_to_cell(layout, y, column))
        put_format("%*.*f", layout->columns[column], digits, number);
}

#define ALWAYS 0
#define NEVER 9999
#define STATES_COLUMNS 8

enum {
    FUNCTION_SELF,
    FUNCTION_TOTAL,
    FUNCTION_STATES,
    FUNCTION_SELF_S,
    FUNCTION_TOTAL_S,
    FUNCTION_NAME,
    FUNCTION_MODULE,
    FUNCTION_COLUMNS
};

static const struct top_column function_columns[FUNCTION_COLUMNS] = {
    [FUNCTION_SELF] = {"SELF%", 6, ALWAYS, true},
    [FUNCTION_TOTAL] = {"TOTAL%", 6, ALWAYS, true},
    [FUNCTION_STATES] = {"STATES", STATES_COLUMNS, 56, false},
    [FUNCTION_SELF_S] = {"SELF s", 8, 72, true},
    [FUNCTION_TOTAL_S] = {"TOTAL s", 8, 72, true},
    [FUNCTION_NAME] = {"FUNCTION", 0, ALWAYS, false},
    [FUNCTION_MODULE] = {"MODULE", 20, 100, false},
};

enum {
    THREAD_ID,
    THREAD_NAME,
    THREAD_STATES,
    THREAD_RUN,
    THREAD_RUNNABLE_PART,
    THREAD_WAIT,
    THREAD_SYSCALL,
    THREAD_FUNCTION,
    THREAD_COLUMNS
};

static const struct top_column thread_columns[THREAD_COLUMNS] = {
    [THREAD_ID] = {"TID", 9, 50, true},
    [THREAD_NAME] = {"THREAD", 15, ALWAYS, false},
    [THREAD_STATES] = {"STATES", STATES_COLUMNS, 90, false},
    [THREAD_RUN] = {"RUN%", 4, ALWAYS, true},
    [THREAD_RUNNABLE_PART] = {"CPU WAIT%", 9, 64, true},
    [THREAD_WAIT] = {"ASLEEP%", 7, ALWAYS, true},
    [THREAD_SYSCALL] = {"SYSCALL", 15, 80, false},
    [THREAD_FUNCTION] = {"FUNCTION", 0, ALWAYS, false},
};

enum { WAIT_WAITERS, WAIT_PART, WAIT_S, WAIT_RESOURCE, WAIT_OWNER, WAIT_COLUMNS };

static const struct top_column wait_columns[WAIT_COLUMNS] = {
    [WAIT_WAITERS] = {"WAITERS", 7, ALWAYS, true},
    [WAIT_PART] = {"WAIT%", 7, ALWAYS, true},
    [WAIT_S] = {"WAIT s", 8, 50, true},
    [WAIT_RESOURCE] = {"WAITED FOR", 0, ALWAYS, false},
    [WAIT_OWNER] = {"OWNER", 18, ALWAYS, false},
};

static uint64_t elapsed_of(const struct top_view *view)
{
    return view ? view->summary.elapsed_ns : 0;
}

/* A time as a share of the last second of one thread, in percent. */
static double top_percent(const struct top_screen *screen, uint64_t ns)
{
    uint64_t recent_ns = elapsed_of(screen->now) - elapsed_of(screen->before);
    return recent_ns ? 100 * (double)ns / (double)recent_ns : 0;
}

/* A function without a name is shown as in folded stacks: "[libfoo.so]". The resource that its
 * thread waits for follows in brackets. */
static void put_function(const struct top_layout *layout, int y, size_t column, const char *name,
                         const char *module, const char *resource)
{
    char text[512] = "[unknown]";
    if (name)
        snprintf(text, sizeof text, *resource ? "%s (%s)" : "%s", name, resource);
    else if (*module)
        snprintf(text, sizeof text, *module == '[' ? "%s" : "[%s]", basename(module));
    put_cell(layout, y, column, text);
}

static void draw_function(const struct top_screen *screen, const struct top_layout *layout, int y,
                          const struct top_function *row)
{
    put_number(layout, y, FUNCTION_SELF, 1, top_percent(screen, row->recent_own_ns));
    put_number(layout, y, FUNCTION_TOTAL, 1, top_percent(screen, row->recent_total_ns));
    if (go_to_cell(layout, y, FUNCTION_STATES))
        put_states(row->recent_state_ns, STATES_COLUMNS);
    put_number(layout, y, FUNCTION_SELF_S, 2, (double)row->own_ns / 1e9);
    put_number(layout, y, FUNCTION_TOTAL_S, 2, (double)row->total_ns / 1e9);
    put_function(layout, y, FUNCTION_NAME, row->name, row->module, "");
    put_cell(layout, y, FUNCTION_MODULE, basename(row->module));
}

static size_t sorted_column(struct top_order order)
{
    switch (order.sort) {
    case TOP_BY_SELF:
        return order.since_start ? FUNCTION_SELF_S : FUNCTION_SELF;
    case TOP_BY_TOTAL:
        return order.since_start ? FUNCTION_TOTAL_S : FUNCTION_TOTAL;
    default:
        return FUNCTION_NAME;
    }
}

void top_draw_functions(struct top_screen *screen, int y)
{
    struct top_function *rows;
    struct top_column columns[FUNCTION_COLUMNS];
    memcpy(columns, function_columns, sizeof columns);
    /* A narrow window has room for one pair of columns. */
    if (screen->order.since_start && COLS < columns[FUNCTION_SELF_S].shown_from) {
        columns[FUNCTION_SELF].shown_from = columns[FUNCTION_TOTAL].shown_from = NEVER;
        columns[FUNCTION_SELF_S].shown_from = columns[FUNCTION_TOTAL_S].shown_from = ALWAYS;
    }
    struct top_layout layout = top_lay_out(columns, FUNCTION_COLUMNS);
    put_titles(&layout, y, sorted_column(screen->order));
    if (top_functions(screen->now, screen->before, screen->base, &screen->filter, screen->order,
                      &rows, &screen->row_count))
        return;
    size_t first = top_first_row(screen, screen->row_count);
    for (size_t i = 0; i < top_screen_rows() && first + i < screen->row_count; i++)
        draw_function(screen, &layout, y + 1 + (int)i, &rows[first + i]);
    free(rows);
}

/* Goroutine 7 as "g7", because a thread may have the id 7. */
static void put_thread_id(const struct top_layout *layout, int y, pid_t tid)
{
    char text[24];
    snprintf(text, sizeof text, tid < 0 ? "g%ld" : "%ld", labs(tid));
    if (go_to_cell(layout, y, THREAD_ID))
        put_format("%*s", layout->columns[THREAD_ID], text);
}

static void draw_thread(const struct top_screen *screen, const struct top_layout *layout, int y,
                        const struct top_thread *row)
{
    put_thread_id(layout, y, row->tid);
    put_cell(layout, y, THREAD_NAME, row->name);
    if (go_to_cell(layout, y, THREAD_STATES))
        put_states(row->recent_ns, STATES_COLUMNS);
    put_number(layout, y, THREAD_RUN, 0, top_percent(screen, row->recent_ns[FGPROF_STATE_RUNNING]));
    put_number(layout, y, THREAD_RUNNABLE_PART, 0,
               top_percent(screen, row->recent_ns[FGPROF_STATE_RUNNABLE]));
    put_number(layout, y, THREAD_WAIT, 0,
               top_percent(screen, row->recent_ns[FGPROF_STATE_WAITING]));
    put_cell(layout, y, THREAD_SYSCALL, *row->syscall ? row->syscall : top_state_name(row->state));
    put_function(layout, y, THREAD_FUNCTION, row->function, row->module, row->resource);
}

/* Keeps the mark on an existing row, and that row in the window. */
static void follow_cursor(struct top_screen *screen)
{
    size_t shown = top_screen_rows();
    if (screen->cursor >= screen->row_count)
        screen->cursor = screen->row_count ? screen->row_count - 1 : 0;
    if (screen->scroll > screen->cursor)
        screen->scroll = screen->cursor;
    if (screen->scroll + shown <= screen->cursor)
        screen->scroll = screen->cursor - shown + 1;
}

void top_draw_threads(struct top_screen *screen, int y)
{
    struct top_thread *rows;
    struct top_layout layout = top_lay_out(thread_columns, THREAD_COLUMNS);
    put_titles(&layout, y, THREAD_RUN);
    screen->cursor_tid = 0;
    if (top_threads(screen->now, screen->before, &screen->filter, screen->choice.hides_idle, &rows,
                    &screen->row_count))
        return;
    follow_cursor(screen);
    size_t first = top_first_row(screen, screen->row_count);
    for (size_t i = 0; i < top_screen_rows() && first + i < screen->row_count; i++) {
        const struct top_thread *row = &rows[first + i];
        draw_thread(screen, &layout, y + 1 + (int)i, row);
        if (first + i != screen->cursor)
            continue;
        mvchgat(y + 1 + (int)i, 0, -1, A_REVERSE, 0, NULL);
        screen->cursor_tid = row->tid;
        snprintf(screen->cursor_name, sizeof screen->cursor_name, "%s", row->name);
    }
    free(rows);
}

void top_draw_waits(struct top_screen *screen, int y)
{
    struct top_wait *rows;
    struct top_layout layout = top_lay_out(wait_columns, WAIT_COLUMNS);
    put_titles(&layout, y, WAIT_PART);
    if (top_waits(screen->now, screen->before, screen->base, &screen->filter, &rows,
                  &screen->row_count))
        return;
    size_t first = top_first_row(screen, screen->row_count);
    for (size_t i = 0; i < top_screen_rows() && first + i < screen->row_count; i++) {
        const struct top_wait *row = &rows[first + i];
        int line = y + 1 + (int)i;
        put_number(&layout, line, WAIT_WAITERS, 0, (double)row->waiters);
        put_number(&layout, line, WAIT_PART, 1, top_percent(screen, row->recent_ns));
        put_number(&layout, line, WAIT_S, 2, (double)row->all_ns / 1e9);
        put_cell(&layout, line, WAIT_RESOURCE, row->resource);
        char owner[64];
        snprintf(owner, sizeof owner, "%s%s", row->is_waker && row->owner ? "woken by " : "",
                 row->owner ? row->owner : "not known");
        put_cell(&layout, line, WAIT_OWNER, owner);
    }
    free(rows);
}
