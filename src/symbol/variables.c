#include "symbol/variables.h"
#include "elf/object.h"
#include "symbol/names/demangle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Objects point behind the vtable's first two words: the offset to the object's top, and its type
 * (Itanium C++ ABI, 2.5.2). */
#define VTABLE_POINT 16

/* What a search finds: the first symbol of data that is at an address and begins with a prefix. */
struct search {
    uint64_t address;
    const char *prefix;
    char *symbol;    /* owned */
    uint64_t offset; /* of the address in it */
};

static bool holds(const Elf64_Sym *symbol, uint64_t address)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_name && address - symbol->st_value < symbol->st_size;
}

static int take(struct search *search, struct section *strings, const Elf64_Sym *symbol)
{
    const char *name = section_string(strings, symbol->st_name);
    if (!name || !*name || strncmp(name, search->prefix, strlen(search->prefix)) != 0)
        return -ENOENT;
    search->offset = search->address - symbol->st_value;
    search->symbol = strdup(name);
    return search->symbol ? 0 : -ENOMEM;
}

static int find_in(struct object *object, const char *symbols_name, const char *strings_name,
                   struct search *search)
{
    struct section symbols, strings;
    struct slice slice = {0};
    int err = -ENOENT;
    if (!object_section(object, symbols_name, &symbols))
        return err;
    if (!object_section(object, strings_name, &strings)) {
        section_close(&symbols);
        return err;
    }
    if (slice_read(&slice, &symbols, 0, symbols.bytes) == -ENOMEM)
        err = -ENOMEM;
    for (size_t i = 0; i < slice.count / sizeof(Elf64_Sym) && err == -ENOENT; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, slice.bytes + i * sizeof symbol, sizeof symbol);
        if (holds(&symbol, search->address))
            err = take(search, &strings, &symbol);
    }
    slice_free(&slice);
    section_close(&strings);
    section_close(&symbols);
    return err;
}

static int find_symbol(const struct module *module, struct search *search)
{
    struct object object;
    if (object_open_module(&object, module))
        return -ENOENT;
    int err = find_in(&object, ".symtab", ".strtab", search);
    if (err == -ENOENT)
        err = find_in(&object, ".dynsym", ".dynstr", search);
    object_close(&object);
    return err;
}

int variable_find(const struct module *module, uint64_t address, char **ret_name,
                  uint64_t *ret_offset)
{
    struct search search = {.address = address, .prefix = ""};
    int err = find_symbol(module, &search);
    if (err)
        return err;
    char *shown = demangle(search.symbol, FGPROF_NAMES_SHORT);
    if (shown)
        free(search.symbol);
    *ret_name = shown ? shown : search.symbol;
    *ret_offset = search.offset;
    return 0;
}

/* Where the first template argument ends. */
static size_t argument_length(const char *arguments)
{
    unsigned depth = 0;
    for (const char *at = arguments; *at; at++) {
        if (!depth && (*at == ',' || *at == '>'))
            return (size_t)(at - arguments);
        if (strchr("<([{", *at))
            depth++;
        else if (strchr(">)]}", *at) && depth)
            depth--;
    }
    return 0;
}

/* If the class is that which std::make_shared puts an object into, leaves the object's. */
static void take_out_of_shared(char *class)
{
    static const char *const holders[] = {"std::_Sp_counted_ptr_inplace<",
                                          "std::__1::__shared_ptr_emplace<"};
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++) {
        size_t before = strlen(holders[i]);
        if (strncmp(class, holders[i], before) != 0)
            continue;
        size_t length = argument_length(class + before);
        if (length) {
            memmove(class, class + before, length);
            class[length] = '\0';
        }
        return;
    }
}

static int name_class(const char *symbol, char **ret_name)
{
    static const char prefix[] = "vtable for ";
    char *full = demangle(symbol, FGPROF_NAMES_FULL);
    if (!full || strncmp(full, prefix, sizeof prefix - 1) != 0) {
        free(full);
        return -ENOENT;
    }
    memmove(full, full + sizeof prefix - 1, strlen(full) + 1 - (sizeof prefix - 1));
    take_out_of_shared(full);
    if (fold_name(full)) {
        free(full);
        return -ENOMEM;
    }
    *ret_name = full;
    return 0;
}

int class_find(const struct module *module, uint64_t address, char **ret_name)
{
    struct search search = {.address = address, .prefix = "_ZTV"};
    int err = find_symbol(module, &search);
    if (!err)
        err = search.offset == VTABLE_POINT ? name_class(search.symbol, ret_name) : -ENOENT;
    free(search.symbol);
    return err;
}
