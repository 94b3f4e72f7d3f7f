#include "kept/file.h"
#include "kept/columns.h"
#include "kept/read.h"
#include "base/array.h"
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* A small file may claim to be endless once inflated. A one-hour recording of 10,000 threads has
 * some tens of MB. */
#define INFLATED_MAX ((size_t)256 << 20)

#define GZIP_WINDOW (15 + 16) /* the largest window; 16 asks for a gzip header (zlib.h) */

struct inflated {
    uint8_t *bytes;
    size_t length, capacity;
};

/* Whether what has been inflated so far may become a recording. */
static bool begins_well(const struct inflated *out)
{
    size_t known = out->length < KEPT_MAGIC_BYTES ? out->length : KEPT_MAGIC_BYTES;
    return !known || memcmp(out->bytes, KEPT_MAGIC, known) == 0;
}

/* Inflates what `stream` has as its input. Returns 0, 1 if that was the end, or an error. */
static int inflate_part(z_stream *stream, struct inflated *out)
{
    for (;;) {
        int err = array_reserve(&out->bytes, &out->capacity, out->length + 4096);
        if (err)
            return err;
        size_t room = out->capacity - out->length;
        stream->next_out = out->bytes + out->length;
        stream->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
        uInt before = stream->avail_out;
        int result = inflate(stream, Z_NO_FLUSH);
        out->length += before - stream->avail_out;
        if (!begins_well(out))
            return -EILSEQ;
        if (out->length > INFLATED_MAX)
            return -EFBIG;
        if (result == Z_STREAM_END)
            return stream->avail_in ? -EBADMSG : 1;
        if (result == Z_BUF_ERROR || (result == Z_OK && !stream->avail_in && stream->avail_out))
            return 0;
        if (result != Z_OK)
            return result == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
    }
}

static bool is_gzip(const uint8_t *begin, size_t length)
{
    static const uint8_t magic[] = {0x1f, 0x8b, Z_DEFLATED};
    return memcmp(begin, magic, length < sizeof magic ? length : sizeof magic) == 0;
}

/* Inflates the file to its end, or until there is enough. */
static int inflate_file(int fd, z_stream *stream, size_t enough, struct inflated *out)
{
    uint8_t part[65536];
    bool is_first = true, has_ended = false;
    for (;;) {
        ssize_t got = read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return has_ended ? 0 : -ENODATA;
        if (has_ended)
            return -EBADMSG;
        if (is_first && !is_gzip(part, (size_t)got))
            return -EILSEQ;
        is_first = false;
        stream->next_in = part;
        stream->avail_in = (uInt)got;
        int result = inflate_part(stream, out);
        if (result < 0 || out->length >= enough)
            return result < 0 ? result : 0;
        has_ended = result > 0;
    }
}

static int read_inflated(const char *path, size_t enough, struct inflated *out)
{
    z_stream stream = {0};
    int fd = open_regular_file(AT_FDCWD, path);
    if (fd < 0)
        return fd;
    int err = inflateInit2(&stream, GZIP_WINDOW) == Z_OK ? 0 : -ENOMEM;
    if (!err) {
        err = inflate_file(fd, &stream, enough, out);
        inflateEnd(&stream);
    }
    close(fd);
    return err;
}

int kept_file_version(const char *path, unsigned *ret_version)
{
    struct inflated out = {0};
    uint32_t version;
    int err = read_inflated(path, KEPT_HEAD_BYTES, &out);
    if (!err)
        err = kept_version(out.bytes, out.length, &version);
    if (!err)
        *ret_version = version;
    free(out.bytes);
    return err;
}

int kept_file_read(const char *path, struct fgprof_profile **ret_profile)
{
    struct inflated out = {0};
    struct fgprof_profile *profile;
    int err = read_inflated(path, SIZE_MAX, &out);
    if (!err)
        err = kept_parse(out.bytes, out.length, &profile);
    free(out.bytes);
    if (err)
        return err;
    profile->read_from = strdup(path);
    if (!profile->read_from) {
        profile_free(profile);
        return -ENOMEM;
    }
    *ret_profile = profile;
    return 0;
}
