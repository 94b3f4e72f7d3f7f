#include "jit/source.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How much is read without reaching the end. Runtimes that have run for a long time write maps of
 * hundreds of megabytes, mostly about code that no longer exists. At first only the end of such a
 * map is read, which leaves room for additions. */
#define MAP_BYTES_MAX ((off_t)64 << 20)
#define MAP_BYTES_AT_FIRST_MAX ((off_t)48 << 20)
/* A dump also holds the code, and can only be read from its start. */
#define DUMP_BYTES_MAX ((off_t)512 << 20)
#define BUFFER_BYTES JITDUMP_BUFFER_BYTES

static void begin(struct jit_source *source, off_t size)
{
    source->offset = source->end = 0;
    source->map = (struct perf_map){0};
    source->dump = (struct jitdump){0};
    source->line_count = 0;
    if (!source->is_dump && size > MAP_BYTES_AT_FIRST_MAX) {
        source->offset = size - MAP_BYTES_AT_FIRST_MAX;
        source->map.is_in_long_line = true; /* reading starts in the middle of a line */
        source->bytes_unread += (uint64_t)source->offset;
    }
}

static off_t size_of(const struct jit_source *source)
{
    struct stat status;
    return fstat(source->fd, &status) ? 0 : status.st_size;
}

void jit_source_open(struct jit_source *source, int fd, bool is_dump)
{
    *source = (struct jit_source){.is_open = true,
                                  .is_dump = is_dump,
                                  .fd = fd,
                                  .bytes_read = source->bytes_read,
                                  .bytes_unread = source->bytes_unread};
    begin(source, size_of(source));
}

void jit_source_close(struct jit_source *source)
{
    if (!source->is_open)
        return;
    off_t size = size_of(source);
    if ((source->is_spent || source->is_full) && size > source->offset)
        source->bytes_unread += (uint64_t)(size - source->offset);
    close(source->fd);
    source->is_open = false;
}

bool jit_source_has_more(struct jit_source *source)
{
    struct stat status;
    if (!source->is_open || fstat(source->fd, &status))
        return false;
    if (status.st_size < source->offset)
        begin(source, status.st_size);
    source->size = status.st_size;
    bool has_rest = source->size > source->offset && !source->is_spent && !source->is_full;
    if (!has_rest && !status.st_nlink && !source->is_dump)
        jit_source_close(source);
    return has_rest && source->size != source->end;
}

static void add_entry(void *context, const struct perf_map_entry *entry)
{
    announce_symbol(context, entry->start, entry->size, entry->name, entry->name_bytes, 0);
}

/* A record that is broken, or has lines before its function, is ignored: V8 writes such records if
 * a script's name is not in plain memory. */
static void add_lines(struct jit_source *source, struct buffer *announced,
                      struct jitdump_record *record)
{
    struct jitdump_record check = *record;
    struct jitdump_line line;
    const char *file = NULL; /* of the line before */
    size_t file_bytes = 0;
    source->line_count = 0;
    source->lines_start = record->start;
    while (jitdump_next_line(&check, &line)) {
        if (line.address < record->start || line.address - record->start > UINT32_MAX)
            return;
    }
    while (!check.line_count && jitdump_next_line(record, &line)) {
        bool is_same =
            file && file_bytes == line.file_bytes && memcmp(file, line.file, file_bytes) == 0;
        announce_line(announced, (uint32_t)(line.address - record->start),
                      is_same ? NULL : line.file, line.file_bytes, line.line);
        file = line.file;
        file_bytes = line.file_bytes;
        source->line_count++;
    }
}

static void add_record(struct jit_source *source, struct buffer *announced,
                       struct jitdump_record *record)
{
    uint32_t line_count = source->lines_start == record->start ? source->line_count : 0;
    switch (record->kind) {
    case JITDUMP_LOAD:
        source->line_count = 0;
        if (!record->size)
            return;
        announce_symbol(announced, record->start, record->size, record->name, record->name_bytes,
                        line_count);
        announce_id(announced, record->id);
        return;
    case JITDUMP_MOVE:
        announce_move(announced, record->id, record->start);
        return;
    case JITDUMP_LINES:
        add_lines(source, announced, record);
        return;
    case JITDUMP_OTHER:
        return;
    }
}

/* Reads the complete records in the buffer, and returns their length in bytes. The last one may end
 * beyond the buffer. */
static uint64_t read_records(struct jit_source *source, struct buffer *announced,
                             const uint8_t *bytes, size_t length, uint64_t available)
{
    uint64_t at = 0;
    while (at < length && !source->is_spent) {
        struct jitdump_record record;
        uint64_t used;
        enum jitdump_result result =
            jitdump_next(&source->dump, bytes + at, length - at, available - at, &record, &used);
        if (result == JITDUMP_NEEDS_MORE)
            break;
        source->is_spent = result == JITDUMP_BROKEN;
        if (source->is_spent)
            break;
        if (record.is_too_long)
            source->bytes_unread += used;
        add_record(source, announced, &record);
        at += used;
    }
    return at;
}

int jit_source_read(const struct jit_source *from, off_t most, struct jit_reading *reading)
{
    struct jit_source *source = &reading->source;
    struct buffer *announced = &reading->announced;
    uint64_t begin_ns = thread_cpu_ns();
    off_t until = from->offset + most, size = size_of(from);
    off_t bytes_max = from->is_dump ? DUMP_BYTES_MAX : MAP_BYTES_MAX;
    uint8_t *buffer = malloc(BUFFER_BYTES);
    bool is_at_end = false;
    *source = *from;
    announced->length = 0;
    announced->error = buffer ? 0 : -ENOMEM;
    while (!announced->error && !is_at_end && !source->is_spent && source->offset < until) {
        uint64_t used = 0;
        ssize_t got = pread(source->fd, buffer, BUFFER_BYTES, source->offset);
        off_t end = source->offset + got > size ? source->offset + got : size;
        if (got > 0 && source->is_dump) {
            used = read_records(source, announced, buffer, (size_t)got,
                                (uint64_t)(end - source->offset));
        } else if (got > 0) {
            used = perf_map_read(&source->map, (const char *)buffer, (size_t)got, add_entry,
                                 announced);
        }
        source->offset += (off_t)used;
        source->bytes_read += (off_t)used;
        is_at_end = !used;
        source->is_spent = source->is_spent || source->bytes_read >= bytes_max;
    }
    free(buffer);
    if (is_at_end)
        source->bytes_read = 0;
    reading->is_at_end = is_at_end || source->is_spent;
    reading->cpu_ns = thread_cpu_ns() - begin_ns;
    return announced->error;
}

int jit_source_take(struct jit_source *source, const struct jit_reading *reading,
                    struct jit_code *code)
{
    const struct buffer *announced = &reading->announced;
    const uint8_t *begin = (const uint8_t *)announced->bytes;
    int err = announced->length
                  ? announced_take((struct bytes){begin, begin + announced->length, false}, code)
                  : 0;
    if (!err) {
        *source = reading->source;
        /* What was written during the read, and may have been missed by it, is not included. */
        if (reading->is_at_end)
            source->end = source->size;
    }
    source->is_full = err == -ENOSPC;
    source->is_spent = source->is_spent || err == -EPROTO;
    return err == -ENOMEM ? err : 0;
}
