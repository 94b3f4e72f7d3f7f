/* Which call fails: by the function that is called and the place that it is called from. */
#ifndef FAULTS_SITE_H
#define FAULTS_SITE_H

#include <stdbool.h>

/* Whether this call of the function has to fail, with errno set. */
bool fault_is_due(const char *function);

/* Whether this call has to transfer only a part of what it could. */
bool fault_is_short(const char *function);

/* The next definition of the function, after ours. */
void *next_function(const char *name);

#endif
