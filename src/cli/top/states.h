/* How `top` shows thread states: a name, a mark and a colour each. */
#ifndef FGPROF_CLI_TOP_STATES_H
#define FGPROF_CLI_TOP_STATES_H

#include "fgprof.h"

/* The order in which states are shown. */
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
