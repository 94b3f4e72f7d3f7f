/* name-addresses FILE [EVERY]
 *
 * Names addresses in an ELF file, as a profile names them: those on standard input, in hex, one per
 * line; or one every EVERY bytes of its code. Prints for each
 *   0xADDRESS <tab> FUNCTION+0xOFFSET <tab> FILE:LINE [<tab> CALLER <tab> FILE:LINE ...]
 * an inlined function before the one that it was inlined into; "?" stands for unknown parts, and
 * "!" before an address means that inlined calls would not be known. If the file can't be read,
 * prints why and exits with 2. With -q before FILE, prints only how many addresses have a name, the
 * milliseconds that naming took, and the peak of memory used. */
#include "elf/elf_file.h"
#include "symbol/names/demangle.h"
#include "symbol/symbols.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static void print(uint64_t address, const struct symbol *symbol)
{
    printf("%s0x%" PRIx64, symbol->has_debug_info ? "" : "!", address);
    for (size_t i = 0; i < symbol->line_count; i++) {
        const struct symbol_line *line = &symbol->lines[i];
        char *demangled = demangle(line->name, FGPROF_NAMES_SHORT);
        printf("\t%s", demangled ? demangled : line->name);
        if (i + 1 == symbol->line_count)
            printf("+0x%" PRIx64, symbol->function_offset);
        printf("\t%s:%" PRIu32, line->file ? line->file : "?", line->line);
        free(demangled);
    }
    puts(symbol->line_count ? "" : "\t?");
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static size_t add(uint64_t **addresses, size_t count, uint64_t address)
{
    if (!(count & (count - 1))) {
        *addresses = reallocarray(*addresses, count ? count * 2 : 1, sizeof **addresses);
        if (!*addresses)
            abort();
    }
    (*addresses)[count] = address;
    return count + 1;
}

static size_t addresses_of(const struct module *module, uint64_t every, uint64_t **addresses)
{
    size_t count = 0;
    uint64_t address;
    if (!every) {
        while (scanf("%" SCNx64, &address) == 1)
            count = add(addresses, count, address);
    }
    for (size_t i = 0; every && i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        uint64_t bytes = segment->executable ? segment->file_bytes : 0;
        if (bytes > module->image.bytes)
            bytes = module->image.bytes; /* the header may claim anything */
        for (uint64_t at = 0; at < bytes; at += every)
            count = add(addresses, count, segment->address + at);
    }
    if (count)
        qsort(*addresses, count, sizeof **addresses, compare);
    return count;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void name_all(struct symbols *symbols, const uint64_t *addresses, size_t count,
                     bool is_quiet, size_t *ret_named)
{
    *ret_named = 0;
    for (size_t i = 0; i < count; i++) {
        struct symbol symbol;
        symbols_find(symbols, addresses[i], &symbol);
        *ret_named += symbol.line_count > 0;
        if (!is_quiet)
            print(addresses[i], &symbol);
    }
}

/* Returns the exit status. */
static int name_module(struct module *module, uint64_t every, bool is_quiet)
{
    struct symbols *symbols;
    struct own_debug_files own;
    struct rusage usage;
    const char *why = "";
    uint64_t *addresses = NULL;
    size_t named, count = addresses_of(module, every, &addresses);
    uint64_t start_ns = now_ns();
    own_debug_files_init(&own, module, NULL);
    int err = symbols_open(module, &own.files, &symbols, &why);
    if (err) {
        puts(why);
    } else {
        name_all(symbols, addresses, count, is_quiet, &named);
        symbols_close(symbols);
        getrusage(RUSAGE_SELF, &usage);
        if (is_quiet)
            printf("addresses=%zu named=%zu ms=%" PRIu64 " rss_kib=%ld\n", count, named,
                   (now_ns() - start_ns) / 1000000, usage.ru_maxrss);
    }
    free(addresses);
    return err ? 2 : 0;
}

int main(int argc, char **argv)
{
    bool is_quiet = argc > 1 && strcmp(argv[1], "-q") == 0;
    argv += is_quiet;
    argc -= is_quiet;
    if (argc < 2)
        return 1;
    struct module module = {.path = argv[1], .image.fd = -1, .is_readable = true};
    int status = 2;
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && image_open_fd(&module.image, fd) == 0) {
        if (elf_file_read(&module))
            puts("not readable");
        else
            status = name_module(&module, argc > 2 ? strtoull(argv[2], NULL, 0) : 0, is_quiet);
    }
    module.path = NULL; /* not allocated for it */
    module_clear(&module);
    return status;
}
