#include "top_screen.h"

#include <curses.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#define HEADER_LINES 5
#define BAR_COLUMNS 30
#define NAME_COLUMNS_MIN 20

/* Draws text of the target's in at most `columns`: what is no printable character is escaped, what
 * is longer ends in "~". Returns how many columns were used. */
static int put_text(const char *text, int columns)
{
    mbstate_t state = {0};
    int used = 0;
    for (size_t left = strlen(text); left;) {
        wchar_t cell[2] = L"";
        size_t bytes = mbrtowc(cell, text, left, &state);
        bool is_good = bytes - 1 < left && iswprint((wint_t)cell[0]) && wcwidth(cell[0]) > 0;
        int width = is_good ? wcwidth(cell[0]) : 4;
        bool is_last = is_good && bytes == left;
        if (used + width > columns - !is_last) {
            if (used < columns)
                addch('~');
            return columns;
        }
        if (is_good)
            addwstr(cell);
        else
            printw("\\x%02x", (unsigned char)*text);
        if (!is_good) {
            bytes = 1;
            state = (mbstate_t){0};
        }
        used += width;
        text += bytes;
        left -= bytes;
    }
    return used;
}

/* printf within the line: what does not fit is left out, and does not go on in the next. */
static void put_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put_format(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int left = COLS - getcurx(stdscr) - 1;
    if (left > 0)
        addnstr(text, left);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static uint64_t elapsed_of(const struct top_view *view)
{
    return view ? fgprof_profile_summary(view->profile)->elapsed_ns : 0;
}

static double percent_of_a_thread(uint64_t ns, uint64_t elapsed_ns)
{
    return elapsed_ns ? 100 * (double)ns / (double)elapsed_ns : 0;
}

size_t top_screen_rows(void)
{
    return LINES > HEADER_LINES + 2 ? (size_t)(LINES - HEADER_LINES - 2) : 1;
}

static const char *const state_names[FGPROF_STATE_COUNT] = {
    [FGPROF_STATE_UNKNOWN] = "unknown",   [FGPROF_STATE_RUNNING] = "running",
    [FGPROF_STATE_RUNNABLE] = "runnable", [FGPROF_STATE_WAITING] = "waiting",
    [FGPROF_STATE_STOPPED] = "stopped",
};
static const enum fgprof_state state_order[FGPROF_STATE_COUNT] = {
    FGPROF_STATE_RUNNING, FGPROF_STATE_RUNNABLE, FGPROF_STATE_WAITING, FGPROF_STATE_STOPPED,
    FGPROF_STATE_UNKNOWN};
static const char state_marks[FGPROF_STATE_COUNT + 1] = "?#=.T";

/* Threads by the state that each was in for the most of the last second, and the time of all of
 * them as a bar. */
static void draw_states(const struct top_screen *screen)
{
    struct top_thread *rows;
    size_t count, counts[FGPROF_STATE_COUNT] = {0};
    uint64_t times[FGPROF_STATE_COUNT] = {0}, all_ns = 0, passed_ns = 0;
    if (!screen->now || top_threads(screen->now, screen->before, NULL, &rows, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        size_t most = 0;
        for (size_t state = 0; state < FGPROF_STATE_COUNT; state++) {
            times[state] += rows[i].recent_ns[state];
            most = rows[i].recent_ns[state] > rows[i].recent_ns[most] ? state : most;
        }
        counts[most]++;
        all_ns += rows[i].recent_all_ns;
    }
    free(rows);
    move(1, 0);
    put_format("threads %zu: ", count);
    for (size_t i = 0; i < FGPROF_STATE_COUNT; i++) {
        if (counts[state_order[i]] || i < 3)
            put_format("%s%zu %s", i ? ", " : "", counts[state_order[i]],
                       state_names[state_order[i]]);
    }
    move(2, 0);
    put_format("time    [");
    int drawn = 0;
    for (size_t i = 0; i < FGPROF_STATE_COUNT && all_ns; i++) {
        passed_ns += times[state_order[i]];
        int until = (int)(BAR_COLUMNS * ((double)passed_ns / (double)all_ns) + 0.5);
        for (; drawn < until; drawn++)
            put_format("%c", state_marks[state_order[i]]);
    }
    put_format("%*s]", BAR_COLUMNS - drawn, "");
    for (size_t i = 0; i < FGPROF_STATE_COUNT && all_ns; i++) {
        if (times[state_order[i]])
            put_format(" %c %s %.0f%%", state_marks[state_order[i]], state_names[state_order[i]],
                       100 * (double)times[state_order[i]] / (double)all_ns);
    }
}

static void draw_header(const struct top_screen *screen)
{
    move(0, 0);
    put_format("fgprof-c top  ");
    put_text(screen->target, COLS > 60 ? COLS - 44 : 16);
    if (!screen->now) {
        put_format("  waiting for the first second");
        return;
    }
    const struct fgprof_summary *summary = fgprof_profile_summary(screen->now->profile);
    put_format("  %.0f s%s%s", seconds(summary->elapsed_ns),
               screen->has_ended ? "  ENDED: q quits, w writes" : "",
               screen->is_held ? "  HELD" : "");
    draw_states(screen);
    move(3, 0);
    put_format("pauses  %" PRIu64 ", %.0f us median, %.2f %% of running time   ticks %" PRIu64
               ", %" PRIu64 " late",
               summary->pauses, (double)summary->pause_median_ns / 1e3, 100 * summary->pause_share,
               summary->ticks_taken, summary->ticks_late);
    if (screen->is_on_cpu_only)
        put_format("   ON CPU ONLY");
    if (screen->has_filter) {
        put_format("   filter: ");
        put_text(screen->filter_text, 24);
    }
}

static void put_column(const char *title, bool is_sorted)
{
    attron(is_sorted ? A_BOLD | A_UNDERLINE : 0);
    put_format("%s", title);
    attroff(A_BOLD | A_UNDERLINE);
}

static int name_columns(int before)
{
    int left = COLS - before - 22;
    return left > NAME_COLUMNS_MIN ? left : NAME_COLUMNS_MIN;
}

static void draw_function(const struct top_function *row, uint64_t recent_ns)
{
    put_format("%7.1f %7.1f %9.2f %9.2f  ", percent_of_a_thread(row->recent_self_ns, recent_ns),
               percent_of_a_thread(row->recent_total_ns, recent_ns), seconds(row->self_ns),
               seconds(row->total_ns));
    int begin = getcurx(stdscr), columns = name_columns(begin);
    put_text(row->name ? row->name : "[no name]", columns);
    if (begin + columns + 2 < COLS) {
        move(getcury(stdscr), begin + columns + 2);
        put_text(base_name(row->module), COLS - begin - columns - 2);
    }
}

/* So that rows that are gone do not leave us behind the end. */
static size_t first_row(struct top_screen *screen, size_t count)
{
    size_t rows = top_screen_rows();
    if (screen->scroll + rows > count)
        screen->scroll = count > rows ? count - rows : 0;
    return screen->scroll;
}

static void draw_functions(struct top_screen *screen)
{
    struct top_function *rows;
    size_t count;
    uint64_t recent_ns = elapsed_of(screen->now) - elapsed_of(screen->before);
    const struct top_order *order = &screen->order;
    move(HEADER_LINES, 0);
    put_column("  SELF%", order->sort == TOP_BY_SELF && !order->since_start);
    put_column("  TOTAL%", order->sort == TOP_BY_TOTAL && !order->since_start);
    put_column("    SELF s", order->sort == TOP_BY_SELF && order->since_start);
    put_column("   TOTAL s", order->sort == TOP_BY_TOTAL && order->since_start);
    put_column("  FUNCTION", order->sort == TOP_BY_NAME);
    int module_at = 36 + name_columns(36) + 2;
    if (module_at < COLS) {
        move(HEADER_LINES, module_at);
        addnstr("MODULE", COLS - module_at);
    }
    if (top_functions(screen->now, screen->before, screen->base,
                      screen->has_filter ? &screen->filter : NULL, *order, &rows, &count))
        return;
    size_t first = first_row(screen, count);
    for (size_t i = 0; i < top_screen_rows() && first + i < count; i++) {
        move(HEADER_LINES + 1 + (int)i, 0);
        draw_function(&rows[first + i], recent_ns);
    }
    free(rows);
}

static void draw_threads(struct top_screen *screen)
{
    struct top_thread *rows;
    size_t count;
    uint64_t recent_ns = elapsed_of(screen->now) - elapsed_of(screen->before);
    move(HEADER_LINES, 0);
    addnstr(
        "    TID  RUN%  RUNNABLE%  WAIT%  STATE     SYSCALL          THREAD            FUNCTION",
        COLS);
    if (top_threads(screen->now, screen->before, screen->has_filter ? &screen->filter : NULL, &rows,
                    &count))
        return;
    size_t first = first_row(screen, count);
    for (size_t i = 0; i < top_screen_rows() && first + i < count; i++) {
        const struct top_thread *row = &rows[first + i];
        int y = HEADER_LINES + 1 + (int)i;
        move(y, 0);
        put_format("%7d %5.0f %10.0f %6.0f  %-8s  ", (int)row->tid,
                   percent_of_a_thread(row->recent_ns[FGPROF_STATE_RUNNING], recent_ns),
                   percent_of_a_thread(row->recent_ns[FGPROF_STATE_RUNNABLE], recent_ns),
                   percent_of_a_thread(row->recent_ns[FGPROF_STATE_WAITING], recent_ns),
                   state_names[row->state]);
        put_text(row->syscall, 16);
        if (COLS > 62) {
            move(y, 60);
            put_text(row->name, COLS - 60 < 16 ? COLS - 60 : 16);
        }
        if (COLS > 80) {
            move(y, 78);
            put_text(row->function ? row->function : "[no name]", COLS - 78);
        }
    }
    free(rows);
}

static void draw_help(void)
{
    static const char *const lines[] = {
        "SELF%, TOTAL%    time in the function itself, and with all that it calls, in the last",
        "                 second: 100 % is one thread all the time, 4 threads that wait are 400 %",
        "SELF s, TOTAL s  the same since the start (or r), in seconds of all threads together",
        "",
        "s, t   sort by self, by total; again: by the last second or since the start",
        "n      sort by name                /, f   show only what matches a regular expression",
        "T      threads or functions        i      only time on a CPU, or all",
        "up, down, PgUp, PgDn, Home         scroll",
        "space  hold the view, or go on     r      count from now",
        "w      write the profile so far to a file: its ending names the format (.folded .pb.gz)",
        "h, ?   this help                   q      quit",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines && i < top_screen_rows(); i++) {
        move(HEADER_LINES + 1 + (int)i, 2);
        addnstr(lines[i], COLS > 3 ? COLS - 3 : 0);
    }
}

void top_screen_draw(struct top_screen *screen)
{
    erase();
    draw_header(screen);
    if (screen->shows_help)
        draw_help();
    else if (screen->now && screen->shows_threads)
        draw_threads(screen);
    else if (screen->now)
        draw_functions(screen);
    move(LINES - 1, 0);
    if (screen->prompt) {
        addnstr(screen->prompt, COLS - 1);
        put_text(screen->input, COLS - getcurx(stdscr) - 1);
    } else if (*screen->message) {
        put_text(screen->message, COLS - 1);
    } else {
        addnstr("q quit  h help  s self  t total  n name  / filter  T threads  i on-CPU  w write",
                COLS - 1);
    }
    curs_set(screen->prompt != NULL);
    refresh();
}
