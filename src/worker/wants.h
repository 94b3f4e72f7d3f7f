/* What a snapshot lacked that a new one can have: more of the stack, where the stack ends, the
 * other stack that it goes on to. It is asked for with requests. */
#ifndef FGPROF_WORKER_WANTS_H
#define FGPROF_WORKER_WANTS_H

#include "worker/following.h"

/* After unwinding: asks for what was lacking, and sets is_asked then. Not without end: after some
 * observations of a thread in a row its stack is what was found. Returns 0 or -ENOMEM. */
int wants_ask(struct following *following);

/* For a stack that is to be counted: adjusts how much of the next ones is copied; asks once to look
 * again later, if it led to where nothing is known to be mapped. Returns 0 or -ENOMEM. */
int wants_adjust(const struct following *following);

#endif
