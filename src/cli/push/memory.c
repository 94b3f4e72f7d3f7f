#include "cli/push/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WIRE_BYTES 2u

/* Makes room for so many bytes more. */
static bool reserve(struct memory *memory, size_t length)
{
    size_t needed = memory->length + length;
    if (memory->error || needed <= memory->capacity)
        return !memory->error;
    size_t capacity = needed > 2 * memory->capacity ? needed : 2 * memory->capacity;
    char *grown = realloc(memory->bytes, capacity);
    if (!grown) {
        memory->error = -ENOMEM;
        return false;
    }
    memory->bytes = grown;
    memory->capacity = capacity;
    return true;
}

void memory_add(struct memory *memory, const void *bytes, size_t length)
{
    if (!length || !reserve(memory, length))
        return;
    memcpy(memory->bytes + memory->length, bytes, length);
    memory->length += length;
}

void memory_print(struct memory *memory, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        memory->error = memory->error ? memory->error : -ENOMEM;
        return;
    }
    memory_add(memory, text, (size_t)length);
    free(text);
}

static void add_varint(struct memory *memory, uint64_t value)
{
    unsigned char bytes[10];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (unsigned char)(value | 0x80);
    bytes[length++] = (unsigned char)value;
    memory_add(memory, bytes, length);
}

void memory_add_field(struct memory *memory, unsigned field, const void *bytes, size_t length)
{
    add_varint(memory, field << 3 | WIRE_BYTES);
    add_varint(memory, length);
    memory_add(memory, bytes, length);
}

void memory_add_text(struct memory *memory, unsigned field, const char *text)
{
    memory_add_field(memory, field, text, strlen(text));
}

static int add_file(struct memory *memory, int fd)
{
    off_t length = lseek(fd, 0, SEEK_END);
    if (length < 0)
        return -errno;
    if (!reserve(memory, (size_t)length))
        return memory->error;
    for (off_t at = 0; at < length;) {
        ssize_t got = pread(fd, memory->bytes + memory->length, (size_t)(length - at), at);
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        memory->length += (size_t)got;
        at += got;
    }
    return 0;
}

void memory_add_profile(struct memory *memory, const fgprof_profile *profile,
                        enum fgprof_format format)
{
    if (memory->error)
        return;
    int fd = memfd_create("profile", MFD_CLOEXEC);
    if (fd < 0) {
        memory->error = -errno;
        return;
    }
    int err = fgprof_profile_write(profile, format, fd);
    if (!err)
        err = add_file(memory, fd);
    memory->error = err;
    close(fd);
}
