/* Where writers put bytes: a file descriptor, buffered, and gzipped on request. The first error is
 * kept, and later writes do nothing. */
#ifndef FGPROF_BASE_SINK_H
#define FGPROF_BASE_SINK_H

#include "base/buffer.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

struct sink {
    int fd;
    int error; /* 0 or a negative errno */
    bool is_gzip;
    z_stream deflater;
    size_t used;
    unsigned char buffer[32768];
};

void sink_open(struct sink *sink, int fd, bool is_gzip);
void sink_write(struct sink *sink, const void *data, size_t bytes);
/* Writes the bytes, and frees them. Errors of both are in the sink. */
void sink_put(struct sink *sink, struct buffer *buffer);
void sink_print(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sink_vprint(struct sink *sink, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Writes what is left. Returns 0 or the first error. */
int sink_close(struct sink *sink);

/* Writes all of the data to a descriptor without a sink; waits if the descriptor is nonblocking.
 * Returns 0 or a negative errno. */
int write_all(int fd, const void *data, size_t bytes);

#endif
