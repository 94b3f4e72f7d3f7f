/* What the keys of `top` do. */
#ifndef FGPROF_CLI_TOP_KEYS_H
#define FGPROF_CLI_TOP_KEYS_H

#include "cli/top/screen.h"

struct top_keys {
    bool is_writing; /* the prompt asks for a file name; else for a filter */
    bool must_quit;
};

/* Takes the next key or resize of the window. Returns false if there was none. The screen must be
 * drawn before the next call, as the next key may refer to one of its rows. */
bool top_keys_take(struct top_keys *keys, struct top_screen *screen);

#endif
