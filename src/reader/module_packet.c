#include "reader/module_packet.h"
#include "base/array.h"
#include "base/file_limit.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A module that is not a file, such as the kernel's vdso, becomes one. */
static int file_of(const struct module *module)
{
    const struct image *image = &module->image;
    if (!module->is_readable || image->fd >= 0)
        return image->fd;
    if (image->bytes > file_limit_bytes())
        return -EFBIG;
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

/* ---- Headers ---- */

static const struct packet_field header_fields[] = {
    PACKET_FIELD(struct module, entry_address, UINT64_MAX),
    PACKET_FIELD(struct module, unwind_table.header_address, UINT64_MAX),
    PACKET_FIELD(struct module, unwind_table.entries_address, UINT64_MAX),
    PACKET_FIELD(struct module, unwind_table.entry_count, UINT32_MAX),
    PACKET_FIELD(struct module, dynamic.address, UINT64_MAX),
    PACKET_FIELD(struct module, dynamic.bytes, UINT64_MAX),
    PACKET_FIELD(struct module, tls.address, UINT64_MAX),
    PACKET_FIELD(struct module, tls.bytes, UINT64_MAX),
    PACKET_FIELD(struct module, tls.alignment, UINT64_MAX),
    PACKET_FIELD(struct module, go.pclntab.address, UINT64_MAX),
    PACKET_FIELD(struct module, go.pclntab.bytes, UINT64_MAX),
    PACKET_FIELD(struct module, go.is_go, true),
    PACKET_FIELD(struct module, go.has_sections, true),
};

static const struct packet_field segment_fields[] = {
    PACKET_FIELD(struct segment, offset, UINT64_MAX),
    PACKET_FIELD(struct segment, file_bytes, UINT64_MAX),
    PACKET_FIELD(struct segment, address, UINT64_MAX),
    PACKET_FIELD(struct segment, memory_bytes, UINT64_MAX),
    PACKET_FIELD(struct segment, executable, true),
};

static const struct packet_field cfi_section_fields[] = {
    PACKET_FIELD(struct cfi_section, address, UINT64_MAX),
    PACKET_FIELD(struct cfi_section, offset, UINT64_MAX),
    PACKET_FIELD(struct cfi_section, bytes, UINT64_MAX),
    PACKET_FIELD(struct cfi_section, is_compressed, true),
};

void module_packet_put_headers(struct buffer *body, const struct module *module)
{
    packet_put_fields(body, header_fields, COUNT_OF(header_fields), module);
    packet_put_number(body, module->segment_count);
    for (size_t i = 0; i < module->segment_count; i++)
        packet_put_fields(body, segment_fields, COUNT_OF(segment_fields), &module->segments[i]);
    packet_put_fields(body, cfi_section_fields, COUNT_OF(cfi_section_fields), &module->eh_frame);
    packet_put_fields(body, cfi_section_fields, COUNT_OF(cfi_section_fields), &module->debug_frame);
    packet_put_number(body, module->build_id_bytes);
    buffer_write(body, module->build_id, module->build_id_bytes);
}

static void take_segments(struct bytes *body, struct module *module)
{
    uint64_t count = packet_number(body);
    if (!count || body->failed)
        return;
    module->segments = count <= SEGMENTS_MAX ? calloc(count, sizeof *module->segments) : NULL;
    if (!module->segments) {
        body->failed = true;
        return;
    }
    for (; module->segment_count < count; module->segment_count++)
        packet_take_fields(body, segment_fields, COUNT_OF(segment_fields),
                           &module->segments[module->segment_count]);
}

bool module_packet_take_headers(struct bytes *body, struct module *module)
{
    packet_take_fields(body, header_fields, COUNT_OF(header_fields), module);
    take_segments(body, module);
    packet_take_fields(body, cfi_section_fields, COUNT_OF(cfi_section_fields), &module->eh_frame);
    packet_take_fields(body, cfi_section_fields, COUNT_OF(cfi_section_fields),
                       &module->debug_frame);
    module->build_id_bytes = packet_number(body);
    if (body->failed || module->build_id_bytes > BUILD_ID_BYTES_MAX ||
        module->build_id_bytes > bytes_left(body)) {
        module->build_id_bytes = 0;
        return false;
    }
    memcpy(module->build_id, body->at, module->build_id_bytes);
    bytes_skip(body, module->build_id_bytes);
    return true;
}
