#include "runtime/python/code.h"
#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool python_code_read_head(const struct python_memory *memory, uint64_t address,
                           struct python_code_head *ret_head)
{
    const struct python_layout *layout = memory->layout;
    unsigned char object[256];
    size_t bytes = layout->code_lines + sizeof(uint64_t);
    *ret_head = (struct python_code_head){0};
    if (bytes > sizeof object || layout->code_filename + 8u > bytes ||
        layout->code_qualname + 8u > bytes || layout->code_first_line + 4u > bytes ||
        layout->object_type + 8u > bytes || !python_read(memory, address, object, bytes))
        return false;
    ret_head->filename = load_word(object, layout->code_filename);
    ret_head->qualname = load_word(object, layout->code_qualname);
    ret_head->lines = load_word(object, layout->code_lines);
    memcpy(&ret_head->first_line, object + layout->code_first_line, sizeof ret_head->first_line);
    return !memory->code_type || load_word(object, layout->object_type) == memory->code_type;
}

static int read_lines(const struct python_memory *memory, uint64_t address,
                      struct python_code *code)
{
    const struct python_layout *layout = memory->layout;
    uint64_t length;
    if (!python_read(memory, address + layout->bytes_length, &length, sizeof length) || !length)
        return 0;
    size_t bytes = length < PYTHON_LINES_BYTES_MAX ? length : PYTHON_LINES_BYTES_MAX;
    code->lines = malloc(bytes);
    if (!code->lines)
        return -ENOMEM;
    if (python_read(memory, address + layout->bytes_data, code->lines, bytes))
        code->line_bytes = bytes;
    return 0;
}

int python_code_read(const struct python_memory *memory, const struct python_code_head *head,
                     struct python_code *ret_code)
{
    *ret_code = (struct python_code){.head = *head, .line_table = memory->layout->line_table};
    python_text_read(memory, head->qualname, ret_code->name);
    python_text_read(memory, head->filename, ret_code->file);
    return read_lines(memory, head->lines, ret_code);
}

/* ---- Lines ---- */

/* Kinds of entries (_PyCodeLocationInfoKind): 0 to 9 are of the line before. */
enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };

#define IS_BEGIN 0x80u
#define IS_CONTINUED 0x40u
#define UNIT_BYTES 2u /* of the code; an entry covers some */

/* Six bits a byte, the lowest first; the sign is the lowest bit of all. */
static int64_t read_signed(const unsigned char *at, const unsigned char *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; at < end && shift < 60; shift += 6, at++) {
        value |= (uint64_t)(*at & 0x3f) << shift;
        if (!(*at & IS_CONTINUED))
            break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint32_t line_of_locations(const struct python_code *code, uint64_t offset)
{
    const unsigned char *at = code->lines, *end = at + code->line_bytes;
    int64_t line = code->head.first_line;
    uint64_t covered = 0;
    while (at < end && *at & IS_BEGIN) {
        unsigned kind = *at >> 3 & 15, units = (*at & 7) + 1;
        at++;
        if (kind == NO_COLUMNS || kind == LONG)
            line += read_signed(at, end);
        else if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
            line += kind - ONE_LINE_0;
        covered += units * UNIT_BYTES;
        if (offset < covered)
            return kind == NO_LINE || line < 0 || line > INT32_MAX ? 0 : (uint32_t)line;
        while (at < end && !(*at & IS_BEGIN))
            at++;
    }
    return 0;
}

/* The tables before 3.11 are pairs: a number of bytes of code, and by how much the line grows,
 * which is signed. In 3.10 the pair's line is that of the bytes, or NO_LINE_BEFORE_3_11; in 3.9 it
 * is that of the code after them. */
#define NO_LINE_BEFORE_3_11 (-128)

static uint32_t line_of_pairs(const struct python_code *code, uint64_t offset)
{
    bool covers_code_before = code->line_table == PYTHON_LNOTAB;
    int64_t line = code->head.first_line;
    uint64_t covered = 0;
    for (size_t i = 0; i + 1 < code->line_bytes; i += 2) {
        int growth = (signed char)code->lines[i + 1];
        bool has_line = covers_code_before || growth != NO_LINE_BEFORE_3_11;
        covered += code->lines[i];
        if (covers_code_before && offset < covered)
            break;
        line += has_line ? growth : 0;
        if (!covers_code_before && offset < covered)
            return has_line && line > 0 ? (uint32_t)line : 0;
    }
    return covers_code_before && line > 0 ? (uint32_t)line : 0;
}

uint32_t python_code_line(const struct python_code *code, uint64_t offset)
{
    return code->line_table == PYTHON_LOCATIONS ? line_of_locations(code, offset)
                                                : line_of_pairs(code, offset);
}

uint64_t python_code_offset(const struct python_layout *layout, uint64_t code, uint64_t instruction)
{
    /* A frame that has just been made is before its first instruction. */
    if (!layout->has_frame_objects) {
        uint64_t first = code + layout->code_instructions;
        return instruction > first ? instruction - first : 0;
    }
    int32_t last = (int32_t)instruction; /* f_lasti, of four bytes */
    uint64_t unit_bytes = layout->line_table == PYTHON_LNOTAB ? 1 : UNIT_BYTES;
    return last > 0 ? (uint64_t)last * unit_bytes : 0;
}
