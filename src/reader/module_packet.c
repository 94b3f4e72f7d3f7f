#include "reader/module_packet.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A module that is not a file, as the kernel's vdso, becomes one. */
static int file_of(const struct module *module)
{
    const struct image *image = &module->image;
    if (!module->is_readable || image->fd >= 0)
        return image->fd;
    int fd = memfd_create("fgprof-module", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (pwrite(fd, image->memory, image->bytes, 0) == (ssize_t)image->bytes)
        return fd;
    close(fd);
    return -EIO;
}

int module_packet_send(int socket, enum packet_kind kind, uint64_t number,
                       const struct module *module)
{
    struct buffer body = {0};
    int fd = file_of(module);
    packet_put_number(&body, number);
    packet_put_text(&body, module->path);
    packet_put_number(&body, module->is_readable && fd >= 0);
    packet_put_number(&body,
                      (uint64_t)(int64_t)(module->is_readable && fd < 0 ? fd : module->error));
    int err = packet_send(socket, kind, &body, fd);
    buffer_free(&body);
    if (fd >= 0 && fd != module->image.fd)
        close(fd);
    return err;
}

int module_packet_take(struct bytes *body, int fd, struct module **ret_module)
{
    struct module *module = calloc(1, sizeof *module);
    if (!module) {
        if (fd >= 0)
            close(fd);
        return -ENOMEM;
    }
    *ret_module = module;
    module->image.fd = -1;
    const char *path = packet_text(body);
    module->is_readable = packet_number(body);
    module->error = (int)packet_number(body);
    module->path = strdup(path ? path : "");
    int err = module->path ? 0 : -ENOMEM;
    if (!err && module->is_readable)
        err = image_open_fd(&module->image, fd);
    if ((err || !module->is_readable) && fd >= 0)
        close(fd);
    return !err && module->is_readable ? elf_file_read(module) : err;
}
