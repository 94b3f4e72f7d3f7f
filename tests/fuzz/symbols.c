/* Symbol tables and debug information. The input is an ELF file. */
#include "open_module.h"
#include "mapping/modules.h"
#include "symbol/symbols.h"

#define ADDRESSES 16 /* named in each segment */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct modules modules = {0};
    struct module *module = open_module(&modules, (struct input){data, bytes});
    struct symbols *symbols;
    const char *why;
    struct symbol symbol;
    struct own_debug_files own;
    own_debug_files_init(&own, module, NULL);
    if (module->is_readable && symbols_open(module, &own.files, &symbols, &why) == 0) {
        for (size_t i = 0; i < module->segment_count && i < 4; i++) {
            for (uint64_t j = 0; j < ADDRESSES; j++) {
                symbols_find(symbols, module->segments[i].address + j * j * 4, &symbol);
                must(symbol.line_count <= SYMBOL_LINES_MAX);
                for (size_t k = 0; k < symbol.line_count; k++)
                    must(symbol.lines[k].name != NULL);
            }
        }
        symbols_close(symbols);
    }
    modules_free(&modules);
    return 0;
}
