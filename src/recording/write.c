/* Writes a recording, to be read again (recording/read.c): all samples, whatever the view.
 *
 * The file is gzipped (RFC 1952), which adds a checksum of the whole. It has "fgprof-c", the
 * version in 4 bytes, little-endian, then sections: number, length in bytes, and that many bytes.
 * The section COLUMN_STRINGS has the strings, in order, each as its length and its bytes.
 * COLUMN_RECORDED_BY has the bytes of the command line that recorded it, COLUMN_REASON the reason
 * for which it was written, and COLUMN_HOST the machine's name, if they are known. The others are
 * the columns of recording/columns.h, with a number for each row. An optional column of zeros is
 * omitted, because it reads the same, if another column shows how many rows there are. Numbers are
 * LEB128 (DWARF 5, 7.6).
 *
 * A program skips sections that it does not know, so new contents go into new sections. The version
 * grows only if the rest would be wrong without the new sections: version 2 is for objects. */
#include "recording/recording.h"
#include "recording/columns.h"
#include "base/protobuf.h"

#include <string.h>

static void put_section(struct sink *sink, unsigned number, struct buffer *contents)
{
    struct buffer head = {0};
    protobuf_varint(&head, number);
    protobuf_varint(&head, contents->length);
    int err = contents->error ? contents->error : head.error;
    if (err && !sink->error)
        sink->error = err;
    sink_write(sink, head.bytes, head.length);
    sink_write(sink, contents->bytes, contents->length);
    contents->length = 0;
    buffer_free(&head);
}

static void put_strings(struct sink *sink, const struct strings *strings, struct buffer *contents)
{
    for (size_t i = 0; i < strings->count; i++) {
        const char *text = strings->items[i];
        protobuf_varint(contents, strlen(text));
        buffer_write(contents, text, strlen(text));
    }
    put_section(sink, COLUMN_STRINGS, contents);
}

/* Omits an optional column of zeros, unless it `tells_rows`. Returns whether it was written. */
static bool put_column(struct sink *sink, const struct fgprof_profile *profile,
                       const struct profile_column *column, bool tells_rows,
                       struct buffer *contents)
{
    size_t rows = profile_rows(profile, column->table);
    bool is_wanted = !profile_column_is_optional(column) || (tells_rows && rows);
    for (size_t row = 0; row < rows; row++) {
        uint64_t value = profile_cell(profile, column, row);
        is_wanted = is_wanted || value;
        protobuf_varint(contents, value);
    }
    if (is_wanted)
        put_section(sink, column->number, contents);
    contents->length = 0;
    return is_wanted;
}

/* A table has as many rows as its columns. A table of zeros keeps one column to show how many. */
static void put_columns(struct sink *sink, const struct fgprof_profile *profile,
                        struct buffer *contents)
{
    bool is_told[TABLE_COUNT] = {0};
    size_t count = profile_column_count();
    for (size_t i = 0; i < count && !sink->error; i++) {
        const struct profile_column *column = profile_column(i);
        is_told[column->table] |= put_column(sink, profile, column, false, contents);
    }
    for (size_t i = 0; i < count && !sink->error; i++) {
        const struct profile_column *column = profile_column(i);
        if (!is_told[column->table])
            is_told[column->table] = put_column(sink, profile, column, true, contents);
    }
}

static void put_text(struct sink *sink, unsigned number, const char *text, struct buffer *contents)
{
    if (!text || !*text)
        return;
    buffer_write(contents, text, strlen(text));
    put_section(sink, number, contents);
}

void recording_write(const struct fgprof_profile *profile, struct sink *sink)
{
    const unsigned char version[RECORDING_HEAD_BYTES - RECORDING_MAGIC_BYTES] = {
        profile_is_of_objects(profile) ? RECORDING_VERSION_OBJECTS : RECORDING_VERSION_TIME};
    struct buffer contents = {0};
    sink_write(sink, RECORDING_MAGIC, RECORDING_MAGIC_BYTES);
    sink_write(sink, version, sizeof version);
    put_strings(sink, &profile->strings, &contents);
    put_columns(sink, profile, &contents);
    put_text(sink, COLUMN_RECORDED_BY, profile_recorded_by(profile), &contents);
    put_text(sink, COLUMN_REASON, profile->reason, &contents);
    put_text(sink, COLUMN_HOST, profile->host, &contents);
    buffer_free(&contents);
}
