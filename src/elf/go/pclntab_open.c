/* Finds and checks a function table. */
#include "elf/go/pclntab.h"

#include <string.h>

/* The first bytes of each form: a magic number, two zeros, and two properties of the machine: the
 * size of the shortest instruction and the size of a pointer. */
#ifdef __aarch64__
#define QUANTUM 4
#else
#define QUANTUM 1
#endif
#define MAGIC_BYTES 8
static const uint8_t magics[][MAGIC_BYTES] = {
    [PCLNTAB_1_2] = {0xfb, 0xff, 0xff, 0xff, 0, 0, QUANTUM, 8},
    [PCLNTAB_1_16] = {0xfa, 0xff, 0xff, 0xff, 0, 0, QUANTUM, 8},
    [PCLNTAB_1_18] = {0xf0, 0xff, 0xff, 0xff, 0, 0, QUANTUM, 8},
    [PCLNTAB_1_20] = {0xf1, 0xff, 0xff, 0xff, 0, 0, QUANTUM, 8},
};
#define FORMS (sizeof magics / sizeof *magics)
#define ALIGNMENT 16
#define CANDIDATES_MAX 16 /* other data that looks like a header is rare */
#define FUNCTIONS_MAX ((uint64_t)1 << 28)

static bool find_form(struct pclntab *table)
{
    uint8_t magic[MAGIC_BYTES];
    if (!module_read(table->module, table->address, magic, sizeof magic))
        return false;
    for (size_t i = 0; i < FORMS; i++) {
        if (memcmp(magic, magics[i], sizeof magic) == 0) {
            table->form = (enum pclntab_form)i;
            table->quantum = QUANTUM;
            return true;
        }
    }
    return false;
}

/* Up to Go 1.15 the header has only the number of functions, and offsets are relative to its start.
 * The offset of the file table follows the functions; the entries of that table begin with its
 * second element. */
static bool read_first_form(struct pclntab *table)
{
    uint32_t files;
    if (!module_read(table->module, table->address + MAGIC_BYTES, &table->function_count,
                     sizeof table->function_count) ||
        table->function_count > FUNCTIONS_MAX)
        return false;
    table->function_table = table->address + MAGIC_BYTES + 8;
    table->records = table->names = table->files = table->tables = table->address;
    if (!module_read(table->module, table->function_table + 16 * table->function_count + 8, &files,
                     sizeof files))
        return false;
    table->units = table->address + files;
    return true;
}

/* The numbers of functions and files, since Go 1.18 the start of the code, and the offsets of
 * names, units, files, tables and functions. */
static bool read_header(struct pclntab *table)
{
    uint64_t words[8];
    if (table->form == PCLNTAB_1_2)
        return read_first_form(table);
    if (!module_read(table->module, table->address + MAGIC_BYTES, words, sizeof words) ||
        words[0] > FUNCTIONS_MAX)
        return false;
    const uint64_t *offsets = words + 2;
    table->function_count = words[0];
    if (table->form >= PCLNTAB_1_18)
        table->text = *offsets++;
    table->names = table->address + offsets[0];
    table->units = table->address + offsets[1];
    table->files = table->address + offsets[2];
    table->tables = table->address + offsets[3];
    table->function_table = table->records = table->address + offsets[4];
    return true;
}

/* In position-independent programs the loader fills in the code's start in the header, and since Go
 * 1.26 the header always has 0 there. The runtime's own record of the file has it too. */
static void read_go_module(struct pclntab *table)
{
    struct go_module go;
    if (table->form < PCLNTAB_1_18 || !go_module_find(table, &go))
        return;
    table->text = go.text;
    table->inline_data = go.inline_data;
}

/* Whether the table describes code: its first and its last function exist and have names. */
static bool tells_of_code(const struct pclntab *table)
{
    struct pclntab_function first, last;
    char name[PCLNTAB_STRING_MAX];
    return table->function_count && pclntab_function(table, 0, &first) &&
           pclntab_function(table, table->function_count - 1, &last) &&
           pclntab_find(table, first.start, &first) && pclntab_find(table, last.start, &last) &&
           module_code_end(table->module, first.start) &&
           module_code_end(table->module, last.end - 1) && pclntab_name(table, first.name, name) &&
           pclntab_name(table, last.name, name);
}

static bool open_at(struct pclntab *table, struct module *module, uint64_t address)
{
    *table = (struct pclntab){.module = module, .address = address};
    if (!find_form(table) || !read_header(table))
        return false;
    read_go_module(table);
    return tells_of_code(table);
}

/* For a table that another linker has put into a larger section, or a file without sections. */
static bool search_segment(struct pclntab *table, struct module *module,
                           const struct segment *segment, unsigned *candidates)
{
    uint64_t end = segment->offset + segment->file_bytes;
    for (size_t i = 0; i < FORMS; i++) {
        uint64_t offset = (segment->offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
        while (*candidates && image_find(&module->image, offset, end, magics[i], MAGIC_BYTES,
                                         ALIGNMENT, &offset)) {
            (*candidates)--;
            if (open_at(table, module, offset - segment->offset + segment->address))
                return true;
            offset += ALIGNMENT;
        }
    }
    return false;
}

bool pclntab_open(struct pclntab *table, struct module *module)
{
    const struct go_traces *go = &module->go;
    unsigned candidates = CANDIDATES_MAX;
    if (!module->is_readable)
        return false;
    if (go->pclntab.bytes)
        return open_at(table, module, go->pclntab.address);
    if (go->has_sections && !go->is_go)
        return false;
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        if (!segment->executable && search_segment(table, module, segment, &candidates))
            return true;
    }
    return false;
}
