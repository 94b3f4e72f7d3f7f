/* Symbols of a kernel that does not exist. */
#ifndef FGPROF_TESTS_KALLSYMS_TEXT_H
#define FGPROF_TESTS_KALLSYMS_TEXT_H

#include "unit.h"
#include "proc/kallsyms.h"

#include <stdio.h>

/* Reads them from the text, as from /proc/kallsyms; NULL: only checks whether it shows addresses.
 */
static inline int kallsyms_read_text(const char *text, struct kallsyms *kallsyms)
{
    char path[32];
    int fd = file_of_text(text);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int err = kallsyms ? kallsyms_read(path, kallsyms) : kallsyms_check(path);
    close(fd);
    return err;
}

#endif
