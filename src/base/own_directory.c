#include "base/own_directory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool own_directory_find(char path[PATH_MAX])
{
    static const char anchor;
    Dl_info file;
    ssize_t length;
    /* The loader knows a program only by what it was called. */
    if (dladdr(&anchor, &file) && file.dli_fname && *file.dli_fname == '/')
        length = snprintf(path, PATH_MAX, "%s", file.dli_fname);
    else
        length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0 || length >= PATH_MAX)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash;
}
