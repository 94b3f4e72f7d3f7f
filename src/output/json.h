/* JSON (RFC 8259). */
#ifndef FGPROF_OUTPUT_JSON_H
#define FGPROF_OUTPUT_JSON_H

#include "output/name.h"
#include "base/sink.h"

/* Appends the name as a string with its quotes. Control characters and bytes that are not UTF-8
 * appear as name_append shows them, so that a name reads the same in every output. '<' is
 * escaped: no name can end the script of an HTML page around the JSON, or begin a comment there. */
void json_append_string(struct buffer *buffer, const char *name);

/* Writes the name in the same way. */
void json_string(struct sink *sink, const char *name);

/* Writes `"key":`, after a comma unless it `is_first`. `key` is ours. */
void json_key(struct sink *sink, const char *key, bool is_first);

/* Writes `"key":number` in the same way. */
void json_number(struct sink *sink, const char *key, uint64_t number, bool is_first);

#endif
