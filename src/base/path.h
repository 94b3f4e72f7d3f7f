#ifndef FGPROF_BASE_PATH_H
#define FGPROF_BASE_PATH_H

#include <string.h>

/* What follows the path's last slash; the path itself if it has none. Points into `path`. */
static inline const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
