/* The lines above the table: the process, its threads and their states, the cost of sampling. */
#include "cli/top/screen.h"

#include <curses.h>
#include <inttypes.h>
#include <stdlib.h>

#define WIDE_COLUMNS 72   /* a window this wide has the states' names next to the bar */
#define LEGEND_COLUMNS 60 /* the usual maximum for the names */
#define BAR_COLUMNS_MAX 40
#define SHORT_LINES 16 /* a window with fewer lines shows a shorter header */

static void put_flag(const char *text)
{
    put_format("  ");
    attron(A_REVERSE);
    put_format(" %s ", text);
    attroff(A_REVERSE);
}

static void draw_title(const struct top_screen *screen)
{
    move(0, 0);
    put_format("fgprof-c top  ");
    put_text(screen->target, COLS > 60 ? COLS - 44 : 16);
    if (!screen->now) {
        put_format("  waiting for the first second");
        return;
    }
    put_format("  %.0f s", (double)screen->now->summary.elapsed_ns / 1e9);
    if (screen->has_ended)
        put_flag("ENDED");
    if (screen->is_held)
        put_flag("HELD");
}

static void draw_bar(const uint64_t times_ns[FGPROF_STATE_COUNT])
{
    bool is_wide = COLS >= WIDE_COLUMNS;
    int columns = COLS - (is_wide ? LEGEND_COLUMNS : 22);
    uint64_t all_ns = 0;
    move(2, 0);
    put_format("[");
    put_states(times_ns, columns > BAR_COLUMNS_MAX ? BAR_COLUMNS_MAX : columns > 4 ? columns : 4);
    put_format("]");
    for (size_t i = 0; i < FGPROF_STATE_COUNT; i++)
        all_ns += times_ns[i];
    for (size_t i = 0; i < FGPROF_STATE_COUNT && all_ns; i++) {
        enum fgprof_state state = top_state_order[i];
        if (!times_ns[state])
            continue;
        put_format(" ");
        top_state_on(state);
        put_format("%c", top_state_mark(state));
        top_state_off();
        put_format(is_wide ? " %s %.0f%%" : "%.0s%.0f%%", top_state_name(state),
                   100 * (double)times_ns[state] / (double)all_ns);
    }
}

/* Counts threads by the state that each was in for most of the last second, and shows the time of
 * all threads as a bar. */
static void draw_states(const struct top_screen *screen)
{
    struct top_thread *rows;
    size_t count, counts[FGPROF_STATE_COUNT] = {0};
    uint64_t times_ns[FGPROF_STATE_COUNT] = {0};
    if (top_threads(screen->now, screen->before, NULL, false, &rows, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        size_t most = 0;
        for (size_t state = 0; state < FGPROF_STATE_COUNT; state++) {
            times_ns[state] += rows[i].recent_ns[state];
            most = rows[i].recent_ns[state] > rows[i].recent_ns[most] ? state : most;
        }
        counts[most]++;
    }
    free(rows);
    move(1, 0);
    put_format("threads %zu: ", count);
    for (size_t i = 0; i < FGPROF_STATE_COUNT; i++) {
        enum fgprof_state state = top_state_order[i];
        if (counts[state] || i < 3)
            put_format("%s%zu %s", i ? ", " : "", counts[state], top_state_name(state));
    }
    draw_bar(times_ns);
}

static void draw_costs(const struct top_screen *screen)
{
    const struct fgprof_summary *summary = &screen->now->summary;
    move(3, 0);
    if (summary->has_kernel_samples && !summary->pauses) {
        put_format("no pauses: sampled by the kernel   ticks %" PRIu64 ", %" PRIu64 " late",
                   summary->ticks_taken, summary->ticks_late);
        return;
    }
    put_format("pauses  %" PRIu64 ", %.0f us median, %.2f %% of running time   ticks %" PRIu64
               ", %" PRIu64 " late",
               summary->pauses, (double)summary->pause_median_ns / 1e3, 100 * summary->pause_share,
               summary->ticks_taken, summary->ticks_late);
}

/* What the table below shows. */
static void draw_subject(const struct top_screen *screen, int y)
{
    size_t rows = top_screen_rows(), last = screen->scroll + rows;
    move(y, 0);
    attron(A_BOLD);
    if (screen->shows_help) {
        put_format("help");
    } else if (screen->pane == TOP_THREADS) {
        put_format("threads");
    } else if (screen->pane == TOP_WAITS) {
        put_format("what threads wait for");
    } else if (screen->choice.tid) {
        put_format("functions of %s %ld ", screen->choice.tid < 0 ? "goroutine" : "thread",
                   labs(screen->choice.tid));
        put_text(screen->thread_name, 16);
    } else {
        put_format("functions of all threads");
    }
    if (screen->choice.hides_idle && !screen->choice.tid && screen->pane != TOP_WAITS)
        put_format(" except idle ones");
    if (screen->choice.kept == FGPROF_KEPT_ON_CPU && screen->pane == TOP_FUNCTIONS)
        put_format(", on CPU only");
    attroff(A_BOLD);
    if (!screen->shows_help && COLS >= WIDE_COLUMNS)
        put_format(" (100 %% is one thread)");
    if (*screen->filter.text) {
        put_format("  filter: ");
        put_text(screen->filter.text, 24);
    }
    if (screen->row_count > rows && !screen->shows_help)
        put_format("  rows %zu-%zu of %zu", screen->scroll + 1,
                   last < screen->row_count ? last : screen->row_count, screen->row_count);
}

static int header_lines(void)
{
    return LINES < SHORT_LINES ? 4 : 5;
}

size_t top_screen_rows(void)
{
    int rows = LINES - header_lines() - 2;
    return rows > 1 ? (size_t)rows : 1;
}

void top_draw_header(const struct top_screen *screen)
{
    draw_title(screen);
    if (screen->now)
        draw_states(screen);
    if (screen->now && header_lines() > 4)
        draw_costs(screen);
    draw_subject(screen, header_lines() - 1);
}
