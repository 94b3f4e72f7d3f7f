#include "output/text_buffer.h"
#include "base/array.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_append_bytes(struct text_buffer *buffer, const char *text, size_t bytes)
{
    if (buffer->error)
        return;
    buffer->error = array_reserve(&buffer->text, &buffer->capacity, buffer->length + bytes + 1);
    if (buffer->error)
        return;
    memcpy(buffer->text + buffer->length, text, bytes);
    buffer->length += bytes;
    buffer->text[buffer->length] = '\0';
}

void text_append(struct text_buffer *buffer, const char *text)
{
    text_append_bytes(buffer, text, strlen(text));
}

/* The length of the character at `s`, 0 if there is none or if it is a control character. */
static size_t printable_length(const unsigned char *s)
{
    bool is_control = s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
    return is_control ? 0 : utf8_bytes(s, 4);
}

void text_append_name(struct text_buffer *buffer, const char *name)
{
    const unsigned char *s = (const unsigned char *)name;
    while (*s) {
        size_t length = printable_length(s);
        if (length) {
            text_append_bytes(buffer, (const char *)s, length);
            s += length;
        } else {
            char escaped[5];
            snprintf(escaped, sizeof escaped, "\\x%02x", *s++);
            text_append_bytes(buffer, escaped, 4);
        }
    }
}

/* A character begins with any byte but those that continue one (RFC 3629). */
static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t text_columns(const char *text, size_t bytes)
{
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += begins_character(text[i]);
    return columns;
}

/* Where the character with this number begins. */
static size_t offset_of_column(const struct text_buffer *text, size_t column)
{
    size_t at = 0;
    for (size_t seen = 0; at < text->length; at++) {
        if (begins_character(text->text[at]) && seen++ == column)
            break;
    }
    return at;
}

void text_append_short_name(struct text_buffer *buffer, const char *name, size_t columns)
{
    struct text_buffer whole = {0};
    text_append_name(&whole, name);
    size_t count = text_columns(whole.text, whole.length);
    if (whole.error) {
        buffer->error = whole.error;
    } else if (count <= columns) {
        text_append_bytes(buffer, whole.text ? whole.text : "", whole.length);
    } else {
        size_t last = (columns - 3) / 2, first = columns - 3 - last;
        size_t from = offset_of_column(&whole, count - last);
        text_append_bytes(buffer, whole.text, offset_of_column(&whole, first));
        text_append(buffer, "...");
        text_append_bytes(buffer, whole.text + from, whole.length - from);
    }
    text_free(&whole);
}

void text_print(struct text_buffer *buffer, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->error = -ENOMEM;
        return;
    }
    text_append_bytes(buffer, text, (size_t)length);
    free(text);
}

void text_free(struct text_buffer *buffer)
{
    free(buffer->text);
    *buffer = (struct text_buffer){0};
}

void text_put(struct sink *sink, struct text_buffer *buffer)
{
    if (buffer->error && !sink->error)
        sink->error = buffer->error;
    if (buffer->length)
        sink_write(sink, buffer->text, buffer->length);
    text_free(buffer);
}
