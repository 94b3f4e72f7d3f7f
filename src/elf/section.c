#include "elf/section.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_BYTES 4096u
#define STRING_BYTES_MAX ((size_t)1 << 20)
#define SLICE_BYTES_MAX ((uint64_t)1 << 30)

void section_close(struct section *section)
{
    free(section->window);
    *section = (struct section){0};
}

static size_t read_at(const struct section *section, uint64_t at, unsigned char *buffer,
                      size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got =
            pread(section->fd, buffer + done, bytes - done, (off_t)(section->offset + at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static bool fill_window(struct section *section, uint64_t at, size_t wanted)
{
    size_t bytes = wanted < WINDOW_BYTES ? WINDOW_BYTES : wanted;
    if (bytes > section->window_capacity) {
        unsigned char *grown = realloc(section->window, bytes);
        if (!grown)
            return false;
        section->window = grown;
        section->window_capacity = bytes;
    }
    if (bytes > section->bytes - at)
        bytes = (size_t)(section->bytes - at);
    section->window_at = at;
    section->window_bytes = read_at(section, at, section->window, bytes);
    return section->window_bytes;
}

size_t section_peek(struct section *section, uint64_t at, size_t wanted,
                    const unsigned char **ret_bytes)
{
    if (at >= section->bytes)
        return 0;
    if (wanted > section->bytes - at)
        wanted = (size_t)(section->bytes - at);
    if (section->memory) {
        *ret_bytes = section->memory + at;
        return wanted;
    }
    bool is_there = at >= section->window_at && at - section->window_at <= section->window_bytes &&
                    wanted <= section->window_bytes - (at - section->window_at);
    if (!is_there && !fill_window(section, at, wanted))
        return 0;
    size_t there = section->window_bytes - (size_t)(at - section->window_at);
    *ret_bytes = section->window + (at - section->window_at);
    return wanted < there ? wanted : there;
}

bool section_number(struct section *section, uint64_t at, unsigned size, uint64_t *ret_number)
{
    const unsigned char *bytes;
    if (!size || section_peek(section, at, size, &bytes) < size)
        return false;
    *ret_number = 0;
    memcpy(ret_number, bytes, size);
    return true;
}

const char *section_string(struct section *section, uint64_t at)
{
    const unsigned char *bytes;
    for (size_t wanted = 256; wanted <= STRING_BYTES_MAX; wanted *= 8) {
        size_t count = section_peek(section, at, wanted, &bytes);
        if (count && memchr(bytes, 0, count))
            return (const char *)bytes;
        if (count < wanted)
            break;
    }
    return NULL;
}

int slice_read(struct slice *slice, const struct section *section, uint64_t at, uint64_t bytes)
{
    slice->count = 0;
    if (at > section->bytes || bytes > section->bytes - at || bytes > SLICE_BYTES_MAX)
        return -ENOEXEC;
    if (section->memory) {
        slice->bytes = section->memory + at;
        slice->count = (size_t)bytes;
        return 0;
    }
    /* A much larger buffer is not kept for small parts. */
    if (bytes > slice->capacity || bytes < slice->capacity / 16) {
        slice_free(slice);
        slice->owned = malloc((size_t)bytes + 1);
        if (!slice->owned)
            return -ENOMEM;
        slice->capacity = (size_t)bytes;
    }
    if (read_at(section, at, slice->owned, (size_t)bytes) < bytes)
        return -ENOEXEC;
    slice->bytes = slice->owned;
    slice->count = (size_t)bytes;
    return 0;
}

void slice_free(struct slice *slice)
{
    free(slice->owned);
    *slice = (struct slice){0};
}
