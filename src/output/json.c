#include "output/json.h"

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
