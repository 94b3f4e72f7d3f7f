#include "proc/kallsyms.h"
#include "base/array.h"
#include "base/procfs_file.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (64u << 20) /* what follows is ignored */
#define LINE_BYTES 1024       /* a longer line can't be a symbol: KSYM_NAME_LEN is 512 */
#define ADDRESS_DIGITS_MAX 16
/* The last function before the symbols of another module has no known end. It is assumed to reach
 * to the end of the page after the one in which it begins. */
#define PAGE_BYTES 4096u

/* The contents of one line. The texts point into it, and end where it says. */
struct line {
    uint64_t address;
    bool is_function;
    const char *name, *module; /* `module` has no bytes for the kernel itself */
    size_t name_bytes, module_bytes;
};

/* What is done with each line. Returns 0 to go on; anything else ends the reading. */
typedef int line_fn(void *context, const struct line *line);

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns false if it is no such line. */
static bool parse_line(const char *text, struct line *ret_line)
{
    struct line line = {0};
    size_t digits = 0;
    for (int digit; digits < ADDRESS_DIGITS_MAX && (digit = digit_of(text[digits])) >= 0; digits++)
        line.address = line.address << 4 | (unsigned)digit;
    if (!digits || text[digits] != ' ' || !text[digits + 1] || text[digits + 2] != ' ')
        return false;
    line.is_function = strchr("tTwW", text[digits + 1]) != NULL;
    line.name = text + digits + 3;
    line.name_bytes = strcspn(line.name, "\t ");
    line.module = line.name + line.name_bytes;
    line.module_bytes = strlen(line.module);
    *ret_line = line;
    return line.name_bytes > 0;
}

/* Passes each complete line to `take`. Returns what that returned last, 0 at the end, or a negative
 * errno. */
static int read_lines(const char *path, line_fn *take, void *context)
{
    FILE *file = procfs_open(AT_FDCWD, path);
    char text[LINE_BYTES];
    struct line line;
    size_t read_bytes = 0;
    bool is_rest = false; /* of a line that is too long */
    int result = 0;
    if (!file)
        return -errno;
    while (!result && read_bytes < BYTES_MAX && fgets(text, sizeof text, file)) {
        size_t length = strcspn(text, "\n");
        bool is_whole = text[length] == '\n' && !is_rest;
        is_rest = text[length] != '\n';
        read_bytes += length + 1;
        text[length] = '\0';
        if (is_whole && parse_line(text, &line))
            result = take(context, &line);
    }
    if (!result && ferror(file))
        result = -errno;
    fclose(file);
    return result;
}

/* ---- Whether addresses are shown ---- */

enum { IS_SHOWN = 1, IS_HIDDEN };

/* Data of the CPUs may have the address 0, and comes first. No function has it. */
static int judge(void *context, const struct line *line)
{
    (void)context;
    if (!line->is_function)
        return 0;
    return line->address ? IS_SHOWN : IS_HIDDEN;
}

int kallsyms_check(const char *path)
{
    int result = read_lines(path, judge, NULL);
    if (result < 0)
        return result;
    return result == IS_SHOWN ? 0 : -EACCES;
}

/* ---- Reading all ---- */

struct reading {
    struct kallsyms kallsyms;
    char module[64]; /* of the line before */
    uint32_t module_number;
};

static void note_module(struct reading *reading, const struct line *line)
{
    size_t bytes = line->module_bytes < sizeof reading->module ? line->module_bytes
                                                               : sizeof reading->module - 1;
    if (strlen(reading->module) == bytes && memcmp(reading->module, line->module, bytes) == 0)
        return;
    memcpy(reading->module, line->module, bytes);
    reading->module[bytes] = '\0';
    reading->module_number = bytes ? reading->module_number + 1 : 0;
}

static bool is_named(const struct line *line, const char *name)
{
    return line->name_bytes == strlen(name) && memcmp(line->name, name, line->name_bytes) == 0;
}

static void note_scheduler(struct kallsyms *kallsyms, const struct line *line)
{
    if (is_named(line, "__sched_text_start"))
        kallsyms->scheduler_begin = line->address;
    else if (is_named(line, "__sched_text_end"))
        kallsyms->scheduler_end = line->address;
}

static int add(void *context, const struct line *line)
{
    struct reading *reading = context;
    struct kallsyms *kallsyms = &reading->kallsyms;
    note_module(reading, line);
    struct kernel_symbol symbol = {line->address, KALLSYMS_NO_NAME, reading->module_number};
    if (!symbol.address)
        return 0;
    note_scheduler(kallsyms, line);
    if (array_reserve(&kallsyms->symbols, &kallsyms->capacity, kallsyms->count + 1))
        return -ENOMEM;
    if (line->is_function) {
        symbol.name = (uint32_t)kallsyms->names.length;
        buffer_write(&kallsyms->names, line->name, line->name_bytes);
        buffer_write(&kallsyms->names, "", 1);
    }
    kallsyms->symbols[kallsyms->count++] = symbol;
    return kallsyms->names.error;
}

/* Names were added in the file's order, and data has the largest number. */
static int compare(const void *a, const void *b)
{
    const struct kernel_symbol *one = a, *other = b;
    int order = ORDER(one->address, other->address);
    return order ? order : ORDER(one->name, other->name);
}

/* If an address has several names, the kernel takes the first in the file (get_symbol_pos in its
 * kernel/kallsyms.c). For data, only the start is needed. */
static void sort(struct kallsyms *kallsyms)
{
    struct kernel_symbol *symbols = kallsyms->symbols;
    size_t kept = 0;
    array_sort(symbols, kallsyms->count, compare);
    for (size_t i = 0; i < kallsyms->count; i++) {
        bool is_other_name = kept && symbols[i].address == symbols[kept - 1].address;
        bool is_more_data = kept && symbols[i].name == KALLSYMS_NO_NAME &&
                            symbols[kept - 1].name == KALLSYMS_NO_NAME;
        if (!is_other_name && !is_more_data)
            symbols[kept++] = symbols[i];
    }
    kallsyms->count = kept;
    array_trim(&kallsyms->symbols, &kallsyms->capacity, kept);
}

int kallsyms_read(const char *path, struct kallsyms *kallsyms)
{
    struct reading reading = {0};
    int err = read_lines(path, add, &reading);
    if (!err && !reading.kallsyms.names.length)
        err = -EACCES;
    if (err) {
        kallsyms_free(&reading.kallsyms);
        return err;
    }
    sort(&reading.kallsyms);
    kallsyms_free(kallsyms);
    *kallsyms = reading.kallsyms;
    return 0;
}

const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address)
{
    size_t after = UPPER_BOUND(kallsyms->symbols, kallsyms->count, address, address);
    if (!after)
        return NULL;
    const struct kernel_symbol *symbol = &kallsyms->symbols[after - 1];
    bool has_end = after < kallsyms->count && symbol[1].module == symbol->module;
    uint64_t page = symbol->address - symbol->address % PAGE_BYTES;
    if (symbol->name == KALLSYMS_NO_NAME || (!has_end && address - page >= 2 * PAGE_BYTES))
        return NULL;
    return kallsyms->names.bytes + symbol->name;
}

bool kallsyms_is_scheduler(const struct kallsyms *kallsyms, uint64_t address)
{
    return address >= kallsyms->scheduler_begin && address < kallsyms->scheduler_end;
}

void kallsyms_free(struct kallsyms *kallsyms)
{
    free(kallsyms->symbols);
    buffer_free(&kallsyms->names);
    *kallsyms = (struct kallsyms){0};
}
