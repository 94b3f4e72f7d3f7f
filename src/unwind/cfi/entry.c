/* Reads CIEs and FDEs. */
#include "unwind/cfi/cfi.h"

/* DW_EH_PE_*: how a pointer is written (LSB Core 5.0, 10.5.1). */
#define FORMAT_MASK 0x0f
#define APPLICATION_MASK 0xf0 /* with the bit for an indirect pointer, not supported here */
enum {
    FORMAT_ABSOLUTE = 0x00,
    FORMAT_UDATA2 = 0x02,
    FORMAT_UDATA4 = 0x03,
    FORMAT_UDATA8 = 0x04,
    FORMAT_SDATA2 = 0x0a,
    FORMAT_SDATA4 = 0x0b,
    FORMAT_SDATA8 = 0x0c,
    APPLICATION_ABSOLUTE = 0x00,
    APPLICATION_PC_RELATIVE = 0x10,
};

static bool read_at(const struct cfi_source *source, uint64_t position, void *buffer, size_t bytes)
{
    struct module *module = source->module;
    const struct cfi_section *section = &module->debug_frame;
    if (!source->is_debug_frame)
        return module_read(module, position, buffer, bytes);
    if (position > section->bytes || bytes > section->bytes - position)
        return false;
    if (section->memory) {
        memcpy(buffer, section->memory + position, bytes);
        return true;
    }
    return image_read(&module->image, section->offset + position, buffer, bytes);
}

/* Takes in the id field. An FDE's says where its CIE is, in .eh_frame relative to the field. A
 * CIE's is 0 in .eh_frame, and all ones in .debug_frame. */
static void note_id(const struct cfi_source *source, uint64_t id, uint64_t id_position,
                    bool has_64_bits, struct cfi_head *head)
{
    uint64_t cie_id = has_64_bits ? UINT64_MAX : UINT32_MAX;
    head->is_cie = id == (source->is_debug_frame ? cie_id : 0);
    head->cie_position = source->is_debug_frame ? id : id_position - id;
}

bool cfi_read_head(const struct cfi_source *source, uint64_t position, struct cfi_head *ret_head)
{
    uint32_t length_32, id_32;
    uint64_t length, id;
    if (!read_at(source, position, &length_32, sizeof length_32) || !length_32)
        return false;
    bool has_64_bits = length_32 == UINT32_MAX;
    position += sizeof length_32;
    length = length_32;
    if (has_64_bits) {
        if (!read_at(source, position, &length, sizeof length))
            return false;
        position += sizeof length;
    }
    /* Even in an .eh_frame entry of 64 bits, the id has 32 bits. */
    unsigned id_bytes = has_64_bits && source->is_debug_frame ? 8 : 4;
    if (length < id_bytes || length > UINT64_MAX - position)
        return false;
    if (id_bytes == 8) {
        if (!read_at(source, position, &id, sizeof id))
            return false;
    } else {
        if (!read_at(source, position, &id_32, sizeof id_32))
            return false;
        id = id_32;
    }
    note_id(source, id, position, id_bytes == 8, ret_head);
    ret_head->body = position + id_bytes;
    ret_head->body_bytes = length - id_bytes;
    ret_head->next = position + length;
    return true;
}

/* Reads a pointer that lies at `position`. Returns false if it is written in a way that no linker
 * uses here. */
static bool read_pointer(struct bytes *bytes, uint8_t encoding, uint64_t position,
                         uint64_t *ret_value)
{
    switch (encoding & FORMAT_MASK) {
    case FORMAT_ABSOLUTE:
    case FORMAT_UDATA8:
    case FORMAT_SDATA8:
        *ret_value = bytes_unsigned(bytes, 8);
        break;
    case FORMAT_UDATA4:
        *ret_value = bytes_unsigned(bytes, 4);
        break;
    case FORMAT_SDATA4:
        *ret_value = (uint64_t)bytes_signed(bytes, 4);
        break;
    case FORMAT_UDATA2:
        *ret_value = bytes_unsigned(bytes, 2);
        break;
    case FORMAT_SDATA2:
        *ret_value = (uint64_t)bytes_signed(bytes, 2);
        break;
    default:
        return false;
    }
    if ((encoding & APPLICATION_MASK) == APPLICATION_PC_RELATIVE)
        *ret_value += position;
    else if ((encoding & APPLICATION_MASK) != APPLICATION_ABSOLUTE)
        return false;
    return !bytes->failed;
}

/* "zPLR" and the like: each letter says what the augmentation data holds. */
static bool read_augmentation(struct bytes *body, const char *letters, struct cfi_entry *entry)
{
    if (!*letters)
        return true;
    if (*letters != 'z')
        return false;
    entry->has_augmentation = true;
    uint64_t length = bytes_uleb(body);
    struct bytes data = {body->at, body->at, false};
    bytes_skip(body, length);
    data.end = body->at;
    for (const char *letter = letters + 1; *letter; letter++) {
        uint64_t personality;
        switch (*letter) {
        case 'L':
            bytes_skip(&data, 1);
            break;
        case 'P': {
            uint8_t encoding = (uint8_t)bytes_unsigned(&data, 1);
            if (!read_pointer(&data, encoding & FORMAT_MASK, 0, &personality))
                return false;
            break;
        }
        case 'R':
            entry->pointer_encoding = (uint8_t)bytes_unsigned(&data, 1);
            break;
        case 'S':
            entry->is_signal_frame = true;
            break;
        case 'B': /* AArch64: return addresses are signed with the B key */
        case 'G': /* AArch64: the frame is tagged (MTE) */
            break;
        default:
            return false;
        }
    }
    return !data.failed;
}

static bool read_common(const struct cfi_source *source, uint64_t position, struct cfi_entry *entry)
{
    struct cfi_head head;
    uint8_t *buffer = entry->buffers.common;
    if (!cfi_read_head(source, position, &head) || !head.is_cie ||
        head.body_bytes > CFI_CIE_BYTES_MAX || !read_at(source, head.body, buffer, head.body_bytes))
        return false;
    struct bytes body = {buffer, buffer + head.body_bytes, false};
    uint64_t version = bytes_unsigned(&body, 1);
    const char *letters = (const char *)body.at;
    const uint8_t *end = memchr(body.at, '\0', bytes_left(&body));
    if (!end || (version != 1 && version != 3 && version != 4))
        return false;
    body.at = end + 1;
    if (version == 4) {
        if (bytes_unsigned(&body, 1) != sizeof(uint64_t))
            return false;
        bytes_skip(&body, 1); /* size of a segment selector, for architectures that have them */
    }
    entry->code_factor = bytes_uleb(&body);
    entry->data_factor = bytes_sleb(&body);
    entry->return_register = version == 1 ? bytes_unsigned(&body, 1) : bytes_uleb(&body);
    if (!read_augmentation(&body, letters, entry))
        return false;
    entry->common_program = body;
    return !body.failed;
}

bool cfi_read_entry(const struct cfi_source *source, uint64_t position, struct cfi_entry *ret_entry)
{
    struct cfi_head head;
    uint8_t *buffer = ret_entry->buffers.own;
    ret_entry->pointer_encoding = FORMAT_ABSOLUTE;
    ret_entry->has_augmentation = ret_entry->is_signal_frame = false;
    if (!cfi_read_head(source, position, &head) || head.is_cie ||
        head.body_bytes > CFI_ENTRY_BYTES_MAX ||
        !read_at(source, head.body, buffer, head.body_bytes))
        return false;
    if (!read_common(source, head.cie_position, ret_entry))
        return false;
    struct bytes body = {buffer, buffer + head.body_bytes, false};
    uint64_t code_bytes;
    /* The length is a plain number in the same format. */
    if (!read_pointer(&body, ret_entry->pointer_encoding, head.body, &ret_entry->start) ||
        !read_pointer(&body, ret_entry->pointer_encoding & FORMAT_MASK, 0, &code_bytes))
        return false;
    ret_entry->end = ret_entry->start + code_bytes;
    if (ret_entry->has_augmentation)
        bytes_skip(&body, bytes_uleb(&body));
    ret_entry->program = body;
    return !body.failed && ret_entry->end > ret_entry->start;
}
