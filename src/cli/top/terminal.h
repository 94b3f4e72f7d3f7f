/* The terminal while `top` has it: as it was before on every way out. */
#ifndef FGPROF_CLI_TOP_TERMINAL_H
#define FGPROF_CLI_TOP_TERMINAL_H

#include <stdbool.h>

/* Says on stderr what is wrong. */
bool top_terminal_open(void);

/* Gives it back. Harmless a second time. */
void top_terminal_close(void);

#endif
