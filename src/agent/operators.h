#ifndef FGPROF_AGENT_OPERATORS_H
#define FGPROF_AGENT_OPERATORS_H

#include "agent/provider.h"

/* Hooks what else the provider of malloc has: operator new and delete of C++ that do not go through
 * its malloc, and functions of its own. `handle` as dlsym takes it. */
void operators_patch(const struct provider *provider, void *handle);

#endif
