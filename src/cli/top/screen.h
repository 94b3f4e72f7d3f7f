/* What `top` draws. */
#ifndef FGPROF_CLI_TOP_SCREEN_H
#define FGPROF_CLI_TOP_SCREEN_H

#include "cli/top/filter.h"
#include "cli/top/table.h"

#include <sys/types.h>

struct top_screen {
    const char *target;                   /* of the header: which processes */
    struct top_view *now, *before, *base; /* NULL: there is none yet */
    struct top_choice choice;             /* of what the views count */
    char thread_name[32];                 /* of the one that was chosen */
    struct top_order order;
    struct top_filter filter;
    bool shows_threads, shows_help, is_held, has_ended;
    size_t scroll;    /* rows above the first that is shown */
    size_t cursor;    /* of the threads' table: the row that is marked, */
    pid_t cursor_tid; /* and whose it was when it was drawn; 0: nobody's */
    char cursor_name[32];
    size_t row_count;   /* when it was drawn */
    char message[512];  /* in the last line */
    const char *prompt; /* NULL: nothing is asked for */
    char input[256];    /* the answer so far */
};

/* Has the views count what is chosen now. */
void top_screen_count(struct top_screen *screen);

void top_screen_draw(struct top_screen *screen);

/* How many rows of the table fit. */
size_t top_screen_rows(void);

/* The parts: each draws from the line `y` on. */
void top_draw_header(const struct top_screen *screen);
void top_draw_functions(struct top_screen *screen, int y);
void top_draw_threads(struct top_screen *screen, int y);
void top_draw_help(struct top_screen *screen, int y);

/* So that rows that are gone do not leave us behind the end. Returns the first one to show. */
size_t top_first_row(struct top_screen *screen, size_t row_count);

/* A share of the last second of one thread, in percent. */
double top_percent(const struct top_screen *screen, uint64_t ns);

#endif
