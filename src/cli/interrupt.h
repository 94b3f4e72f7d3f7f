/* What SIGINT, SIGTERM and SIGHUP do while sampling. */
#ifndef FGPROF_CLI_INTERRUPT_H
#define FGPROF_CLI_INTERRUPT_H

#include "fgprof.h"

/* The signals end `recorder`'s sampling. */
void interrupt_stops(fgprof_recorder *recorder);

/* The signals are meant for the command that `recorder` has started. A signal from the terminal has
 * reached it already; a signal sent to this process is passed on. Sampling ends when the command
 * exits. */
void interrupt_forwards(fgprof_recorder *recorder);

#endif
