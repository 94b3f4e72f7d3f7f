#include "output/json.h"
#include "base/name.h"

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

static void put_comma_and_key(struct json *json, const char *key)
{
    if (json->has_item)
        sink_write(json->sink, ",", 1);
    json->has_item = true;
    if (json->is_on_new_line)
        sink_write(json->sink, "\n", 1);
    json->is_on_new_line = false;
    if (key)
        sink_print(json->sink, "\"%s\":", key);
}

void json_begin(struct json *json, const char *key, char bracket)
{
    put_comma_and_key(json, key);
    sink_write(json->sink, &bracket, 1);
    json->has_item = false;
}

void json_end(struct json *json, char bracket)
{
    sink_write(json->sink, &bracket, 1);
    json->has_item = true;
}

void json_number(struct json *json, const char *key, uint64_t number)
{
    json_print(json, key, "%" PRIu64, number);
}

void json_bool(struct json *json, const char *key, bool is_true)
{
    json_print(json, key, "%s", is_true ? "true" : "false");
}

void json_string(struct json *json, const char *key, const char *name)
{
    struct buffer text = {0};
    put_comma_and_key(json, key);
    json_append_string(&text, name);
    sink_put(json->sink, &text);
}

void json_number_if_any(struct json *json, const char *key, uint64_t number)
{
    if (number)
        json_number(json, key, number);
}

void json_string_if_any(struct json *json, const char *key, const char *name)
{
    if (name && *name)
        json_string(json, key, name);
}

void json_break_line(struct json *json)
{
    json->is_on_new_line = true;
}

void json_print(struct json *json, const char *key, const char *format, ...)
{
    va_list arguments;
    put_comma_and_key(json, key);
    va_start(arguments, format);
    sink_vprint(json->sink, format, arguments);
    va_end(arguments);
}
