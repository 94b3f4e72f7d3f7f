/* Writing the profile from within `top`. */
#ifndef FGPROF_CLI_TOP_WRITE_H
#define FGPROF_CLI_TOP_WRITE_H

#include "fgprof.h"

/* Writes the profile to `path`, whose ending names the format: whole or not at all. Puts into
 * `message` what became of it. */
void top_write(const fgprof_profile *profile, const char *path, char *message,
               size_t message_bytes);

#endif
