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
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->error = buffer->error ? buffer->error : -ENOMEM;
        return;
    }
    buffer_write(buffer, text, (size_t)length);
    free(text);
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
