#include "jit/code.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int jit_code_init(struct jit_code *code)
{
    *code = (struct jit_code){.lowest_line_offset = UINT32_MAX};
    return strings_init(&code->strings);
}

void jit_code_free(struct jit_code *code)
{
    free(code->symbols);
    free(code->ranges.items);
    free(code->pending.items);
    free(code->lines);
    strings_free(&code->strings);
    index_free(&code->by_id);
    *code = (struct jit_code){0};
}

static int intern(struct jit_code *code, const char *name, size_t bytes, uint32_t *ret_name)
{
    char text[JIT_NAME_MAX + 1];
    if (code->strings.text_bytes >= JIT_TEXT_BYTES_MAX)
        return -ENOSPC;
    bytes = utf8_cut(name, bytes, JIT_NAME_MAX);
    memcpy(text, name, bytes);
    text[bytes] = '\0';
    return strings_intern(&code->strings, text, ret_name);
}

static int append(struct jit_code *code, const struct jit_symbol *symbol)
{
    if (code->symbol_count >= JIT_SYMBOLS_MAX)
        return -ENOSPC;
    return array_append(&code->symbols, &code->symbol_count, &code->symbol_capacity, *symbol);
}

int jit_code_add(struct jit_code *code, uint64_t start, uint64_t size, const char *name,
                 size_t name_bytes, uint32_t line_count)
{
    size_t open_lines = code->line_count - code->claimed_line_count;
    struct jit_symbol symbol = {.start = start, .size = size};
    if (!size)
        return 0;
    symbol.line_count = line_count < open_lines ? line_count : (uint32_t)open_lines;
    symbol.first_line = (uint32_t)code->line_count - symbol.line_count;
    code->claimed_line_count = code->line_count;
    int err = intern(code, name, name_bytes, &symbol.name);
    return err ? err : append(code, &symbol);
}

int jit_code_add_line(struct jit_code *code, uint32_t offset, const char *file, size_t file_bytes,
                      uint32_t line)
{
    struct jit_line row = {.offset = offset, .line = line};
    if (code->line_count >= JIT_LINES_MAX)
        return -ENOSPC;
    int err = intern(code, file, file_bytes, &row.file);
    if (!err)
        err = array_append(&code->lines, &code->line_count, &code->line_capacity, row);
    if (!err && offset < code->lowest_line_offset)
        code->lowest_line_offset = offset;
    return err;
}

int jit_code_identify(struct jit_code *code, uint64_t id)
{
    if (!code->symbol_count ||
        INDEX_FIND(&code->by_id, sizeof id, &id, code->symbols) != INDEX_NONE)
        return 0;
    uint32_t number = (uint32_t)code->symbol_count - 1;
    code->symbols[number].id = id;
    return index_add(&code->by_id, hash_bytes(&id, sizeof id, 0), number);
}

int jit_code_move(struct jit_code *code, uint64_t id, uint64_t start)
{
    uint32_t number = INDEX_FIND(&code->by_id, sizeof id, &id, code->symbols);
    if (number == INDEX_NONE)
        return 0;
    struct jit_symbol moved = code->symbols[number];
    moved.start = start;
    return moved.size > UINT64_MAX - start ? 0 : append(code, &moved);
}

/* Puts newer ranges over older ones. `result` gets the newer ones and what is left of the older
 * ones between them; it has room for twice the newer plus the older. Returns how many there are. */
static size_t overlay(const struct jit_ranges *newer, const struct jit_ranges *older,
                      struct jit_range *result)
{
    size_t count = 0, at = 0;
    uint64_t from = 0; /* the end of the previous newer range */
    for (size_t i = 0; i <= newer->count; i++) {
        uint64_t until = i < newer->count ? newer->items[i].start : UINT64_MAX;
        for (; at < older->count && older->items[at].start < until; at++) {
            struct jit_range part = older->items[at];
            part.start = part.start > from ? part.start : from;
            part.end = part.end < until ? part.end : until;
            if (part.start < part.end)
                result[count++] = part;
            /* It may continue after the newer range. */
            if (older->items[at].end > until)
                break;
        }
        if (i < newer->count) {
            result[count++] = newer->items[i];
            from = newer->items[i].end;
        }
    }
    return count;
}

/* Makes ranges of `count` symbols, starting with number `first`. Splits them into halves and puts
 * the later half over the earlier one, which takes n log n. Both buffers have room for 2 * count;
 * the result is in `ranges`. */
static size_t sort_ranges(const struct jit_code *code, size_t first, size_t count,
                          struct jit_range *ranges, struct jit_range *scratch)
{
    if (!count)
        return 0;
    if (count == 1) {
        const struct jit_symbol *symbol = &code->symbols[first];
        ranges[0] =
            (struct jit_range){symbol->start, symbol->start + symbol->size, (uint32_t)first};
        return 1;
    }
    size_t half = count / 2;
    struct jit_ranges older = {.items = scratch}, newer = {.items = scratch + 2 * half};
    older.count = sort_ranges(code, first, half, older.items, ranges);
    newer.count = sort_ranges(code, first + half, count - half, newer.items, ranges + 2 * half);
    return overlay(&newer, &older, ranges);
}

int jit_code_prepare(struct jit_code *code)
{
    size_t count = code->symbol_count - code->applied_count;
    struct jit_range *ranges = calloc(2 * count + 1, sizeof *ranges);
    struct jit_range *scratch = calloc(2 * count + 1, sizeof *scratch);
    int err = ranges && scratch ? 0 : -ENOMEM;
    if (!err) {
        free(code->pending.items);
        code->pending.items = ranges;
        code->pending.count = sort_ranges(code, code->applied_count, count, ranges, scratch);
        ranges = NULL;
    }
    free(ranges);
    free(scratch);
    return err;
}

int jit_code_apply(struct jit_code *code)
{
    struct jit_range *result =
        calloc(2 * code->pending.count + code->ranges.count + 1, sizeof *result);
    if (!result)
        return -ENOMEM;
    code->ranges.count = overlay(&code->pending, &code->ranges, result);
    free(code->ranges.items);
    code->ranges.items = result;
    free(code->pending.items);
    code->pending = (struct jit_ranges){0};
    code->applied_count = code->symbol_count;
    return 0;
}

/* What is copied fitted the limits before. */
static int copy_text(struct jit_code *code, const struct jit_code *from, uint32_t *text)
{
    return strings_intern(&code->strings, strings_get(&from->strings, *text), text);
}

static int copy_lines(struct jit_code *code, const struct jit_code *from, size_t first,
                      size_t count)
{
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        struct jit_line line = from->lines[first + i];
        err = copy_text(code, from, &line.file);
        if (!err)
            err = array_append(&code->lines, &code->line_count, &code->line_capacity, line);
    }
    return err;
}

/* Copies the symbol's lines, unless it was moved and another copied symbol has them. `copied` has,
 * for each line of `from`, the index + 1 of the copy of the lines that begin there; 0: not copied
 * yet. */
static int share_lines(struct jit_code *code, const struct jit_code *from, uint32_t *copied,
                       struct jit_symbol *symbol)
{
    uint32_t *line = &copied[symbol->first_line], first = (uint32_t)code->line_count;
    if (!symbol->line_count)
        return 0;
    if (!*line) {
        int err = copy_lines(code, from, symbol->first_line, symbol->line_count);
        if (err)
            return err;
        *line = first + 1;
    }
    symbol->first_line = *line - 1;
    return 0;
}

static int copy_symbol(struct jit_code *code, const struct jit_code *from, uint32_t number,
                       uint32_t *copied)
{
    struct jit_symbol copy = from->symbols[number];
    uint64_t id = copy.id;
    copy.id = 0;
    int err = copy_text(code, from, &copy.name);
    if (!err)
        err = share_lines(code, from, copied, &copy);
    if (!err)
        err = append(code, &copy);
    return err || !id ? err : jit_code_identify(code, id);
}

int jit_code_copy(struct jit_code *code, const struct jit_code *from, const struct renumber *needed)
{
    uint32_t *copied = calloc(from->line_count + 1, sizeof *copied);
    int err = copied ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < from->symbol_count && !err; i++) {
        if (renumber_of(needed, i) == ROW_GONE)
            continue;
        err = copy_symbol(code, from, i, copied);
        code->applied_count += i < from->applied_count;
    }
    code->claimed_line_count = code->line_count;
    /* Lines that were announced for a symbol that is still to come. */
    if (!err)
        err = copy_lines(code, from, from->claimed_line_count,
                         from->line_count - from->claimed_line_count);
    /* Also of lines that are not copied: see LINE_SHIFT. */
    code->lowest_line_offset = from->lowest_line_offset;
    free(copied);
    return err;
}

/* Those that are some code's name now, or will be. */
static void keep_current(const struct jit_code *code, struct renumber *needed)
{
    for (size_t i = 0; i < code->ranges.count; i++)
        renumber_keep(needed, code->ranges.items[i].symbol);
    for (size_t i = code->applied_count; i < code->symbol_count; i++)
        renumber_keep(needed, (uint32_t)i);
}

int jit_code_keep(struct jit_code *code, struct renumber *needed)
{
    struct jit_code kept;
    keep_current(code, needed);
    bool are_many = renumber_kept(needed) <= code->symbol_count - code->symbol_count / 4;
    for (uint32_t i = 0; i < code->symbol_count && !are_many; i++)
        renumber_keep(needed, i);
    renumber_assign(needed);
    if (!are_many)
        return 0;
    int err = jit_code_init(&kept);
    if (!err)
        err = jit_code_copy(&kept, code, needed);
    if (err) {
        jit_code_free(&kept);
        return err;
    }
    kept.ranges = code->ranges;
    code->ranges = (struct jit_ranges){0};
    for (size_t i = 0; i < kept.ranges.count; i++)
        kept.ranges.items[i].symbol = renumber_of(needed, kept.ranges.items[i].symbol);
    jit_code_free(code);
    *code = kept;
    return 0;
}

bool jit_code_has_room(const struct jit_code *code)
{
    return code->symbol_count < JIT_SYMBOLS_MAX / 4 * 3 &&
           code->line_count < JIT_LINES_MAX / 4 * 3 &&
           code->strings.text_bytes < JIT_TEXT_BYTES_MAX / 4 * 3;
}

static uint32_t find(const struct jit_ranges *ranges, uint64_t address)
{
    size_t at = UPPER_BOUND(ranges->items, ranges->count, end, address);
    if (at == ranges->count || ranges->items[at].start > address)
        return JIT_NO_SYMBOL;
    return ranges->items[at].symbol;
}

uint32_t jit_code_find(const struct jit_code *code, uint64_t address)
{
    return find(&code->ranges, address);
}

uint32_t jit_code_find_pending(const struct jit_code *code, uint64_t address)
{
    return find(&code->pending, address);
}

/* V8 writes addresses as they will be in the ELF file that perf inject makes of the code, in which
 * the code follows the header (PerfJitLogger::LogWriteDebugInfo in its src/diagnostics/perf-jit.cc;
 * 64 bytes, sizeof(Elf64_Ehdr)). Code is assumed to be V8's if no function has a line in its first
 * 64 bytes. */
#define LINE_SHIFT 64

const struct jit_line *jit_code_line(const struct jit_code *code, const struct jit_symbol *symbol,
                                     uint64_t address)
{
    const struct jit_line *found = NULL;
    uint64_t offset = address - symbol->start;
    if (code->lowest_line_offset >= LINE_SHIFT)
        offset += LINE_SHIFT;
    for (uint32_t i = 0; i < symbol->line_count; i++) {
        const struct jit_line *line = &code->lines[symbol->first_line + i];
        if (line->offset <= offset && (!found || line->offset >= found->offset))
            found = line;
    }
    return found;
}
