#include "jit/jitdump.h"

#include <byteswap.h>
#include <string.h>

#define MAGIC 0x4A695444u
#define VERSION 1
#define HEADER_BYTES 40u
#define RECORD_HEADER_BYTES 16u
#define LOAD_BYTES 56u /* up to the name */
#define LOAD_NAME_MAX 4096u
#define MOVE_BYTES 64u
#define LINES_BYTES 32u /* up to the first line */
#define LINE_BYTES 16u  /* up to its file's name */

enum { RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_DEBUG_INFO = 2 };

static uint32_t get_32(bool is_swapped, const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return is_swapped ? bswap_32(value) : value;
}

static uint64_t get_64(bool is_swapped, const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return is_swapped ? bswap_64(value) : value;
}

static enum jitdump_result read_header(struct jitdump *dump, const uint8_t *bytes, size_t length,
                                       uint64_t available, uint64_t *ret_used)
{
    if (length < HEADER_BYTES)
        return JITDUMP_NEEDS_MORE;
    uint32_t magic = get_32(false, bytes);
    if (magic != MAGIC && bswap_32(magic) != MAGIC)
        return JITDUMP_BROKEN;
    bool is_swapped = magic != MAGIC;
    uint32_t bytes_of_it = get_32(is_swapped, bytes + 8);
    if (get_32(is_swapped, bytes + 4) != VERSION || bytes_of_it < HEADER_BYTES)
        return JITDUMP_BROKEN;
    if (bytes_of_it > available)
        return JITDUMP_NEEDS_MORE;
    dump->has_header = true;
    dump->is_swapped = is_swapped;
    *ret_used = bytes_of_it;
    return JITDUMP_RECORD;
}

/* How much of a record is needed to read it. */
static size_t bytes_needed(uint32_t id, size_t total)
{
    size_t most = total;
    if (id == RECORD_LOAD)
        most = LOAD_BYTES + LOAD_NAME_MAX;
    else if (id != RECORD_DEBUG_INFO)
        most = MOVE_BYTES;
    return total < most ? total : most;
}

static void read_load(struct jitdump_record *record, const uint8_t *bytes, size_t length)
{
    if (length <= LOAD_BYTES)
        return;
    record->start = get_64(record->is_swapped, bytes + 32);
    record->size = get_64(record->is_swapped, bytes + 40);
    record->id = get_64(record->is_swapped, bytes + 48);
    record->name = (const char *)bytes + LOAD_BYTES;
    record->name_bytes = strnlen(record->name, length - LOAD_BYTES);
    if (record->name_bytes && record->size <= UINT64_MAX - record->start)
        record->kind = JITDUMP_LOAD;
}

static void read_move(struct jitdump_record *record, const uint8_t *bytes, size_t length)
{
    if (length < MOVE_BYTES)
        return;
    record->start = get_64(record->is_swapped, bytes + 40);
    record->size = get_64(record->is_swapped, bytes + 48);
    record->id = get_64(record->is_swapped, bytes + 56);
    if (record->size <= UINT64_MAX - record->start)
        record->kind = JITDUMP_MOVE;
}

static void read_lines(struct jitdump_record *record, const uint8_t *bytes, size_t length)
{
    if (length < LINES_BYTES)
        return;
    record->start = get_64(record->is_swapped, bytes + 16);
    record->line_count = get_64(record->is_swapped, bytes + 24);
    record->lines = bytes + LINES_BYTES;
    record->line_bytes = length - LINES_BYTES;
    record->kind = JITDUMP_LINES;
}

enum jitdump_result jitdump_next(struct jitdump *dump, const uint8_t *bytes, size_t length,
                                 uint64_t available, struct jitdump_record *ret_record,
                                 uint64_t *ret_used)
{
    *ret_record = (struct jitdump_record){.is_swapped = dump->is_swapped};
    if (!dump->has_header)
        return read_header(dump, bytes, length, available, ret_used);
    if (length < RECORD_HEADER_BYTES)
        return JITDUMP_NEEDS_MORE;
    uint32_t id = get_32(dump->is_swapped, bytes), total = get_32(dump->is_swapped, bytes + 4);
    if (total < RECORD_HEADER_BYTES)
        return JITDUMP_BROKEN;
    size_t needed = bytes_needed(id, total);
    ret_record->is_too_long = needed > JITDUMP_BUFFER_BYTES;
    if (total > available || (length < needed && !ret_record->is_too_long))
        return JITDUMP_NEEDS_MORE;
    *ret_used = total;
    if (ret_record->is_too_long)
        return JITDUMP_RECORD;
    if (id == RECORD_LOAD)
        read_load(ret_record, bytes, needed);
    else if (id == RECORD_MOVE)
        read_move(ret_record, bytes, needed);
    else if (id == RECORD_DEBUG_INFO)
        read_lines(ret_record, bytes, needed);
    return JITDUMP_RECORD;
}

bool jitdump_next_line(struct jitdump_record *record, struct jitdump_line *ret_line)
{
    if (!record->line_count || record->line_bytes <= LINE_BYTES)
        return false;
    const char *file = (const char *)record->lines + LINE_BYTES;
    size_t room = record->line_bytes - LINE_BYTES, file_bytes = strnlen(file, room);
    if (file_bytes == room)
        return false;
    /* "\xff" means the file of the line before (perf's debug_entry_same). */
    if (file_bytes != 1 || (unsigned char)*file != 0xff) {
        record->file = file;
        record->file_bytes = file_bytes;
    }
    if (!record->file)
        return false;
    *ret_line = (struct jitdump_line){
        .address = get_64(record->is_swapped, record->lines),
        .line = get_32(record->is_swapped, record->lines + 8),
        .file = record->file,
        .file_bytes = record->file_bytes,
    };
    record->lines += LINE_BYTES + file_bytes + 1;
    record->line_bytes -= LINE_BYTES + file_bytes + 1;
    record->line_count--;
    return true;
}
