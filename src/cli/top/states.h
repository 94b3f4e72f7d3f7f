/* How the states of threads look in `top`: a name, a mark and a colour each. */
#ifndef FGPROF_CLI_TOP_STATES_H
#define FGPROF_CLI_TOP_STATES_H

#include "fgprof.h"

/* The order in which they are shown. */
extern const enum fgprof_state top_state_order[FGPROF_STATE_COUNT];

const char *top_state_name(enum fgprof_state state);
char top_state_mark(enum fgprof_state state);

/* Once the terminal has colours. */
void top_states_set_colours(void);
/* What is drawn from now on is of the state, until the next one. */
void top_state_on(enum fgprof_state state);
void top_state_off(void);

/* A bar of `columns` that is divided as the times are; empty where there is none. */
void put_states(const uint64_t times_ns[FGPROF_STATE_COUNT], int columns);

#endif
