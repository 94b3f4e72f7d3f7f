#include "base/buffer.h"
#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int buffer_reserve(struct buffer *buffer, size_t length)
{
    if (!buffer->error)
        buffer->error =
            array_reserve(&buffer->bytes, &buffer->capacity, buffer->length + length + 1);
    return buffer->error;
}

void buffer_write(struct buffer *buffer, const void *bytes, size_t length)
{
    if (buffer_reserve(buffer, length))
        return;
    if (length)
        memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
}

void buffer_puts(struct buffer *buffer, const char *text)
{
    buffer_write(buffer, text, strlen(text));
}

void buffer_print(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (buffer_reserve(buffer, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(buffer->bytes + buffer->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->length += (size_t)length;
}

void buffer_put_quoted(struct buffer *buffer, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./,:=+@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        buffer_puts(buffer, word);
        return;
    }
    buffer_puts(buffer, "'");
    for (; *word; word++) {
        if (*word == '\'')
            buffer_puts(buffer, "'\\''");
        else
            buffer_write(buffer, word, 1);
    }
    buffer_puts(buffer, "'");
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
