/* What SIGINT, SIGTERM and SIGHUP do while sampling. */
#ifndef FGPROF_CLI_INTERRUPT_H
#define FGPROF_CLI_INTERRUPT_H

#include "fgprof.h"

/* They end `recorder`'s sampling. */
void interrupt_stops(fgprof_recorder *recorder);

/* They are for the command that `recorder` has started: one from the terminal has reached it
 * already, one sent to this process is passed on. Its end ends the sampling. */
void interrupt_forwards(fgprof_recorder *recorder);

#endif
