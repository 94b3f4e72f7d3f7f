#include "base/sink.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GZIP_WINDOW (15 + 16) /* the largest window; 16 asks for a gzip header (zlib.h) */

void sink_open(struct sink *sink, int fd, bool is_gzip)
{
    sink->fd = fd;
    sink->error = 0;
    sink->used = 0;
    sink->is_gzip = is_gzip;
    memset(&sink->deflater, 0, sizeof sink->deflater);
    if (is_gzip && deflateInit2(&sink->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                                Z_DEFAULT_STRATEGY) != Z_OK) {
        sink->error = -ENOMEM;
        sink->is_gzip = false;
    }
}

int write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes) {
        ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return -errno;
        } else if (written > 0) {
            at += written;
            bytes -= (size_t)written;
        }
    }
    return 0;
}

static void deflate_all(struct sink *sink, const unsigned char *data, size_t bytes, int flush)
{
    unsigned char out[16384];
    sink->deflater.next_in = (unsigned char *)data;
    sink->deflater.avail_in = (uInt)bytes;
    do {
        sink->deflater.next_out = out;
        sink->deflater.avail_out = sizeof out;
        deflate(&sink->deflater, flush);
        sink->error = write_all(sink->fd, out, sizeof out - sink->deflater.avail_out);
    } while (!sink->deflater.avail_out && !sink->error);
}

static void flush(struct sink *sink)
{
    if (sink->is_gzip)
        deflate_all(sink, sink->buffer, sink->used, Z_NO_FLUSH);
    else
        sink->error = write_all(sink->fd, sink->buffer, sink->used);
    sink->used = 0;
}

void sink_write(struct sink *sink, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    while (bytes && !sink->error) {
        size_t room = sizeof sink->buffer - sink->used;
        size_t part = bytes < room ? bytes : room;
        memcpy(sink->buffer + sink->used, from, part);
        sink->used += part;
        from += part;
        bytes -= part;
        if (sink->used == sizeof sink->buffer)
            flush(sink);
    }
}

void sink_put(struct sink *sink, struct buffer *buffer)
{
    if (!sink->error)
        sink->error = buffer->error;
    sink_write(sink, buffer->bytes, buffer->length);
    buffer_free(buffer);
}

void sink_vprint(struct sink *sink, const char *format, va_list arguments)
{
    char *text;
    int length = vasprintf(&text, format, arguments);
    if (length < 0) {
        sink->error = sink->error ? sink->error : -ENOMEM;
        return;
    }
    sink_write(sink, text, (size_t)length);
    free(text);
}

void sink_print(struct sink *sink, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sink_vprint(sink, format, arguments);
    va_end(arguments);
}

int sink_close(struct sink *sink)
{
    if (!sink->error)
        flush(sink);
    if (sink->is_gzip) {
        if (!sink->error)
            deflate_all(sink, NULL, 0, Z_FINISH);
        deflateEnd(&sink->deflater);
    }
    return sink->error;
}
