/* What a snapshot lacked that a new one can have: more of the stack, where the stack ends, or the
 * other stack that it goes on to. Requests ask for it. */
#ifndef FGPROF_WORKER_WANTS_H
#define FGPROF_WORKER_WANTS_H

#include "worker/following.h"

/* Call it after unwinding: asks for what was lacking, and then sets is_asked. The number of tries
 * is limited: after some observations of a thread in a row its stack is taken as found. Returns 0
 * or -ENOMEM. */
int wants_ask(struct following *following);

/* For a stack that will be counted: adjusts how much is copied next time. Asks once to look again
 * later, if the stack led to unmapped addresses. Returns 0 or -ENOMEM. */
int wants_adjust(const struct following *following);

#endif
