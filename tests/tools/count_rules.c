/* count-rules FILE...
 *
 * Makes the rule for each address of the functions in the linkers' tables of ELF files, and prints
 * the number of functions and addresses, and the number of addresses at which no rule can express
 * the call frame information (unknown). Files that are not ELF are skipped. */
#include "fuzz/open_module.h"
#include "unwind/rule.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct counts {
    uint64_t functions, addresses, unknown;
};

static void count_function(const struct cfi_entry *entry, const char *path, struct counts *counts)
{
    uint64_t before = counts->unknown;
    for (uint64_t address = entry->start; address < entry->end; address++)
        counts->unknown += rule_make(entry, address).kind == RULE_UNKNOWN_FRAME;
    counts->addresses += entry->end - entry->start;
    counts->functions++;
    if (counts->unknown > before)
        fprintf(stderr, "%s %#" PRIx64 "\n", path, entry->start);
}

static void count_module(struct module *module, const char *path, struct counts *counts)
{
    static struct cfi_entry entry;
    const struct unwind_table *table = &module->unwind_table;
    for (uint64_t i = 0; i < table->entry_count; i++) {
        int32_t offset;
        if (module_read(module, table->entries_address + i * 8, &offset, sizeof offset) &&
            !cfi_find(module, table->header_address + (uint64_t)(int64_t)offset, &entry))
            count_function(&entry, path, counts);
    }
}

static void count_file(const char *path, struct counts *counts)
{
    struct modules modules = {0};
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    void *memory = MAP_FAILED;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return;
    struct module *module = open_module(&modules, (struct input){memory, (size_t)status.st_size});
    if (module->is_readable)
        count_module(module, path, counts);
    modules_free(&modules);
    munmap(memory, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    for (int i = 1; i < argc; i++)
        count_file(argv[i], &counts);
    printf("functions=%" PRIu64 " addresses=%" PRIu64 " unknown=%" PRIu64 "\n", counts.functions,
           counts.addresses, counts.unknown);
    return 0;
}
