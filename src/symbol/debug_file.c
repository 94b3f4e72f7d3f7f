#include "symbol/debug_file.h"
#include "base/regular_file.h"
#include "elf/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define LINK_BYTES_MAX 4096u

/* .gnu_debuglink's checksum is that of zlib (GDB manual, "Separate Debug Files"). */
static bool has_checksum(int fd, uint32_t wanted)
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

static int open_own(struct debug_files *files, const char *path)
{
    const struct own_debug_files *own = (struct own_debug_files *)files;
    int root_fd_plus_1 = own->module->root_fd_plus_1;
    int fd = root_fd_plus_1 ? open_regular_file_in_root(root_fd_plus_1 - 1, path, true) : -ENOENT;
    return fd < 0 ? open_regular_file(AT_FDCWD, path, O_NONBLOCK) : fd;
}

static int fetch_own(struct debug_files *files, const unsigned char *build_id, size_t bytes,
                     char **ret_path)
{
    const struct own_debug_files *own = (struct own_debug_files *)files;
    return debug_fetch(own->fetch, build_id, bytes, own->module->path, ret_path);
}

void own_debug_files_init(struct own_debug_files *own, const struct module *module,
                          struct debug_fetch *fetch)
{
    *own = (struct own_debug_files){{open_own, fetch_own}, module, fetch};
}

static int open_object(struct debug_files *files, const char *path, struct object *ret_found)
{
    int fd = files->open(files, path);
    return fd < 0 ? fd : object_open_fd(ret_found, fd);
}

static bool has_build_id(const struct object *object, const unsigned char *id, size_t bytes)
{
    return bytes && object->build_id_bytes == bytes && memcmp(object->build_id, id, bytes) == 0;
}

static int open_by_build_id(struct debug_files *files, const unsigned char *id, size_t bytes,
                            struct object *ret_found, char **ret_path)
{
    char path[sizeof DEBUG_DIRECTORY "/.build-id/" + 2 * sizeof ret_found->build_id + 8];
    if (bytes < 2 || bytes > sizeof ret_found->build_id)
        return -ENOENT;
    int length = snprintf(path, sizeof path, DEBUG_DIRECTORY "/.build-id/%02x/", id[0]);
    for (size_t i = 1; i < bytes; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", id[i]);
    strcpy(path + length, ".debug");
    if (open_object(files, path, ret_found))
        return -ENOENT;
    if (has_build_id(ret_found, id, bytes) && (*ret_path = strdup(path)))
        return 0;
    object_close(ret_found);
    return -ENOENT;
}

/* Reads a section that begins with a file's name. Returns its length, or 0 if there is none. */
static size_t read_link(struct object *object, const char *section_name,
                        unsigned char link[LINK_BYTES_MAX])
{
    struct section section;
    struct slice slice = {0};
    size_t bytes = 0;
    if (object_section(object, section_name, &section) && section.bytes < LINK_BYTES_MAX &&
        slice_read(&slice, &section, 0, section.bytes) == 0 &&
        memchr(slice.bytes, 0, slice.count)) {
        bytes = slice.count;
        memcpy(link, slice.bytes, bytes);
    }
    slice_free(&slice);
    return bytes;
}

/* An equal build id proves that the file belongs to the object; the checksum of gigabytes would
 * take a while. */
static bool belongs(const struct object *object, const struct object *found, uint32_t checksum)
{
    if (object->build_id_bytes && found->build_id_bytes)
        return has_build_id(found, object->build_id, object->build_id_bytes);
    return has_checksum(found->fd, checksum);
}

static int open_by_link(struct object *object, struct debug_files *files, const char *module_path,
                        struct object *ret_found, char **ret_path)
{
    static const char *const patterns[] = {"%.*s/%s", "%.*s/.debug/%s", DEBUG_DIRECTORY "%.*s/%s"};
    unsigned char link[LINK_BYTES_MAX];
    size_t bytes = read_link(object, ".gnu_debuglink", link);
    size_t name_bytes = bytes ? strlen((char *)link) : 0;
    const char *slash = strrchr(module_path, '/');
    uint32_t checksum;
    /* The checksum is in the last four bytes. */
    if (!name_bytes || bytes < name_bytes + 1 + sizeof checksum || !slash ||
        memchr(link, '/', name_bytes))
        return -ENOENT;
    memcpy(&checksum, link + bytes - sizeof checksum, sizeof checksum);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char *path;
        if (asprintf(&path, patterns[i], (int)(slash - module_path), module_path, link) < 0)
            return -ENOENT;
        /* The module's own name is that of a file in .debug. */
        if (strcmp(path, module_path) != 0 && open_object(files, path, ret_found) == 0) {
            if (belongs(object, ret_found, checksum)) {
                *ret_path = path;
                return 0;
            }
            object_close(ret_found);
        }
        free(path);
    }
    return -ENOENT;
}

int debug_file_find(struct object *object, struct debug_files *files, const char *path,
                    struct object *ret_found, char **ret_path)
{
    int err =
        open_by_build_id(files, object->build_id, object->build_id_bytes, ret_found, ret_path);
    return err ? open_by_link(object, files, path, ret_found, ret_path) : 0;
}

int debug_file_find_supplement(struct object *object, struct debug_files *files, const char *path,
                               struct object *ret_found)
{
    unsigned char link[LINK_BYTES_MAX];
    size_t bytes = read_link(object, ".gnu_debugaltlink", link);
    if (!bytes)
        return -ENOENT;
    size_t name_bytes = strlen((char *)link) + 1;
    const unsigned char *id = link + name_bytes;
    const char *slash = strrchr(path, '/');
    int directory_bytes = link[0] == '/' || !slash ? 0 : (int)(slash + 1 - path);
    char *full = NULL;
    if (bytes <= name_bytes || asprintf(&full, "%.*s%s", directory_bytes, path, link) < 0)
        return -ENOENT;
    int err = open_object(files, full, ret_found);
    free(full);
    if (!err && has_build_id(ret_found, id, bytes - name_bytes))
        return 0;
    if (!err)
        object_close(ret_found);
    err = open_by_build_id(files, id, bytes - name_bytes, ret_found, &full);
    if (!err)
        free(full);
    return err;
}

int debug_file_fetch(const struct object *object, struct debug_files *files,
                     struct object *ret_found, char **ret_path)
{
    size_t bytes = object->build_id_bytes;
    int fd = bytes ? files->fetch(files, object->build_id, bytes, ret_path) : -ENOENT;
    if (fd < 0)
        return -ENOENT;
    if (object_open_fd(ret_found, fd) == 0) {
        if (has_build_id(ret_found, object->build_id, bytes))
            return 0;
        object_close(ret_found);
    }
    free(*ret_path);
    return -ENOENT;
}
