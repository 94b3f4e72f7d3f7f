#include "label/context_attributes.h"
#include "base/utf8.h"

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

bool context_attribute_text(const struct context_attribute *attribute,
                            char ret_text[ATTRIBUTE_TEXT_BYTES])
{
    if (!attribute->bytes || attribute->bytes >= ATTRIBUTE_TEXT_BYTES)
        return false;
    for (size_t at = 0; at < attribute->bytes;) {
        size_t bytes = utf8_bytes(&attribute->value[at], attribute->bytes - at);
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
