#ifndef FGPROF_CLI_PATH_H
#define FGPROF_CLI_PATH_H

#include <string.h>

/* The part after the path's last slash, or the whole path if it has none. Points into `path`. */
static inline const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
