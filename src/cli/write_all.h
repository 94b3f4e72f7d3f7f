#ifndef FGPROF_CLI_WRITE_ALL_H
#define FGPROF_CLI_WRITE_ALL_H

#include <stddef.h>

/* Writes all of it, and waits for a descriptor that does not block. Returns 0 or a negative errno.
 */
int write_all(int fd, const char *bytes, size_t length);

#endif
