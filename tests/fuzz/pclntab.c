/* Go's function table. The input is a file's data, starting at address 0x402000; the code lies
 * before it (see unit/make_pclntab.h). */
#include "open_module.h"
#include "elf/go/pclntab.h"
#include "mapping/modules.h"
#include "symbol/names/go_names.h"
#include "symbol/symbols.h"
#include "unwind/go_rule.h"

#define BASE 0x400000u
#define CODE_OFFSET 0x1000u
#define DATA_OFFSET 0x2000u
#define ADDRESSES 64 /* looked up */

static void look_up(struct module *module)
{
    const struct pclntab *table = pclntab_of(module);
    struct pclntab_function function;
    struct rule rule;
    struct strings names = {0};
    struct symbol symbol = {0};
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        uint64_t address = BASE + CODE_OFFSET + i * 4;
        if (table && pclntab_find(table, address, &function))
            must(function.start <= address && address < function.end);
        if (table)
            go_rule_make(table, address, &rule);
        if (go_names_find(module, address, &names, &symbol))
            must(symbol.line_count >= 1 && symbol.line_count <= SYMBOL_LINES_MAX);
    }
    strings_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct modules modules = {0};
    struct input input = {data, bytes};
    struct module *module = put_module(&modules, (struct input){0});
    image_close(&module->image);
    unsigned char *file = calloc(1, DATA_OFFSET + bytes);
    must(file != NULL);
    if (bytes)
        memcpy(file + DATA_OFFSET, input.at, bytes);
    image_open_memory(&module->image, file, DATA_OFFSET + bytes);
    module->is_readable = true;
    module->segments = calloc(2, sizeof *module->segments);
    must(module->segments != NULL);
    module->segment_count = 2;
    module->segments[0] =
        (struct segment){CODE_OFFSET, 0x1000, BASE + CODE_OFFSET, 0x1000, .executable = true};
    module->segments[1] = (struct segment){DATA_OFFSET, bytes, BASE + DATA_OFFSET, bytes, false};
    look_up(module);
    modules_free(&modules);
    return 0;
}
