#include "symbol/symbols.h"
#include "symbol/debug_file.h"
#include "symbol/units.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct symbols {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf_Addr dwarf_bias;
    struct units units;
};

/* The module is reported with its file, so that none is ever searched for it. */
static int find_no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                       char **ret_file, Elf **ret_elf)
{
    (void)module, (void)user, (void)name, (void)base, (void)ret_file, (void)ret_elf;
    return -1;
}

static int file_of(const struct module *module)
{
    if (module->image.fd >= 0)
        return fcntl(module->image.fd, F_DUPFD_CLOEXEC, 0);
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    const unsigned char *bytes = module->image.memory;
    size_t left = module->image.bytes;
    while (fd >= 0 && left) {
        ssize_t put = write(fd, bytes, left);
        if (put <= 0) {
            close(fd);
            return -1;
        }
        bytes += put;
        left -= (size_t)put;
    }
    return fd;
}

int symbols_open(struct module *module, struct symbols **ret_symbols)
{
    static char *debug_paths = NULL; /* elfutils' default */
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf,
        .find_debuginfo = debug_file_find,
        .debuginfo_path = &debug_paths,
    };
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return -ENOMEM;
    symbols->dwfl = dwfl_begin(&callbacks);
    int fd = symbols->dwfl ? file_of(module) : -1;
    if (fd < 0)
        goto fail;
    /* At base 0, its addresses in the process are its own. */
    symbols->module = dwfl_report_elf(symbols->dwfl, module->path, module->path, fd, 0, true);
    if (!symbols->module) {
        close(fd);
        goto fail;
    }
    dwfl_report_end(symbols->dwfl, NULL, NULL);
    Dwarf *dwarf = dwfl_module_getdwarf(symbols->module, &symbols->dwarf_bias);
    if (dwarf && units_read(&symbols->units, dwarf)) {
        symbols_close(symbols);
        return -ENOMEM;
    }
    *ret_symbols = symbols;
    return 0;
fail:
    symbols_close(symbols);
    return -ENOEXEC;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    units_free(&symbols->units);
    if (symbols->dwfl)
        dwfl_end(symbols->dwfl);
    free(symbols);
}

/* A function's name for the linker, else for the source. */
static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    return name ? name : dwarf_diename(die);
}

/* Where an inlined function was called from. */
static void call_site(Dwarf_Die *unit, Dwarf_Die *inlined, struct symbol_line *line)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file_number = 0, line_number = 0;
    Dwarf_Files *files;
    size_t file_count;
    if (dwarf_attr(inlined, DW_AT_call_line, &attribute))
        dwarf_formudata(&attribute, &line_number);
    if (dwarf_attr(inlined, DW_AT_call_file, &attribute) &&
        dwarf_formudata(&attribute, &file_number) == 0 &&
        dwarf_getsrcfiles(unit, &files, &file_count) == 0 && file_number < file_count)
        line->file = dwarf_filesrc(files, file_number, NULL, NULL);
    line->line = (uint32_t)line_number;
}

/* The functions around `address`, innermost first: inlined ones, then the one that they are in.
 * Each one's place is where the one before was called. */
static void functions_around(Dwarf_Die *unit, Dwarf_Addr address, struct symbol_line first,
                             struct symbol *symbol)
{
    Dwarf_Die *scopes = NULL, *nest = NULL;
    int nested = 0;
    /* dwarf_getscopes goes on to where an inlined function was written; the DIEs around the
     * innermost one tell where it was put. */
    if (dwarf_getscopes(unit, address, &scopes) > 0)
        nested = dwarf_getscopes_die(&scopes[0], &nest);
    struct symbol_line next = first;
    for (int i = 0; i < nested && symbol->line_count < SYMBOL_LINES_MAX; i++) {
        int tag = dwarf_tag(&nest[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        next.name = name_of(&nest[i]);
        next.is_inlined = tag == DW_TAG_inlined_subroutine;
        symbol->lines[symbol->line_count++] = next;
        if (tag == DW_TAG_subprogram)
            break;
        next = (struct symbol_line){0};
        call_site(unit, &nest[i], &next);
    }
    free(scopes);
    free(nest);
}

static void find_in_debug_info(struct symbols *symbols, uint64_t address, struct symbol *symbol)
{
    Dwarf_Addr dwarf_address = address - symbols->dwarf_bias;
    Dwarf_Die unit;
    if (!units_find(&symbols->units, dwarf_address, &unit))
        return;
    symbol->has_debug_info = true;
    struct symbol_line line = {0};
    Dwarf_Line *source = dwarf_getsrc_die(&unit, dwarf_address);
    if (source) {
        int number = 0;
        line.file = dwarf_linesrc(source, NULL, NULL);
        if (dwarf_lineno(source, &number) == 0 && number > 0)
            line.line = (uint32_t)number;
    }
    functions_around(&unit, dwarf_address, line, symbol);
    if (!symbol->line_count && line.file)
        symbol->lines[symbol->line_count++] = line;
}

void symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol)
{
    GElf_Off offset = 0;
    GElf_Sym entry;
    ret_symbol->line_count = 0;
    ret_symbol->has_debug_info = false;
    find_in_debug_info(symbols, address, ret_symbol);
    const char *name =
        dwfl_module_addrinfo(symbols->module, address, &offset, &entry, NULL, NULL, NULL);
    ret_symbol->function_offset = offset;
    if (name && !ret_symbol->line_count)
        ret_symbol->lines[ret_symbol->line_count++] = (struct symbol_line){0};
    if (ret_symbol->line_count) {
        struct symbol_line *outermost = &ret_symbol->lines[ret_symbol->line_count - 1];
        if (!outermost->name)
            outermost->name = name;
    }
    /* A line without a function is no name. */
    for (size_t i = 0; i < ret_symbol->line_count; i++) {
        if (!ret_symbol->lines[i].name)
            ret_symbol->line_count = i;
    }
}
