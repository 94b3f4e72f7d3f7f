#include "base/name.h"
#include "base/utf8.h"

void name_append(struct buffer *buffer, const char *name)
{
    while (*name) {
        size_t length = utf8_printable_bytes(name);
        if (length)
            buffer_write(buffer, name, length);
        else
            buffer_print(buffer, "\\x%02x", (unsigned char)*name);
        name += length ? length : 1;
    }
}

/* Where the character with this number begins. */
static size_t offset_of_column(const struct buffer *text, size_t column)
{
    size_t at = 0;
    for (size_t seen = 0; at < text->length; at++) {
        if (!utf8_continues(text->bytes[at]) && seen++ == column)
            break;
    }
    return at;
}

void name_append_short(struct buffer *buffer, const char *name, size_t columns)
{
    struct buffer whole = {0};
    name_append(&whole, name);
    size_t count = utf8_columns(whole.bytes, whole.length);
    if (whole.error) {
        buffer->error = whole.error;
    } else if (count <= columns) {
        buffer_write(buffer, whole.bytes, whole.length);
    } else {
        size_t last = (columns - 3) / 2, first = columns - 3 - last;
        size_t from = offset_of_column(&whole, count - last);
        buffer_write(buffer, whole.bytes, offset_of_column(&whole, first));
        buffer_puts(buffer, "...");
        buffer_write(buffer, whole.bytes + from, whole.length - from);
    }
    buffer_free(&whole);
}
