#include "symbol/symbol_table.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

/* Limits for .gnu_debugdata. */
#define DECOMPRESSED_BYTES_MAX ((size_t)256 << 20)
#define LZMA_MEMORY_MAX ((uint64_t)128 << 20)

void symbol_table_free(struct symbol_table *table)
{
    for (size_t i = 0; i < table->strings_count; i++)
        section_close(&table->strings[i]);
    for (size_t i = 0; i < table->object_count; i++)
        object_close(&table->objects[i]);
    free(table->rows);
    free(table->found);
    *table = (struct symbol_table){0};
}

static bool is_code(unsigned type)
{
    return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static int add_row(struct symbol_table *table, struct object *object, const Elf64_Sym *symbol)
{
    GElf_Shdr header;
    if (!is_code(ELF64_ST_TYPE(symbol->st_info)) || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_shndx >= SHN_LORESERVE || !symbol->st_name)
        return 0;
    if (!gelf_getshdr(elf_getscn(object->elf, symbol->st_shndx), &header) ||
        !(header.sh_flags & SHF_EXECINSTR) || symbol->st_value - header.sh_addr >= header.sh_size)
        return 0;
    uint64_t section_end = header.sh_addr + header.sh_size;
    const struct symbol_row row = {
        .start = symbol->st_value,
        .end = symbol->st_size && symbol->st_size < section_end - symbol->st_value
                   ? symbol->st_value + symbol->st_size
                   : section_end,
        .name = symbol->st_name,
        .strings = (uint8_t)table->strings_count,
        .info = symbol->st_info,
        .has_size = symbol->st_size > 0,
    };
    return array_append(&table->rows, &table->count, &table->capacity, row);
}

static int add_rows(struct symbol_table *table, struct object *object, const char *symbols_name,
                    const char *strings_name)
{
    struct section symbols;
    struct slice slice = {0};
    if (table->strings_count == SYMBOL_STRINGS_MAX ||
        !object_section(object, symbols_name, &symbols) ||
        !object_section(object, strings_name, &table->strings[table->strings_count]))
        return 0;
    int err = slice_read(&slice, &symbols, 0, symbols.bytes);
    for (size_t i = 0; i < slice.count / sizeof(Elf64_Sym) && !err; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, slice.bytes + i * sizeof symbol, sizeof symbol);
        err = add_row(table, object, &symbol);
    }
    table->strings_count++;
    slice_free(&slice);
    return err == -ENOMEM ? err : 0;
}

static unsigned char *decompress(const struct slice *slice, size_t *ret_bytes)
{
    for (size_t capacity = slice->count * 8 + 4096; capacity <= DECOMPRESSED_BYTES_MAX;
         capacity *= 4) {
        uint64_t memory_max = LZMA_MEMORY_MAX;
        size_t in_at = 0, out_at = 0;
        unsigned char *out = malloc(capacity);
        if (!out)
            return NULL;
        lzma_ret result = lzma_stream_buffer_decode(&memory_max, 0, NULL, slice->bytes, &in_at,
                                                    slice->count, out, &out_at, capacity);
        if (result == LZMA_OK) {
            *ret_bytes = out_at;
            return out;
        }
        free(out);
        if (result != LZMA_BUF_ERROR)
            break;
    }
    return NULL;
}

/* Opens .gnu_debugdata: a small ELF file, compressed by xz, with symbols that are not in .dynsym
 * ("mini debug info" in GDB's manual). Returns false if there is none, or it can't be read. */
static bool open_debug_data(struct object *object, struct object *ret_inner)
{
    struct section section;
    struct slice slice = {0};
    size_t bytes;
    if (!object_section(object, ".gnu_debugdata", &section) ||
        slice_read(&slice, &section, 0, section.bytes)) {
        slice_free(&slice);
        return false;
    }
    unsigned char *memory = decompress(&slice, &bytes);
    slice_free(&slice);
    if (!memory || object_open_memory(ret_inner, memory, bytes)) {
        free(memory);
        return false;
    }
    ret_inner->memory = memory;
    return true;
}

int symbol_table_add(struct symbol_table *table, struct object *object)
{
    struct object inner;
    if (table->object_count == SYMBOL_STRINGS_MAX) {
        object_close(object);
        return 0;
    }
    struct object *kept = &table->objects[table->object_count++];
    *kept = *object;
    *object = (struct object){.fd = -1};
    int err = add_rows(table, kept, ".symtab", ".strtab");
    if (!err)
        err = add_rows(table, kept, ".dynsym", ".dynstr");
    if (!err && table->object_count == 1 && open_debug_data(kept, &inner))
        err = symbol_table_add(table, &inner);
    return err;
}

static int compare(const void *a, const void *b)
{
    const struct symbol_row *left = a, *right = b;
    if (left->start != right->start)
        return ORDER(left->start, right->start);
    /* Gives the same result whatever the order in which they were added. */
    return left->strings != right->strings ? ORDER(left->strings, right->strings)
                                           : ORDER(left->name, right->name);
}

void symbol_table_finish(struct symbol_table *table)
{
    uint64_t reach = 0, next_start = UINT64_MAX;
    array_sort(table->rows, table->count, compare);
    /* A symbol without a size reaches up to the next one. */
    for (size_t i = table->count; i-- > 0;) {
        struct symbol_row *row = &table->rows[i];
        if (i + 1 < table->count && table->rows[i + 1].start > row->start)
            next_start = table->rows[i + 1].start;
        if (!row->has_size && row->end > next_start)
            row->end = next_start;
    }
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].end > reach)
            reach = table->rows[i].end;
        table->rows[i].reach = reach;
    }
}

/* ".symtab" has versions within names: "read@@GLIBC_2.2.5", with one @ for an old version that new
 * programs are not linked to. */
struct candidate {
    const struct symbol_row *row;
    char *name; /* without the version */
    bool is_old;
};

static bool is_exported(const struct symbol_row *row)
{
    return ELF64_ST_BIND(row->info) != STB_LOCAL;
}

static size_t underscores(const char *name)
{
    return strspn(name, "_");
}

/* Whether `left` is the better name for an address. These are preferred, in this order: a function
 * over a label; a symbol that other files may call over a local one; the name with the fewest
 * leading underscores ("read" over "__libc_read": the C standard reserves those for the
 * implementation); a strong symbol; a version in use; the shorter name. perf (choose_best_symbol in
 * tools/perf/util/symbol.c) uses the same criteria in nearly the same order, but puts strong before
 * weak, and the name in use is often the weak one. */
static bool is_better(const struct candidate *left, const struct candidate *right)
{
    bool left_is_label = ELF64_ST_TYPE(left->row->info) == STT_NOTYPE,
         right_is_label = ELF64_ST_TYPE(right->row->info) == STT_NOTYPE;
    if (left_is_label != right_is_label)
        return right_is_label;
    if (is_exported(left->row) != is_exported(right->row))
        return is_exported(left->row);
    if (underscores(left->name) != underscores(right->name))
        return underscores(left->name) < underscores(right->name);
    bool left_is_weak = ELF64_ST_BIND(left->row->info) == STB_WEAK,
         right_is_weak = ELF64_ST_BIND(right->row->info) == STB_WEAK;
    if (left_is_weak != right_is_weak)
        return right_is_weak;
    if (left->is_old != right->is_old)
        return right->is_old;
    size_t left_bytes = strlen(left->name), right_bytes = strlen(right->name);
    if (left_bytes != right_bytes)
        return left_bytes < right_bytes;
    return strcmp(left->name, right->name) < 0;
}

static void consider(struct symbol_table *table, const struct symbol_row *row,
                     struct candidate *best)
{
    const char *name = section_string(&table->strings[row->strings], row->name);
    /* "$x" and similar symbols tell code and data apart on aarch64 (ELF for the Arm 64-bit
     * Architecture). */
    if (!name || !*name || (name[0] == '$' && !row->has_size))
        return;
    struct candidate candidate = {.row = row, .name = strdup(name)};
    char *version = candidate.name ? strchr(candidate.name, '@') : NULL;
    if (version && version > candidate.name) {
        candidate.is_old = version[1] != '@';
        *version = '\0';
    }
    if (candidate.name && (!best->name || is_better(&candidate, best))) {
        free(best->name);
        *best = candidate;
    } else {
        free(candidate.name);
    }
}

/* Finds the symbols that begin last among those that hold the address; a label within a function
 * that has a size does not count. */
void symbol_table_find(struct symbol_table *table, uint64_t address, struct symbol_found *ret_found)
{
    struct candidate sized = {0}, sizeless = {0};
    size_t after = UPPER_BOUND(table->rows, table->count, start, address);
    for (; after && table->rows[after - 1].reach > address; after--) {
        const struct symbol_row *row = &table->rows[after - 1];
        struct candidate *best = row->has_size ? &sized : &sizeless;
        if (sized.row && sized.row->start > row->start)
            break;
        if (row->end > address && (!best->row || best->row->start == row->start))
            consider(table, row, best);
    }
    struct candidate *best = sized.row ? &sized : &sizeless;
    free(best == &sized ? sizeless.name : sized.name);
    free(table->found);
    table->found = best->name;
    *ret_found = (struct symbol_found){0};
    if (best->row)
        *ret_found = (struct symbol_found){best->name, best->row->start, best->row->end,
                                           best->row->has_size, is_exported(best->row)};
}
