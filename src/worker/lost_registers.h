/* Registers that a thread read asleep does not show. They are found in its stack, known from where
 * others sleep, or read by stopping one such thread, which is requested. */
#ifndef FGPROF_WORKER_LOST_REGISTERS_H
#define FGPROF_WORKER_LOST_REGISTERS_H

#include "worker/following.h"

/* Call it before unwinding: remembers the registers of a thread that was stopped. */
void lost_registers_note(struct following *following);

/* The stack is cut because the frame pointer is not known: unwinds it with the one that the thread
 * is known to have, or that can be found; else asks for a stop, and sets is_asked. Returns 0 or
 * -ENOMEM. */
int lost_registers_find(struct following *following);

/* At the end: a thread that was stopped in its sleep to be asked for them tells of its site.
 * Returns 0 or -ENOMEM. */
int lost_registers_learn(const struct following *following);

#endif
