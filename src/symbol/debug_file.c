#include "symbol/debug_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* .gnu_debuglink's checksum is that of zlib (GDB manual, "Separate Debug Files"). */
static bool has_checksum(int fd, GElf_Word wanted)
{
    static const size_t chunk_bytes = 1 << 16;
    unsigned char *chunk = malloc(chunk_bytes);
    uLong sum = crc32(0, NULL, 0);
    off_t offset = 0;
    ssize_t got = 0;
    while (chunk && (got = pread(fd, chunk, chunk_bytes, offset)) > 0) {
        sum = crc32(sum, chunk, (uInt)got);
        offset += got;
    }
    free(chunk);
    return chunk && got == 0 && sum == wanted;
}

/* O_NONBLOCK: a FIFO of that name would be waited for without end. */
static int open_debug_file(const char *path, GElf_Word crc)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode) || !has_checksum(fd, crc))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int debug_file_find(Dwfl_Module *module, void **user, const char *module_name, Dwarf_Addr base,
                    const char *file, const char *link, GElf_Word link_crc, char **ret_path)
{
    static const char *const patterns[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
    int fd = dwfl_build_id_find_debuginfo(module, user, module_name, base, file, link, link_crc,
                                          ret_path);
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (fd >= 0 || !link || !slash || strchr(link, '/'))
        return fd;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && fd < 0; i++) {
        char *path;
        if (asprintf(&path, patterns[i], (int)(slash - file), file, link) < 0)
            return -1;
        fd = open_debug_file(path, link_crc);
        if (fd >= 0)
            *ret_path = path;
        else
            free(path);
    }
    return fd;
}
