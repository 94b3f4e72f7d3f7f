#include "proc/kallsyms.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES (64u << 10)
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

/* Passes each complete line in `text`, which ends with NUL, to `take`. Returns where the first
 * incomplete line begins, and sets *ret_result to what `take` returned last. */
static char *take_lines(char *text, line_fn *take, void *context, int *ret_result)
{
    struct line line;
    char *end;
    *ret_result = 0;
    for (; !*ret_result && (end = strchr(text, '\n')); text = end + 1) {
        *end = '\0';
        if (parse_line(text, &line))
            *ret_result = take(context, &line);
    }
    return text;
}

/* A line longer than a block can't be a symbol, and is skipped. Returns what `take` returned last,
 * 0 at the end, or a negative errno. */
static int read_lines(int fd, line_fn *take, void *context)
{
    char block[BLOCK_BYTES + 1];
    size_t held = 0, read_bytes = 0;
    int result = 0;
    while (!result && read_bytes < KALLSYMS_BYTES_MAX) {
        ssize_t got = read(fd, block + held, BLOCK_BYTES - held);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : 0;
        read_bytes += (size_t)got;
        held += (size_t)got;
        block[held] = '\0';
        char *rest = take_lines(block, take, context, &result);
        held -= (size_t)(rest - block);
        memmove(block, rest, held);
        if (held == BLOCK_BYTES)
            held = 0;
    }
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

int kallsyms_check_file(int fd)
{
    int result = read_lines(fd, judge, NULL);
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

static int add_name(struct kallsyms *kallsyms, const struct line *line, uint32_t *ret_name)
{
    size_t end = kallsyms->names_bytes + line->name_bytes + 1;
    if (array_reserve(&kallsyms->names, &kallsyms->names_capacity, end))
        return -ENOMEM;
    *ret_name = (uint32_t)kallsyms->names_bytes;
    memcpy(kallsyms->names + kallsyms->names_bytes, line->name, line->name_bytes);
    kallsyms->names[end - 1] = '\0';
    kallsyms->names_bytes = end;
    return 0;
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
    if (line->is_function && add_name(kallsyms, line, &symbol.name))
        return -ENOMEM;
    kallsyms->symbols[kallsyms->count++] = symbol;
    return 0;
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

int kallsyms_read_file(int fd, struct kallsyms *kallsyms)
{
    struct reading reading = {0};
    int err = read_lines(fd, add, &reading);
    if (!err && !reading.kallsyms.names_bytes)
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
    return kallsyms->names + symbol->name;
}

bool kallsyms_is_scheduler(const struct kallsyms *kallsyms, uint64_t address)
{
    return address >= kallsyms->scheduler_begin && address < kallsyms->scheduler_end;
}

void kallsyms_free(struct kallsyms *kallsyms)
{
    free(kallsyms->symbols);
    free(kallsyms->names);
    *kallsyms = (struct kallsyms){0};
}

/* ---- The file itself ---- */

static int open_file(void)
{
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int kallsyms_check(void)
{
    int fd = open_file();
    if (fd < 0)
        return fd;
    int err = kallsyms_check_file(fd);
    close(fd);
    return err;
}

int kallsyms_read(struct kallsyms *kallsyms)
{
    int fd = open_file();
    if (fd < 0)
        return fd;
    int err = kallsyms_read_file(fd, kallsyms);
    close(fd);
    return err;
}
