/* A module with a function table built by hand in each of its formats, and the runtime's record
 * about the file (see elf/go/pclntab.h). */
#ifndef FGPROF_TESTS_MAKE_PCLNTAB_H
#define FGPROF_TESTS_MAKE_PCLNTAB_H

#include "unit.h"
#include "elf/go/pclntab.h"

#define MADE_GO_CODE 0x401000u /* address of the code, at file offset 0x1000 */
#define MADE_GO_DATA 0x402000u /* address of the rest, at file offset 0x2000 */
#define MADE_GO_BYTES 0x6000u
#define MADE_GO_TABLE (MADE_GO_DATA + 0x100u)
#define MADE_GO_MODULE (MADE_GO_DATA + 0x2000u)
#define MADE_GO_INLINED (MADE_GO_DATA + 0x2800u)
#define MADE_GO_FUNCTIONS_MAX 10
/* The unit in which tables count code: the smallest instruction. */
#ifdef __aarch64__
#define MADE_GO_QUANTUM 4u
#else
#define MADE_GO_QUANTUM 1u
#endif

/* Offsets of the parts in the table. */
enum {
    MADE_GO_FUNCTIONS = 0x200, /* from 1.16 on; before, at the start */
    MADE_GO_RECORDS = 0x400,
    MADE_GO_NAMES = 0x800,
    MADE_GO_UNITS = 0xb00,
    MADE_GO_FILES = 0xc00,
    MADE_GO_TABLES = 0xe00,
};

/* Each function begins where the one before it ends. Its frame has `frame_bytes` from the second
 * unit of its code on, and `more_bytes` more in the second half. It has one line for the first half
 * of the code and one for the second. */
struct made_function {
    const char *name;
    uint32_t code_bytes;
    uint32_t frame_bytes;
    uint32_t lines[2];
    bool has_inlined; /* `main.inlined`, in the first half, called at byte 1 */
    bool is_foreign;  /* has no tables */
    bool sets_stack_pointer;
    uint32_t more_bytes;
};

struct made_go {
    uint8_t *bytes;
    enum pclntab_form form;
    uint32_t names_end, tables_end, records_end;
    uint32_t inlined_name;
    struct module module;
    struct segment segments[2];
};

static inline void put_go(struct made_go *made, uint64_t address, const void *from, size_t bytes)
{
    assert_true(address - 0x400000 + bytes <= MADE_GO_BYTES);
    memcpy(made->bytes + (address - 0x400000), from, bytes);
}

static inline void put_go32(struct made_go *made, uint64_t address, uint64_t value)
{
    uint32_t word = (uint32_t)value;
    put_go(made, address, &word, sizeof word);
}

static inline void put_go64(struct made_go *made, uint64_t address, uint64_t value)
{
    put_go(made, address, &value, sizeof value);
}

static inline uint32_t put_go_name(struct made_go *made, const char *name)
{
    uint32_t at = made->names_end;
    put_go(made, MADE_GO_TABLE + MADE_GO_NAMES + at, name, strlen(name) + 1);
    made->names_end += (uint32_t)strlen(name) + 1;
    return at;
}

static inline void put_go_varint(struct made_go *made, uint32_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put_go(made, MADE_GO_TABLE + MADE_GO_TABLES + made->tables_end++, &byte, 1);
        value >>= 7;
    } while (value);
}

/* A table of two different numbers: the first for `first_bytes` of the code. Returns its offset. */
static inline uint32_t put_go_numbers(struct made_go *made, int32_t first, uint32_t first_bytes,
                                      int32_t second, uint32_t second_bytes)
{
    uint32_t at = made->tables_end;
    int32_t changes[2] = {first + 1, second - first};
    uint32_t lengths[2] = {first_bytes, second_bytes};
    for (unsigned i = 0; i < 2; i++) {
        uint32_t change = (uint32_t)changes[i];
        put_go_varint(made, changes[i] < 0 ? ~(change << 1) : change << 1);
        put_go_varint(made, lengths[i] / MADE_GO_QUANTUM);
    }
    put_go_varint(made, 0);
    return at;
}

/* The table of a function's frame sizes. Returns its offset. */
static inline uint32_t put_go_frames(struct made_go *made, const struct made_function *function)
{
    uint32_t first = MADE_GO_QUANTUM, half = function->code_bytes / 2;
    int32_t frame_bytes = (int32_t)function->frame_bytes;
    if (!frame_bytes && function->more_bytes)
        return put_go_numbers(made, 0, half, (int32_t)function->more_bytes, half);
    if (!frame_bytes)
        return put_go_numbers(made, 0, function->code_bytes, 0, first);
    if (!function->more_bytes)
        return put_go_numbers(made, 0, first, frame_bytes, function->code_bytes - first);
    uint32_t at = put_go_numbers(made, 0, first, frame_bytes, half - first);
    made->tables_end--; /* the table's end */
    put_go_varint(made, function->more_bytes << 1);
    put_go_varint(made, (function->code_bytes - half) / MADE_GO_QUANTUM);
    put_go_varint(made, 0);
    return at;
}

/* Returns the offset of the record in the table. */
static inline uint32_t put_go_record(struct made_go *made, const struct made_function *function,
                                     uint64_t start)
{
    uint32_t at = MADE_GO_RECORDS + made->records_end;
    uint64_t address = MADE_GO_TABLE + at;
    uint32_t base = made->form == PCLNTAB_1_2 ? MADE_GO_NAMES : 0;
    uint32_t tables_base = made->form == PCLNTAB_1_2 ? MADE_GO_TABLES : 0;
    uint32_t half = function->code_bytes / 2, rest = function->code_bytes - half;
    bool is_old = made->form < PCLNTAB_1_18;
    if (is_old)
        put_go64(made, address, start);
    else
        put_go32(made, address, start - MADE_GO_CODE);
    address += is_old ? 8 : 4;
    put_go32(made, address, base + put_go_name(made, function->name));
    if (!function->is_foreign) {
        uint32_t first = MADE_GO_QUANTUM;
        uint32_t frames = put_go_frames(made, function);
        uint32_t files = put_go_numbers(made, 1, half + rest, 0, first);
        uint32_t lines = put_go_numbers(made, (int32_t)function->lines[0], half,
                                        (int32_t)function->lines[1], rest);
        put_go32(made, address + 12, tables_base + frames);
        put_go32(made, address + 16, tables_base + files);
        put_go32(made, address + 20, tables_base + lines);
    }
    put_go32(made, address + 24, 3);
    uint64_t end = address + 28;
    if (made->form > PCLNTAB_1_2) {
        put_go32(made, end, 2); /* the unit's first file */
        end += made->form == PCLNTAB_1_20 ? 8 : 4;
    }
    put_go32(made, end, 4u << 24 | (function->sets_stack_pointer ? 2u << 8 : 0));
    end += 4;
    uint32_t inlined = function->has_inlined ? put_go_numbers(made, 0, half, -1, rest) : 0;
    put_go32(made, end + 8, tables_base + inlined);
    put_go32(made, end + 12 + 12, function->has_inlined ? 0x10 : UINT32_MAX);
    made->records_end += 0x60;
    return at;
}

static inline void put_go_functions(struct made_go *made, const struct made_function *functions,
                                    size_t count)
{
    bool is_old = made->form < PCLNTAB_1_18;
    uint64_t entry = MADE_GO_TABLE + (made->form == PCLNTAB_1_2 ? 16 : MADE_GO_FUNCTIONS);
    uint64_t base = made->form == PCLNTAB_1_2 ? 0 : MADE_GO_FUNCTIONS, start = MADE_GO_CODE;
    for (size_t i = 0; i < count; i++) {
        uint64_t record = put_go_record(made, &functions[i], start) - base;
        if (is_old) {
            put_go64(made, entry, start);
            put_go64(made, entry + 8, record);
        } else {
            put_go32(made, entry, start - MADE_GO_CODE);
            put_go32(made, entry + 4, record);
        }
        entry += is_old ? 16 : 8;
        start += functions[i].code_bytes;
    }
    if (is_old)
        put_go64(made, entry, start);
    else
        put_go32(made, entry, start - MADE_GO_CODE);
    if (made->form == PCLNTAB_1_2)
        put_go32(made, entry + 8, MADE_GO_UNITS);
}

static inline void put_go_header(struct made_go *made, size_t count)
{
    static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
    static const uint32_t parts[] = {MADE_GO_NAMES, MADE_GO_UNITS, MADE_GO_FILES, MADE_GO_TABLES,
                                     MADE_GO_FUNCTIONS};
#ifdef __aarch64__
    static const uint8_t machine[] = {0, 0, 4, 8};
#else
    static const uint8_t machine[] = {0, 0, 1, 8};
#endif
    put_go32(made, MADE_GO_TABLE, magics[made->form]);
    put_go(made, MADE_GO_TABLE + 4, machine, sizeof machine);
    put_go64(made, MADE_GO_TABLE + 8, count);
    if (made->form == PCLNTAB_1_2)
        return;
    uint64_t at = MADE_GO_TABLE + 24;
    if (made->form >= PCLNTAB_1_18) {
        put_go64(made, at, MADE_GO_CODE);
        at += 8;
    }
    for (unsigned i = 0; i < 5; i++)
        put_go64(made, at + 8 * i, parts[i]);
}

/* The words of the runtime's record that are read. */
static inline void put_go_module(struct made_go *made)
{
    put_go64(made, MADE_GO_MODULE, MADE_GO_TABLE);
    put_go64(made, MADE_GO_MODULE + 8, MADE_GO_TABLE + MADE_GO_NAMES);
    put_go64(made, MADE_GO_MODULE + 80, MADE_GO_TABLE + MADE_GO_TABLES);
    put_go64(made, MADE_GO_MODULE + 176, MADE_GO_CODE);
    put_go64(made, MADE_GO_MODULE + 184, MADE_GO_CODE + 0x1000);
    bool is_1_18 = made->form == PCLNTAB_1_18;
    put_go64(made, MADE_GO_MODULE + 8 * (is_1_18 ? 38 : 40), MADE_GO_INLINED);
    /* The only element, which has the offset at which functions store it. */
    put_go32(made, MADE_GO_INLINED + 0x10 + (is_1_18 ? 12 : 4), made->inlined_name);
    put_go32(made, MADE_GO_INLINED + 0x10 + (is_1_18 ? 16 : 8), 1);
}

static inline void make_go(struct made_go *made, enum pclntab_form form,
                           const struct made_function *functions, size_t count)
{
    *made = (struct made_go){.form = form, .names_end = 1, .tables_end = 1};
    made->bytes = calloc(1, MADE_GO_BYTES);
    assert_non_null(made->bytes);
    assert_true(count <= MADE_GO_FUNCTIONS_MAX);
    made->inlined_name = put_go_name(made, "main.inlined");
    put_go_header(made, count);
    put_go_functions(made, functions, count);
    uint32_t file_base = form == PCLNTAB_1_2 ? MADE_GO_FILES : 0;
    put_go32(made, MADE_GO_TABLE + MADE_GO_UNITS + 4 * (form == PCLNTAB_1_2 ? 1 : 3),
             file_base + 1);
    put_go(made, MADE_GO_TABLE + MADE_GO_FILES + 1, "/go/main.go", 12);
    put_go_module(made);
    made->segments[0] = (struct segment){0x1000, 0x1000, MADE_GO_CODE, 0x1000, true};
    made->segments[1] = (struct segment){0x2000, 0x4000, MADE_GO_DATA, 0x4000, false};
    made->module.segments = made->segments;
    made->module.segment_count = 2;
    made->module.is_readable = true;
    made->module.go = (struct go_traces){{MADE_GO_TABLE, 0x1000}, true, true};
    image_open_memory(&made->module.image, made->bytes, MADE_GO_BYTES);
}

static inline void made_go_free(struct made_go *made)
{
    image_close(&made->module.image);
}

#endif
