/* Threads that never moved in the whole recording, whose samples are dropped where they are not
 * wanted. Only at its end is it known which they are; and then they are all still there, so that
 * none of their ids was another's before. */
#ifndef FGPROF_SAMPLER_IDLE_H
#define FGPROF_SAMPLER_IDLE_H

#include "sampler/recording.h"
#include "sampler/threads.h"

/* Notes the thread, which is there at the recording's end, if it never moved. Returns 0 or
 * -ENOMEM. */
int idle_note(struct recording *recording, const struct thread *thread);

/* Drops the samples and timelines of those that were noted, if any thread was to be; then threads
 * that were told apart only for that are not any more. */
void idle_drop(struct recording *recording, bool keeps_ids);

#endif
