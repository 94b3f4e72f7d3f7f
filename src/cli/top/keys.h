/* What the keys of `top` do. */
#ifndef FGPROF_CLI_TOP_KEYS_H
#define FGPROF_CLI_TOP_KEYS_H

#include "cli/top/screen.h"

struct top_keys {
    bool is_writing; /* the prompt is for a file's name, else for a filter */
    bool must_quit;
};

/* Takes the next key, or that the window was resized: then the screen is to be drawn before the one
 * after, which may be for a row of it. False: there was none. */
bool top_keys_take(struct top_keys *keys, struct top_screen *screen);

#endif
