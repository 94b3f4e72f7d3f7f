/* The screen of `top`. */
#ifndef FGPROF_CLI_TOP_SCREEN_H
#define FGPROF_CLI_TOP_SCREEN_H

#include "cli/top/table.h"

#include <sys/types.h>

enum top_pane { TOP_FUNCTIONS, TOP_THREADS, TOP_WAITS };

struct top_screen {
    const char *target;                   /* the processes, for the header */
    struct top_view *now, *before, *base; /* NULL: none yet */
    struct top_choice choice;             /* what the views count */
    char thread_name[32];                 /* the chosen thread's name */
    struct top_order order;
    struct top_filter filter;
    enum top_pane pane;
    bool shows_help, is_held, has_ended;
    size_t scroll;    /* rows above the first shown row */
    size_t cursor;    /* the marked row in the table of threads */
    pid_t cursor_tid; /* the thread in that row when it was drawn; 0: none */
    char cursor_name[32];
    size_t row_count;   /* when the table was drawn */
    char message[512];  /* for the last line */
    const char *prompt; /* NULL: no prompt */
    char input[256];    /* the answer so far */
};

/* Makes the views count the current selection. */
void top_screen_count(struct top_screen *screen);

void top_screen_draw(struct top_screen *screen);

/* How many rows of the table fit. */
size_t top_screen_rows(void);

/* The parts. Each draws from line `y` on. */
void top_draw_header(const struct top_screen *screen);
void top_draw_functions(struct top_screen *screen, int y);
void top_draw_threads(struct top_screen *screen, int y);
void top_draw_waits(struct top_screen *screen, int y);
void top_draw_help(struct top_screen *screen, int y);

/* Limits scrolling to the rows that exist. Returns the first row to show. */
size_t top_first_row(struct top_screen *screen, size_t row_count);

/* Draws text from a sampled process in at most `columns`. Characters that are not printable are
 * escaped, and longer text ends in "~". Returns how many columns were used. */
int put_text(const char *text, int columns);

/* printf within the line. Text that does not fit is cut. */
void put_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How thread states are shown, a name, a mark and a colour each, and in which order. */
extern const enum fgprof_state top_state_order[FGPROF_STATE_COUNT];

const char *top_state_name(enum fgprof_state state);
char top_state_mark(enum fgprof_state state);

/* Call this once, if the terminal has colours. */
void top_states_set_colours(void);
/* Everything drawn between these two has the state's colour. */
void top_state_on(enum fgprof_state state);
void top_state_off(void);

/* Draws a bar of `columns`, divided like the times; it is empty if all times are 0. */
void put_states(const uint64_t times_ns[FGPROF_STATE_COUNT], int columns);

#endif
