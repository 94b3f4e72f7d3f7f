/* Writes JSON (RFC 8259). */
#ifndef FGPROF_OUTPUT_JSON_H
#define FGPROF_OUTPUT_JSON_H

#include "base/buffer.h"
#include "base/sink.h"

/* Places commas and line breaks. Errors are in the sink. */
struct json {
    struct sink *sink;
    bool has_item; /* in the innermost array or object */
    bool is_on_new_line;
};

/* Each writes one value: in an object with its key, which is not escaped; in an array with NULL. */
void json_begin(struct json *json, const char *key, char bracket);
void json_end(struct json *json, char bracket);
void json_number(struct json *json, const char *key, uint64_t number);
void json_bool(struct json *json, const char *key, bool is_true);
void json_string(struct json *json, const char *key, const char *name);
/* The same, but nothing for 0, and for NULL or "". */
void json_number_if_any(struct json *json, const char *key, uint64_t number);
void json_string_if_any(struct json *json, const char *key, const char *name);
/* Begins a new line before the next value. */
void json_break_line(struct json *json);
/* Writes a value that is JSON already. */
void json_print(struct json *json, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends the name as a string with its quotes. Control characters and bytes that are not UTF-8
 * appear as name_append shows them, so that a name reads the same in every output. '<' is escaped:
 * no name can end the script of an HTML page around the JSON, or begin a comment there. */
void json_append_string(struct buffer *buffer, const char *name);

#endif
