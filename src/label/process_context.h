/* What a process publishes about itself: OpenTelemetry's process context (OTEP 4719,
 * open-telemetry/opentelemetry-specification, oteps/profiles/4719-process-ctx.md). Only what the
 * threads' contexts need is read from it: their version, and the names of their keys. */
#ifndef FGPROF_LABEL_PROCESS_CONTEXT_H
#define FGPROF_LABEL_PROCESS_CONTEXT_H

#include "observe/thread_context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The attributes of a thread's context record: its labels. */
#define ATTRIBUTE_KEYS_MAX 256

struct context_attribute {
    const unsigned char *value; /* in the record */
    size_t bytes;
    bool is_there;
};

/* Finds the values of the attributes by their keys' numbers. If a key occurs several times, the
 * last one counts. An attribute that extends beyond the record's end is ignored, with all after it.
 */
void context_attributes_find(const struct thread_context *context,
                             struct context_attribute attributes[ATTRIBUTE_KEYS_MAX]);

/* Copies a value as text for users, in at most 255 bytes and a NUL: control characters are replaced
 * by spaces. Returns false if it is not UTF-8, or empty. */
#define ATTRIBUTE_TEXT_BYTES 256
bool context_attribute_text(const struct context_attribute *attribute,
                            char ret_text[ATTRIBUTE_TEXT_BYTES]);

#define CONTEXT_KEYS_MAX 256 /* a key's number is one byte */

struct process_context {
    uint64_t header;       /* the address of its header; 0: not known */
    uint64_t published_at; /* of the keys that were read; 0: none were */
    bool is_known_schema;  /* the threads' contexts have the form that we know */
    char *keys[CONTEXT_KEYS_MAX];
    size_t key_count;
};

/* Searches the program's maps, `maps_fd`, for the header, if it is not known yet, and reads the
 * rest if it has changed. `tid` is a live thread. *ret_changed: the rest was read. Returns 0;
 * -ENOENT if the process publishes none; -EAGAIN if it is being changed; -EBADMSG if it is damaged;
 * or -ENOMEM. */
int process_context_read(struct process_context *context, pid_t tid, int maps_fd,
                         bool *ret_changed);

/* Reads the version and keys from a ProcessContext message
 * (opentelemetry/proto/processcontext/v1development/process_context.proto). Returns 0, -EBADMSG or
 * -ENOMEM; on error the context has no keys. */
int process_context_parse(struct process_context *context, const uint8_t *message, size_t bytes);

void process_context_free(struct process_context *context);

#endif
