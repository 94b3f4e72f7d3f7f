/* The test program's own file as a module, for tests that read files. */
#ifndef FGPROF_TESTS_OWN_MODULE_H
#define FGPROF_TESTS_OWN_MODULE_H

#include "elf/elf_file.h"

#include <fcntl.h>
#include <string.h>

static struct module module;

static inline int open_own_module(void **state)
{
    (void)state;
    memset(&module, 0, sizeof module);
    return image_open_fd(&module.image, open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) ||
           elf_file_read(&module);
}

static inline int close_own_module(void **state)
{
    (void)state;
    module_clear(&module);
    return 0;
}

#endif
