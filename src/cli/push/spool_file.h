/* A request in a file: lines that say what it is, an empty one, and the body. */
#ifndef FGPROF_CLI_PUSH_SPOOL_FILE_H
#define FGPROF_CLI_PUSH_SPOOL_FILE_H

#include "cli/push/body.h"

/* What a file is found by. */
struct spool_file {
    char to[2200]; /* push_target's `given` */
    uint64_t bytes;
};

/* The size of the file that spool_file_write makes. */
uint64_t spool_file_bytes(const char *to, const struct body *body);

/* Writes a temporary file and renames it. Returns 0 or a negative errno. */
int spool_file_write(int directory_fd, const char *name, const char *to, const struct body *body);

/* Reads only the header. Returns 0, a negative errno, or -EBADMSG if it is another kind of file or
 * is truncated. */
int spool_file_find(int directory_fd, const char *name, struct spool_file *ret_file);

/* Reads it all; the caller frees the body. Errors as above. */
int spool_file_read(int directory_fd, const char *name, struct body *ret_body);

#endif
