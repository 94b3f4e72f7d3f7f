#include "worker/kernel_names.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* Reading the symbols takes some 0.1 s. */
#define READ_EACH_NS 10000000000u
#define READ_PART_OF_TIME 1000

#define NO_NAME "[unknown]"

/* Reads the symbols if that is due. If it fails, names are lacking. Returns 0 or -ENOMEM. */
static int read_symbols(struct kernel_names *names, bool *ret_was_read)
{
    uint64_t now_ns = monotonic_ns();
    *ret_was_read = false;
    if (!throttle_allows(&names->reading, now_ns, READ_EACH_NS, READ_PART_OF_TIME))
        return 0;
    int err = kallsyms_read(KALLSYMS_PATH, &names->kallsyms);
    *ret_was_read = !err;
    names->reading = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return err == -ENOMEM ? err : 0;
}

/* Returns 0 or -ENOMEM. */
static int find_name(struct kernel_names *names, uint64_t address, const char **ret_name)
{
    bool was_read;
    *ret_name = kallsyms_find(&names->kallsyms, address);
    if (*ret_name)
        return 0;
    int err = read_symbols(names, &was_read);
    if (!err && was_read)
        *ret_name = kallsyms_find(&names->kallsyms, address);
    if (!*ret_name)
        *ret_name = NO_NAME;
    return err;
}

/* Appends a line if that leaves room for NO_NAME. */
static bool append(char *text, size_t *length, const char *name)
{
    size_t bytes = strlen(name);
    if (*length + bytes + sizeof "\n" NO_NAME "\n" > KERNEL_STACK_BYTES)
        return false;
    memcpy(text + *length, name, bytes);
    text[*length + bytes] = '\n';
    *length += bytes + 1;
    return true;
}

/* A caller is looked up at its call, as the kernel does (sprint_backtrace in kernel/kallsyms.c). */
int kernel_names_write(struct kernel_names *names, const struct kernel_chain *chain,
                       char text[KERNEL_STACK_BYTES])
{
    size_t length = 0;
    bool is_cut = chain->is_cut;
    for (unsigned i = 0; i < chain->count; i++) {
        const char *name;
        int err = find_name(names, chain->addresses[i] - (i > 0), &name);
        if (err)
            return err;
        if (!append(text, &length, name)) {
            is_cut = true;
            break;
        }
    }
    strcpy(text + length, is_cut ? NO_NAME "\n" : "");
    return 0;
}

int kernel_names_intern_text(struct kernel_names *names, struct strings *strings,
                             const char *functions, uint32_t *ret_stack)
{
    size_t count_before = strings->count;
    if (names->text_bytes >= KERNEL_NAMES_BYTES_MAX && !strings_find(strings, functions, ret_stack))
        functions = NO_NAME "\n";
    int err = strings_intern(strings, functions, ret_stack);
    if (!err && strings->count > count_before)
        names->text_bytes += strlen(functions);
    return err;
}

int kernel_names_intern(struct kernel_names *names, const struct kernel_chain *chain,
                        struct strings *strings, uint32_t *ret_stack)
{
    char text[KERNEL_STACK_BYTES];
    if (!chain->count) {
        *ret_stack = 0;
        return 0;
    }
    int err = kernel_names_write(names, chain, text);
    return err ? err : kernel_names_intern_text(names, strings, text, ret_stack);
}

/* The symbols must have been read. */
static void leave_out_scheduler(const struct kallsyms *kallsyms, struct kernel_chain *chain)
{
    unsigned first = 0, kept = 0;
    while (first < chain->count && !kallsyms_is_scheduler(kallsyms, chain->addresses[first]))
        first++;
    for (unsigned i = first; i < chain->count; i++) {
        if (!kallsyms_is_scheduler(kallsyms, chain->addresses[i]))
            chain->addresses[kept++] = chain->addresses[i];
    }
    chain->count = first < chain->count ? kept : chain->count;
}

int kernel_names_intern_sleep(struct kernel_names *names, const struct kernel_chain *chain,
                              struct strings *strings, uint32_t *ret_stack)
{
    uint64_t addresses[KERNEL_CHAIN_MAX];
    struct kernel_chain rest = {
        .addresses = addresses, .count = chain->count, .is_cut = chain->is_cut};
    const char *name;
    *ret_stack = 0;
    if (!chain->count)
        return 0;
    memcpy(addresses, chain->addresses, chain->count * sizeof *addresses);
    int err = find_name(names, addresses[0], &name);
    if (err)
        return err;
    leave_out_scheduler(&names->kallsyms, &rest);
    return kernel_names_intern(names, &rest, strings, ret_stack);
}

void kernel_names_limit(struct kernel_names *names, size_t text_bytes)
{
    if (names->text_bytes > text_bytes)
        names->text_bytes = text_bytes;
}

void kernel_names_free(struct kernel_names *names)
{
    kallsyms_free(&names->kallsyms);
    *names = (struct kernel_names){0};
}
