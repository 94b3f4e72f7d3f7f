#include "output/json.h"

#include <inttypes.h>

void json_append_string(struct text_buffer *buffer, const char *name)
{
    struct text_buffer shown = {0};
    text_append_name(&shown, name);
    if (shown.error)
        buffer->error = shown.error;
    text_append(buffer, "\"");
    for (size_t i = 0; i < shown.length; i++) {
        char c = shown.text[i];
        if (c == '"' || c == '\\')
            text_append(buffer, "\\");
        if (c == '<')
            text_append(buffer, "\\u003c");
        else
            text_append_bytes(buffer, &c, 1);
    }
    text_append(buffer, "\"");
    text_free(&shown);
}

void json_string(struct sink *sink, const char *name)
{
    struct text_buffer text = {0};
    json_append_string(&text, name);
    text_put(sink, &text);
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
