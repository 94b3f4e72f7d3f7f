#include "label/process_context.h"
#include "base/protobuf.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
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

#define SIGNATURE "OTEL_CTX"
#define SIGNATURE_BYTES 8
#define VERSION 2
#define PAYLOAD_BYTES_MAX (1u << 20)
#define TRIES 4

/* As it is in memory. */
struct header {
    char signature[SIGNATURE_BYTES];
    uint32_t version;
    uint32_t payload_bytes;
    uint64_t published_at; /* CLOCK_BOOTTIME; 0: it is being changed */
    uint64_t payload;      /* its address */
};

/* Fields, by message: process_context.proto, and opentelemetry/proto/common/v1/common.proto. */
enum {
    PROCESS_CONTEXT_ATTRIBUTES = 2,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_VALUE_STRING = 1,
    ANY_VALUE_ARRAY = 5,
    ARRAY_VALUES = 1,
};

static bool read_header(pid_t tid, uint64_t address, struct header *ret_header)
{
    return memory_read(tid, NULL, address, ret_header, sizeof *ret_header) == sizeof *ret_header &&
           memcmp(ret_header->signature, SIGNATURE, SIGNATURE_BYTES) == 0 &&
           ret_header->version == VERSION;
}

struct search {
    pid_t tid;
    uint64_t found;
};

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static int look_at_mapping(void *context, const struct maps_entry *entry)
{
    struct search *search = context;
    struct header header;
    if (!begins_with(entry->path, "[anon_shmem:OTEL_CTX]") &&
        !begins_with(entry->path, "[anon:OTEL_CTX]") &&
        !begins_with(entry->path, "/memfd:OTEL_CTX"))
        return 0;
    if (!read_header(search->tid, entry->start, &header))
        return 0;
    search->found = entry->start;
    return 1;
}

/* Finds the next field of this number that has bytes. Returns false at the end, or if the message
 * is damaged. */
static bool next_bytes(struct bytes *message, unsigned number, struct bytes *ret_value)
{
    struct protobuf_field field;
    while (protobuf_next(message, &field)) {
        if (field.number != number || field.type != PROTOBUF_BYTES)
            continue;
        *ret_value = field.content;
        return true;
    }
    return false;
}

static bool is_text(const struct bytes *bytes, const char *text)
{
    return bytes_left(bytes) == strlen(text) && memcmp(bytes->at, text, strlen(text)) == 0;
}

/* The last field of that number, as for one that is not repeated. */
static bool last_field(struct bytes message, unsigned number, struct bytes *ret_value)
{
    bool is_found = false;
    while (next_bytes(&message, number, ret_value))
        is_found = true;
    return is_found;
}

static void drop_keys(struct process_context *context)
{
    for (size_t i = 0; i < context->key_count; i++)
        free(context->keys[i]);
    context->key_count = 0;
}

static int take_keys(struct process_context *context, struct bytes array)
{
    struct bytes value, text;
    drop_keys(context);
    while (context->key_count < CONTEXT_KEYS_MAX && next_bytes(&array, ARRAY_VALUES, &value)) {
        if (!last_field(value, ANY_VALUE_STRING, &text))
            text = (struct bytes){0};
        char *key = text.at ? strndup((const char *)text.at, bytes_left(&text)) : strdup("");
        if (!key)
            return -ENOMEM;
        context->keys[context->key_count++] = key;
    }
    return 0;
}

/* The names of the contexts' form: tls_v1, and that by which it went while it was a proposal. */
static int take_attribute(struct process_context *context, struct bytes attribute)
{
    struct bytes key, value, content;
    if (!last_field(attribute, KEY_VALUE_KEY, &key) ||
        !last_field(attribute, KEY_VALUE_VALUE, &value))
        return 0;
    if (is_text(&key, "threadlocal.schema_version") &&
        last_field(value, ANY_VALUE_STRING, &content))
        context->is_known_schema =
            is_text(&content, "tls_v1") || is_text(&content, "tlsdesc_v1_dev");
    if (is_text(&key, "threadlocal.attribute_key_map") &&
        last_field(value, ANY_VALUE_ARRAY, &content))
        return take_keys(context, content);
    return 0;
}

int process_context_parse(struct process_context *context, const uint8_t *message, size_t bytes)
{
    struct bytes left = {.at = message, .end = message + bytes}, value;
    int err = 0;
    drop_keys(context);
    context->is_known_schema = false;
    while (!err && next_bytes(&left, PROCESS_CONTEXT_ATTRIBUTES, &value))
        err = take_attribute(context, value);
    if (!err && left.failed)
        err = -EBADMSG;
    if (err) {
        drop_keys(context);
        context->is_known_schema = false;
    }
    return err;
}

/* Reads what the header refers to, and the header again, which must not have changed. */
static int read_payload(struct process_context *context, pid_t tid, const struct header *header)
{
    struct header again;
    if (header->payload_bytes > PAYLOAD_BYTES_MAX)
        return -EBADMSG;
    uint8_t *payload = malloc(header->payload_bytes + 1u);
    if (!payload)
        return -ENOMEM;
    size_t got = memory_read(tid, NULL, header->payload, payload, header->payload_bytes);
    int err =
        !read_header(tid, context->header, &again) || again.published_at != header->published_at
            ? -EAGAIN
        : got < header->payload_bytes ? -EBADMSG
                                      : 0;
    if (!err)
        err = process_context_parse(context, payload, got);
    free(payload);
    return err;
}

int process_context_read(struct process_context *context, pid_t tid, int maps_fd, bool *ret_changed)
{
    struct search search = {.tid = tid};
    struct header header;
    *ret_changed = false;
    if (!context->header || !read_header(tid, context->header, &header)) {
        int err = maps_read(maps_fd, look_at_mapping, &search);
        if (err < 0 || !search.found)
            return err == -ENOMEM ? err : -ENOENT;
        context->header = search.found;
        context->published_at = 0;
    }
    for (unsigned i = 0; i < TRIES; i++) {
        if (!read_header(tid, context->header, &header))
            return -ENOENT;
        if (header.published_at && header.published_at == context->published_at)
            return 0;
        int err = header.published_at ? read_payload(context, tid, &header) : -EAGAIN;
        if (err == -EAGAIN)
            continue;
        /* What is damaged stays so until it is published again. */
        context->published_at = header.published_at;
        *ret_changed = !err;
        return err;
    }
    return -EAGAIN;
}

void process_context_free(struct process_context *context)
{
    drop_keys(context);
    *context = (struct process_context){0};
}
