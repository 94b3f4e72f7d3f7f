/* What `top` draws. */
#ifndef FGPROF_CLI_TOP_SCREEN_H
#define FGPROF_CLI_TOP_SCREEN_H

#include "top_table.h"

struct top_screen {
    const char *target;                   /* of the header: which processes */
    struct top_view *now, *before, *base; /* NULL: there is none yet */
    struct top_order order;
    bool shows_threads, shows_help, is_held, is_on_cpu_only, has_ended;
    size_t scroll; /* rows above the first that is shown */
    char filter_text[128];
    regex_t filter;
    bool has_filter;
    char message[512];  /* in the last line */
    const char *prompt; /* NULL: nothing is asked for */
    char input[256];    /* the answer so far */
};

void top_screen_draw(struct top_screen *screen);

/* How many rows of the table fit. */
size_t top_screen_rows(void);

#endif
