/* Serves what the worker asks for. */
#ifndef FGPROF_SAMPLER_REQUESTS_H
#define FGPROF_SAMPLER_REQUESTS_H

#include "sampler/state.h"

/* Takes all pending requests. A thread that must be observed again is observed at once, whether it
 * sleeps or runs. Returns 0 or -ENOMEM. */
int requests_serve(struct sampler *sampler);

#endif
