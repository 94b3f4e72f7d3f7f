#include "output/json.h"

#include <inttypes.h>

void json_append_string(struct buffer *buffer, const char *name)
{
    struct buffer shown = {0};
    name_append(&shown, name);
    if (shown.error)
        buffer->error = shown.error;
    buffer_puts(buffer, "\"");
    for (size_t i = 0; i < shown.length; i++) {
        char c = shown.bytes[i];
        if (c == '"' || c == '\\')
            buffer_puts(buffer, "\\");
        if (c == '<')
            buffer_puts(buffer, "\\u003c");
        else
            buffer_write(buffer, &c, 1);
    }
    buffer_puts(buffer, "\"");
    buffer_free(&shown);
}

void json_string(struct sink *sink, const char *name)
{
    struct buffer text = {0};
    json_append_string(&text, name);
    sink_put(sink, &text);
}

void json_key(struct sink *sink, const char *key, bool is_first)
{
    sink_print(sink, "%s\"%s\":", is_first ? "" : ",", key);
}

void json_number(struct sink *sink, const char *key, uint64_t number, bool is_first)
{
    json_key(sink, key, is_first);
    sink_print(sink, "%" PRIu64, number);
}
