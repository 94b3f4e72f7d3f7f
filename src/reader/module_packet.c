#include "reader/module_packet.h"
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

static void put_numbers(struct buffer *body, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        packet_put_number(body, numbers[i]);
}

static void put_cfi_section(struct buffer *body, const struct cfi_section *section)
{
    const uint64_t numbers[] = {section->address, section->offset, section->bytes,
                                section->is_compressed};
    put_numbers(body, numbers, sizeof numbers / sizeof *numbers);
}

void module_packet_put_headers(struct buffer *body, const struct module *module)
{
    const uint64_t numbers[] = {
        module->entry_address,
        module->unwind_table.header_address,
        module->unwind_table.entries_address,
        module->unwind_table.entry_count,
        module->dynamic.address,
        module->dynamic.bytes,
        module->tls.address,
        module->tls.bytes,
        module->tls.alignment,
        module->go.pclntab.address,
        module->go.pclntab.bytes,
        module->go.is_go,
        module->go.has_sections,
        module->segment_count,
    };
    put_numbers(body, numbers, sizeof numbers / sizeof *numbers);
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        const uint64_t parts[] = {segment->offset, segment->file_bytes, segment->address,
                                  segment->memory_bytes, segment->executable};
        put_numbers(body, parts, sizeof parts / sizeof *parts);
    }
    put_cfi_section(body, &module->eh_frame);
    put_cfi_section(body, &module->debug_frame);
    packet_put_number(body, module->build_id_bytes);
    buffer_write(body, module->build_id, module->build_id_bytes);
}

static bool take_flag(struct bytes *body)
{
    uint64_t number = packet_number(body);
    body->failed = body->failed || number > 1;
    return number == 1;
}

static struct module_part take_part(struct bytes *body)
{
    uint64_t address = packet_number(body);
    return (struct module_part){address, packet_number(body)};
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
    for (; module->segment_count < count; module->segment_count++) {
        struct segment *segment = &module->segments[module->segment_count];
        segment->offset = packet_number(body);
        segment->file_bytes = packet_number(body);
        segment->address = packet_number(body);
        segment->memory_bytes = packet_number(body);
        segment->executable = take_flag(body);
    }
}

static struct cfi_section take_cfi_section(struct bytes *body)
{
    struct cfi_section section = {.address = packet_number(body)};
    section.offset = packet_number(body);
    section.bytes = packet_number(body);
    section.is_compressed = take_flag(body);
    return section;
}

bool module_packet_take_headers(struct bytes *body, struct module *module)
{
    struct unwind_table *table = &module->unwind_table;
    module->entry_address = packet_number(body);
    table->header_address = packet_number(body);
    table->entries_address = packet_number(body);
    table->entry_count = packet_number(body);
    body->failed = body->failed || table->entry_count > UINT32_MAX;
    module->dynamic = take_part(body);
    module->tls.address = packet_number(body);
    module->tls.bytes = packet_number(body);
    module->tls.alignment = packet_number(body);
    module->go.pclntab = take_part(body);
    module->go.is_go = take_flag(body);
    module->go.has_sections = take_flag(body);
    take_segments(body, module);
    module->eh_frame = take_cfi_section(body);
    module->debug_frame = take_cfi_section(body);
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
