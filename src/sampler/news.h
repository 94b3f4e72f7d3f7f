/* Sends the worker what is told of a process's objects (objects/source.h). */
#ifndef FGPROF_SAMPLER_NEWS_H
#define FGPROF_SAMPLER_NEWS_H

#include "sampler/state.h"

/* Sends the message's news of an object of the process. Its name, its snapshot and its reference to
 * a program are given away; process_id and program are of who made it. Returns 0 or -ENOMEM: all is
 * given up. */
int news_send(struct sampler *sampler, struct sampled_process *process, struct message *message);

#endif
