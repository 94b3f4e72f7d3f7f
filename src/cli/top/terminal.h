/* The terminal of `top`. Every way out restores it. */
#ifndef FGPROF_CLI_TOP_TERMINAL_H
#define FGPROF_CLI_TOP_TERMINAL_H

#include <stdbool.h>

/* On failure, prints the reason on stderr and returns false. */
bool top_terminal_open(void);

/* Restores the terminal. Harmless a second time. */
void top_terminal_close(void);

#endif
