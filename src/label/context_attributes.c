#include "label/context_attributes.h"

#include <string.h>

void context_attributes_find(const struct thread_context *context,
                             struct context_attribute attributes[ATTRIBUTE_KEYS_MAX])
{
    memset(attributes, 0, ATTRIBUTE_KEYS_MAX * sizeof *attributes);
    for (size_t at = CONTEXT_HEAD_BYTES; at + 2 <= context->bytes;) {
        unsigned char key = context->record[at];
        size_t bytes = context->record[at + 1];
        if (bytes > context->bytes - at - 2)
            return;
        attributes[key] = (struct context_attribute){&context->record[at + 2], bytes, true};
        at += 2 + bytes;
    }
}

/* How many bytes the character at `text` has, of `left` that there are; 0: it is none (RFC 3629).
 */
static size_t character_bytes(const unsigned char *text, size_t left)
{
    static const uint32_t first[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : 4;
    if (bytes == 1)
        return 1;
    if (bytes > left || (bytes == 4 && *text >> 3 != 30))
        return 0;
    uint32_t character = *text & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3fu);
    }
    bool is_surrogate = character >= 0xd800 && character < 0xe000;
    return character < first[bytes] || character > 0x10ffff || is_surrogate ? 0 : bytes;
}

bool context_attribute_text(const struct context_attribute *attribute,
                            char ret_text[ATTRIBUTE_TEXT_BYTES])
{
    if (!attribute->bytes || attribute->bytes >= ATTRIBUTE_TEXT_BYTES)
        return false;
    for (size_t at = 0; at < attribute->bytes;) {
        size_t bytes = character_bytes(&attribute->value[at], attribute->bytes - at);
        if (!bytes)
            return false;
        memcpy(&ret_text[at], &attribute->value[at], bytes);
        if (bytes == 1 && (attribute->value[at] < ' ' || attribute->value[at] == 0x7f))
            ret_text[at] = ' ';
        at += bytes;
    }
    ret_text[attribute->bytes] = '\0';
    return true;
}
