/* The attributes of a thread's context record: its labels. */
#ifndef FGPROF_LABEL_CONTEXT_ATTRIBUTES_H
#define FGPROF_LABEL_CONTEXT_ATTRIBUTES_H

#include "observe/thread_context.h"

#define ATTRIBUTE_KEYS_MAX 256

struct context_attribute {
    const unsigned char *value; /* in the record */
    size_t bytes;
    bool is_there;
};

/* Finds the attributes by their keys' numbers: of a key that occurs several times, the last. What
 * does not fit in the record ends them. */
void context_attributes_find(const struct thread_context *context,
                             struct context_attribute attributes[ATTRIBUTE_KEYS_MAX]);

/* Copies a value as text for users, which has room for 255 bytes and a 0: control characters are
 * replaced by spaces. Returns false if it is not UTF-8, or empty. */
#define ATTRIBUTE_TEXT_BYTES 256
bool context_attribute_text(const struct context_attribute *attribute,
                            char ret_text[ATTRIBUTE_TEXT_BYTES]);

#endif
