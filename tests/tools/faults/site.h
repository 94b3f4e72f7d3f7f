/* Which call fails, by the called function and the place of the call. */
#ifndef FAULTS_SITE_H
#define FAULTS_SITE_H

#include <stdbool.h>

/* Whether this call of the function must fail; if so, sets errno. */
bool fault_is_due(const char *function);

/* Whether this call must transfer only a part of what it could. */
bool fault_is_short(const char *function);

/* The next definition of the function, after ours. */
void *next_function(const char *name);

#endif
