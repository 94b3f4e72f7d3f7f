/* Looks things up in a function table. */
#include "elf/go/pclntab.h"

#include <string.h>

/* PCDATA_InlTreeIndex and FUNCDATA_InlTree of internal/abi/symtab.go. */
#define INLINED_TABLE 2
#define INLINED_DATA 3
#define FLAG_SPWRITE 2 /* FuncFlagSPWrite in the same file */

const struct pclntab *pclntab_of(struct module *module)
{
    struct pclntab *table = &module->pclntab;
    if (!table->was_sought && !pclntab_open(table, module))
        *table = (struct pclntab){0};
    table->was_sought = true;
    return table->module ? table : NULL;
}

static bool read_word(const struct pclntab *table, uint64_t address, uint32_t *ret_word)
{
    return module_read(table->module, address, ret_word, sizeof *ret_word);
}

/* Where function `number` begins or, if that is the count of functions, where the last one ends. */
static bool function_start(const struct pclntab *table, uint64_t number, uint64_t *ret_start)
{
    uint32_t offset;
    if (table->form < PCLNTAB_1_18)
        return module_read(table->module, table->function_table + 16 * number, ret_start,
                           sizeof *ret_start);
    if (!read_word(table, table->function_table + 8 * number, &offset))
        return false;
    *ret_start = table->text + offset;
    return true;
}

static bool record_offset(const struct pclntab *table, uint64_t number, uint64_t *ret_offset)
{
    uint32_t offset;
    if (table->form < PCLNTAB_1_18)
        return module_read(table->module, table->function_table + 16 * number + 8, ret_offset,
                           sizeof *ret_offset);
    if (!read_word(table, table->function_table + 8 * number + 4, &offset))
        return false;
    *ret_offset = offset;
    return true;
}

/* The fields after the start, which is as wide as in the table of functions: name, size of the
 * arguments, where deferred calls return, the three tables, the number of other tables, since 1.16
 * the unit, since 1.20 a line, and four bytes: the runtime's id of the function, flags, and last
 * the number of other data. */
static uint64_t record_field(const struct pclntab *table, uint64_t record, unsigned number)
{
    return record + (table->form < PCLNTAB_1_18 ? 8 : 4) + 4 * number;
}

static uint64_t record_end(const struct pclntab *table, uint64_t record)
{
    static const unsigned fields[] = {
        [PCLNTAB_1_2] = 8, [PCLNTAB_1_16] = 9, [PCLNTAB_1_18] = 9, [PCLNTAB_1_20] = 10};
    return record_field(table, record, fields[table->form]);
}

static bool read_record(const struct pclntab *table, struct pclntab_function *function)
{
    uint32_t fields[8];
    uint8_t counts[4];
    if (!module_read(table->module, record_field(table, function->record, 0), fields,
                     sizeof fields) ||
        !module_read(table->module, record_end(table, function->record) - sizeof counts, counts,
                     sizeof counts))
        return false;
    function->name = fields[0];
    function->frame_table = fields[3];
    function->file_table = fields[4];
    function->line_table = fields[5];
    function->data_table_count = fields[6];
    function->unit = table->form == PCLNTAB_1_2 ? 0 : fields[7];
    function->data_count = counts[3];
    function->sets_stack_pointer = table->form != PCLNTAB_1_2 && counts[1] & FLAG_SPWRITE;
    return true;
}

bool pclntab_function(const struct pclntab *table, uint64_t number, struct pclntab_function *ret)
{
    uint64_t offset;
    if (!function_start(table, number, &ret->start) ||
        !function_start(table, number + 1, &ret->end) || !record_offset(table, number, &offset))
        return false;
    ret->record = table->records + offset;
    return read_record(table, ret);
}

bool pclntab_find(const struct pclntab *table, uint64_t address, struct pclntab_function *ret)
{
    uint64_t low = 0, high = table->function_count, start;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!function_start(table, middle, &start))
            return false;
        if (start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && pclntab_function(table, low - 1, ret) && address >= ret->start &&
           address < ret->end;
}

static bool read_varint(const struct pclntab *table, uint64_t *at, uint32_t *ret_value)
{
    uint32_t value = 0;
    uint8_t byte;
    for (unsigned bits = 0; bits < 35; bits += 7) {
        if (!module_read(table->module, (*at)++, &byte, 1))
            return false;
        value |= (uint32_t)(byte & 0x7f) << (bits < 32 ? bits : 31);
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* A position in one of a function's tables. */
struct numbers {
    uint64_t at;     /* of the next pair */
    uint64_t end;    /* of the code that the number holds for */
    uint32_t number; /* in two's complement */
};

static struct numbers numbers_of(const struct pclntab *table,
                                 const struct pclntab_function *function, uint32_t offset)
{
    return (struct numbers){table->tables + offset, function->start, UINT32_MAX};
}

/* Advances to the next pair; returns false if there is none. Each pair covers some of the
 * function's code, so there are no more pairs than bytes of code. */
static bool next_number(const struct pclntab *table, const struct pclntab_function *function,
                        struct numbers *numbers)
{
    uint32_t change, length;
    bool is_first = numbers->end == function->start;
    if (!read_varint(table, &numbers->at, &change) || (!change && !is_first) ||
        !read_varint(table, &numbers->at, &length) || !length)
        return false;
    numbers->number += change & 1 ? ~(change >> 1) : change >> 1;
    numbers->end += (uint64_t)length * table->quantum;
    return true;
}

/* The number that the table at `offset` has for an address of the function. */
static bool find_number(const struct pclntab *table, const struct pclntab_function *function,
                        uint32_t offset, uint64_t address, int32_t *ret_number)
{
    struct numbers numbers = numbers_of(table, function, offset);
    if (!offset)
        return false;
    do {
        if (!next_number(table, function, &numbers))
            return false;
    } while (numbers.end <= address);
    *ret_number = (int32_t)numbers.number;
    return true;
}

bool pclntab_frame_bytes(const struct pclntab *table, const struct pclntab_function *function,
                         uint64_t address, uint32_t *ret_bytes)
{
    int32_t bytes;
    if (!find_number(table, function, function->frame_table, address, &bytes) || bytes < 0)
        return false;
    *ret_bytes = (uint32_t)bytes;
    return true;
}

bool pclntab_frame_begin(const struct pclntab *table, const struct pclntab_function *function,
                         uint64_t *ret_address, uint32_t *ret_bytes)
{
    struct numbers numbers = numbers_of(table, function, function->frame_table);
    if (!function->frame_table)
        return false;
    do {
        *ret_address = numbers.end;
        if (numbers.end >= function->end || !next_number(table, function, &numbers))
            return false;
    } while ((int32_t)numbers.number <= 0);
    *ret_bytes = numbers.number;
    return true;
}

static bool read_string(const struct pclntab *table, uint64_t address,
                        char string[PCLNTAB_STRING_MAX])
{
    size_t length = 0;
    do {
        if (length == PCLNTAB_STRING_MAX - 1) {
            string[length] = '\0';
            break;
        }
        if (!module_read(table->module, address + length, &string[length], 1))
            return false;
    } while (string[length++]);
    return *string;
}

bool pclntab_name(const struct pclntab *table, uint32_t offset, char name[PCLNTAB_STRING_MAX])
{
    return read_string(table, table->names + offset, name);
}

bool pclntab_line(const struct pclntab *table, const struct pclntab_function *function,
                  uint64_t address, char file[PCLNTAB_STRING_MAX], uint32_t *ret_line)
{
    int32_t number, line;
    uint32_t offset;
    if (!find_number(table, function, function->file_table, address, &number) || number < 0 ||
        !find_number(table, function, function->line_table, address, &line) || line <= 0)
        return false;
    uint64_t entry = (uint64_t)function->unit + (uint64_t)number;
    if (!read_word(table, table->units + 4 * entry, &offset) || offset == UINT32_MAX ||
        !read_string(table, table->files + offset, file))
        return false;
    *ret_line = (uint32_t)line;
    return true;
}

/* A function's inlined calls form a tree, stored as an array. A table of numbers gives, for each
 * address, the index of the innermost call. An element has, at these offsets, the name of the
 * inlined function and an address at its call site. */
bool pclntab_inlined(const struct pclntab *table, const struct pclntab_function *function,
                     uint64_t address, struct pclntab_inlined *ret)
{
    bool is_1_18 = table->form == PCLNTAB_1_18;
    uint64_t element_bytes = is_1_18 ? 20 : 16, name_at = is_1_18 ? 12 : 4;
    uint64_t tables = record_end(table, function->record);
    uint64_t data = tables + 4 * (uint64_t)function->data_table_count;
    uint32_t table_offset, data_offset, name_and_call[2];
    int32_t number;
    if (!table->inline_data || function->data_table_count <= INLINED_TABLE ||
        function->data_count <= INLINED_DATA ||
        !read_word(table, tables + 4 * INLINED_TABLE, &table_offset) ||
        !read_word(table, data + 4 * INLINED_DATA, &data_offset) || data_offset == UINT32_MAX ||
        !find_number(table, function, table_offset, address, &number) || number < 0)
        return false;
    uint64_t element = table->inline_data + data_offset + (uint64_t)number * element_bytes;
    if (!module_read(table->module, element + name_at, name_and_call, sizeof name_and_call) ||
        name_and_call[1] >= function->end - function->start)
        return false;
    *ret = (struct pclntab_inlined){name_and_call[0], function->start + name_and_call[1]};
    return true;
}
