#include "proc/kernel_stack.h"
#include "proc/procfs.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>

int kernel_stack_check(void)
{
    char text[64];
    ssize_t length = procfs_read(AT_FDCWD, "/proc/thread-self/stack", text, sizeof text);
    return length < 0 ? (int)length : 0;
}

/* Where the name in a line begins, or NULL. *ret_bytes is its length, 0 if there is only an
 * address. */
static const char *name_in(const char *line, size_t *ret_bytes)
{
    const char *end_of_address = strstr(line, ">] ");
    if (strncmp(line, "[<", 2) != 0 || !end_of_address)
        return NULL;
    const char *name = end_of_address + strlen(">] ");
    /* Older kernels end a stack with this. */
    if (strcmp(name, "0xffffffffffffffff") == 0)
        return NULL;
    /* Without a symbol there is a number (sprint_backtrace in the kernel's kernel/kallsyms.c). */
    *ret_bytes = strncmp(name, "0x", 2) == 0 ? 0 : strcspn(name, "+ ");
    return name;
}

void kernel_stack_parse(char *text)
{
    static const char no_name[] = "[unknown]";
    char *to = text;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t bytes;
        *end = '\0';
        const char *name = name_in(line, &bytes);
        if (!name)
            continue;
        /* The name is shorter than the line that it was in. */
        if (bytes) {
            memmove(to, name, bytes);
        } else {
            bytes = sizeof no_name - 1;
            if (end - to < (ptrdiff_t)bytes)
                continue;
            memcpy(to, no_name, bytes);
        }
        to += bytes;
        *to++ = '\n';
    }
    *to = '\0';
}
