/* Writing the profile from within `top`. */
#ifndef FGPROF_CLI_TOP_WRITE_H
#define FGPROF_CLI_TOP_WRITE_H

#include "fgprof.h"

/* Writes the profile to `path`, whole or not at all. The ending names the format. Puts the outcome
 * into `message`. */
void top_write(const fgprof_profile *profile, const char *path, char *message,
               size_t message_bytes);

#endif
