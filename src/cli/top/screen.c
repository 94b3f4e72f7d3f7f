#include "cli/top/screen.h"

#include <curses.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

int put_text(const char *text, int columns)
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

void put_format(const char *format, ...)
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

/* ---- States ---- */

const enum fgprof_state top_state_order[FGPROF_STATE_COUNT] = {
    FGPROF_STATE_RUNNING, FGPROF_STATE_RUNNABLE, FGPROF_STATE_WAITING, FGPROF_STATE_STOPPED,
    FGPROF_STATE_UNKNOWN};

/* Colours are warm for threads that use or want a CPU and cool for those asleep, as on the page. */
static const struct {
    const char *name;
    char mark;
    short colour;
} looks[FGPROF_STATE_COUNT] = {
    [FGPROF_STATE_UNKNOWN] = {"unknown", '?', COLOR_MAGENTA},
    [FGPROF_STATE_RUNNING] = {"running", '#', COLOR_RED},
    [FGPROF_STATE_RUNNABLE] = {"waiting for CPU", '=', COLOR_YELLOW},
    [FGPROF_STATE_WAITING] = {"asleep", '.', COLOR_BLUE},
    [FGPROF_STATE_STOPPED] = {"stopped", 'T', COLOR_MAGENTA},
};

const char *top_state_name(enum fgprof_state state)
{
    return looks[state].name;
}

char top_state_mark(enum fgprof_state state)
{
    return looks[state].mark;
}

void top_states_set_colours(void)
{
    for (short i = 0; i < FGPROF_STATE_COUNT; i++)
        init_pair((short)(i + 1), looks[i].colour, -1);
}

void top_state_on(enum fgprof_state state)
{
    if (has_colors())
        attron(COLOR_PAIR((short)(state + 1)) | A_BOLD);
}

void top_state_off(void)
{
    for (short i = 0; i < FGPROF_STATE_COUNT && has_colors(); i++)
        attroff(COLOR_PAIR((short)(i + 1)) | A_BOLD);
}

void put_states(const uint64_t times_ns[FGPROF_STATE_COUNT], int columns)
{
    uint64_t all_ns = 0, passed_ns = 0;
    int drawn = 0;
    for (size_t i = 0; i < FGPROF_STATE_COUNT; i++)
        all_ns += times_ns[i];
    for (size_t i = 0; i < FGPROF_STATE_COUNT && all_ns; i++) {
        enum fgprof_state state = top_state_order[i];
        passed_ns += times_ns[state];
        int until = (int)(columns * ((double)passed_ns / (double)all_ns) + 0.5);
        top_state_on(state);
        for (; drawn < until; drawn++)
            addch((chtype)(unsigned char)looks[state].mark);
        top_state_off();
    }
    for (; drawn < columns; drawn++)
        addch(' ');
}

/* ---- The screen ---- */

static const char *const help[] = {
    "100 % is one thread all the time: four waiting threads make 400 %.",
    "SELF%, TOTAL%    of the last second: time in the function itself, and",
    "                 with all it calls",
    "SELF s, TOTAL s  since the start (or r): seconds of all threads",
    "STATES           the threads' states meanwhile: # running, = waiting",
    "                 for a CPU, . asleep, T stopped, ? unknown",
    "s t n  sort by self, total, name; again: last second or since start",
    "/ f    show only rows that match a regular expression; empty: all",
    "T      switch between threads and functions; TID g7 is goroutine 7",
    "W      what threads wait for, how many do, and which thread has it",
    "Enter  functions of the marked thread;  Esc  of all threads again",
    "x      show idle threads, which only sleep in one place; or hide them",
    "i      functions: only time on a CPU, or all time",
    "r      count from now on      space  hold the view, or go on",
    "w      write the profile so far; the file's ending is the format:",
    "       .folded .txt .pb.gz .html .fgprof",
    "up down PgUp PgDn Home End  scroll, or move the mark",
    "h ?    this help              q  quit",
};

void top_screen_count(struct top_screen *screen)
{
    struct top_view *views[] = {screen->now, screen->before, screen->base};
    for (size_t i = 0; i < 3; i++) {
        if (views[i] && top_view_count(views[i], &screen->choice, screen->now))
            snprintf(screen->message, sizeof screen->message, "out of memory");
    }
}

size_t top_first_row(struct top_screen *screen, size_t row_count)
{
    size_t rows = top_screen_rows();
    if (screen->scroll + rows > row_count)
        screen->scroll = row_count > rows ? row_count - rows : 0;
    return screen->scroll;
}

/* The help has no titles, so it may use one line more than a table. */
void top_draw_help(struct top_screen *screen, int y)
{
    size_t count = sizeof help / sizeof *help;
    screen->row_count = count;
    size_t first = top_first_row(screen, count);
    for (size_t i = 0; i < top_screen_rows() + 1 && first + i < count; i++) {
        move(y + (int)i, COLS > 76 ? 2 : 0);
        put_text(help[first + i], COLS - 3);
    }
}

static void draw_foot(const struct top_screen *screen)
{
    move(LINES - 1, 0);
    if (screen->prompt) {
        put_format("%s", screen->prompt);
        put_text(screen->input, COLS - getcurx(stdscr) - 1);
    } else if (*screen->message) {
        put_text(screen->message, COLS - 1);
    } else {
        put_format("q quit  h help  s self  t total  / filter  T threads  W waits  x idle"
                   "  w write");
    }
}

void top_screen_draw(struct top_screen *screen)
{
    int lines_below = (int)top_screen_rows() + 2;
    erase();
    if (screen->shows_help)
        top_draw_help(screen, LINES - lines_below);
    else if (screen->now && screen->pane == TOP_THREADS)
        top_draw_threads(screen, LINES - lines_below);
    else if (screen->now && screen->pane == TOP_WAITS)
        top_draw_waits(screen, LINES - lines_below);
    else if (screen->now)
        top_draw_functions(screen, LINES - lines_below);
    top_draw_header(screen);
    draw_foot(screen);
    curs_set(screen->prompt != NULL);
    refresh();
}
