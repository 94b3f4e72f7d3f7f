#include "proc/syscall_names.h"

#include <stddef.h>
#include <sys/syscall.h>

/* Made by cmake/syscall_names.cmake: rows of {number, name}. */
static const struct {
    long number;
    const char *name;
} calls[] = {
#include "syscall_names.inc"
};

const char *syscall_name(long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].number == number)
            return calls[i].name;
    }
    return NULL;
}
