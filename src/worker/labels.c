#include "worker/labels.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/text.h"
#include "label/tls_variable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VARIABLE "otel_thread_ctx_v1"
/* How often the modules are searched and the process's context is read, at most. */
#define AGE_NS 200000000u
#define PART_OF_TIME 100
#define SEARCH_PART_OF_TIME 500
/* Prefix of keys that profiles use themselves. */
#define OWN_KEY_PREFIX "label."

static int find_place(struct program_labels *labels, struct queries *queries,
                      const struct program_maps *maps, const struct observation *observation)
{
    uint64_t now_ns = monotonic_ns();
    /* A library may be loaded later, or its variable get a fixed place. */
    bool is_settled =
        labels->place.kind == CONTEXT_STATIC && labels->mapping_count == maps->space->mapping_count;
    if (is_settled || !throttle_allows(&labels->searching, now_ns, AGE_NS, SEARCH_PART_OF_TIME))
        return 0;
    struct context_place place = {0};
    pid_t tid = observation_live_tid(observation);
    int err = tls_variable_find(queries, maps->space, tid, VARIABLE, &place);
    labels->searching = (struct throttle){now_ns, monotonic_ns() - now_ns};
    /* A failed search, for example for a thread that exits, proves nothing. */
    if (err && err != -ENOENT)
        return err == -ENOMEM ? err : 0;
    labels->mapping_count = maps->space->mapping_count;
    labels->place = place;
    return 0;
}

static int read_process_context(struct program_labels *labels,
                                const struct observation *observation, bool *ret_was_read)
{
    uint64_t now_ns = monotonic_ns();
    *ret_was_read = false;
    if (!throttle_allows(&labels->reading, now_ns, labels->context.header ? 0 : AGE_NS,
                         PART_OF_TIME))
        return 0;
    int err = process_context_read(&labels->context, observation_live_tid(observation),
                                   observation->program->maps_fd, ret_was_read);
    labels->reading = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return err == -ENOMEM ? err : 0;
}

static bool is_same_place(const struct context_place *a, const struct context_place *b)
{
    return a->kind == b->kind && a->offset == b->offset && a->module == b->module;
}

int program_labels_update(struct program_labels *labels, const struct means *means,
                          const struct program_maps *maps, const struct observation *observation)
{
    bool was_read;
    if (!maps->space->has_context)
        return 0;
    int err =
        labels->context.is_known_schema ? 0 : read_process_context(labels, observation, &was_read);
    if (!err && labels->context.is_known_schema)
        err = find_place(labels, means->queries, maps, observation);
    if (err || is_same_place(&labels->place, &labels->told))
        return err;
    const struct request request = {
        .kind = REQUEST_CONTEXT,
        .program = observation->program->number,
        .context = labels->place,
    };
    labels->told = labels->place;
    return channel_request(means->channel, &request);
}

/* pprof takes one value for each key, and these are ours. */
static bool is_own_key(const char *key)
{
    static const char *const own[] = {
        "thread",   "tid",   "state", "syscall",     "wait_channel", "process",   "pid",  "wait",
        "resource", "owner", "waker", "waker_stack", "wait_reason",  "goroutine", "bytes"};
    return text_is_any(key, own, COUNT_OF(own));
}

/* A record's labels as text. */
struct labels_text {
    struct label_text labels[LABELS_MAX];
    size_t count;
    char keys[ATTRIBUTE_KEYS_MAX][sizeof OWN_KEY_PREFIX + ATTRIBUTE_TEXT_BYTES];
    char values[ATTRIBUTE_KEYS_MAX][ATTRIBUTE_TEXT_BYTES];
    char trace_id[2 * CONTEXT_TRACE_ID_BYTES + 1], span_id[2 * CONTEXT_SPAN_ID_BYTES + 1];
};

/* The key as shown to users. Returns false if it is not text. */
static bool key_text(const char *name, char *ret_key)
{
    char text[ATTRIBUTE_TEXT_BYTES];
    const struct context_attribute key = {(const unsigned char *)name, strlen(name), true};
    if (!context_attribute_text(&key, text))
        return false;
    sprintf(ret_key, "%s%s", is_own_key(text) ? OWN_KEY_PREFIX : "", text);
    return true;
}

static bool has_key(const struct labels_text *text, const char *key)
{
    for (size_t i = 0; i < text->count; i++) {
        if (strcmp(text->labels[i].key, key) == 0)
            return true;
    }
    return false;
}

static void add_label(struct labels_text *text, const char *key, const char *value)
{
    text->labels[text->count++] = (struct label_text){key, value};
}

/* Adds an id in hex, unless it is 0 (none). */
static void add_id(struct labels_text *text, const char *key, const unsigned char *id, size_t bytes,
                   char *room)
{
    bool is_there = false;
    for (size_t i = 0; i < bytes; i++) {
        sprintf(&room[2 * i], "%02x", id[i]);
        is_there = is_there || id[i];
    }
    if (is_there && !has_key(text, key))
        add_label(text, key, room);
}

static bool lacks_key(const struct process_context *context,
                      const struct context_attribute *attributes)
{
    for (size_t i = context->key_count; i < ATTRIBUTE_KEYS_MAX; i++) {
        if (attributes[i].is_there)
            return true;
    }
    return false;
}

/* Returns whether a value was left out because it is not text. */
static bool add_attributes(struct labels_text *text, const struct process_context *context,
                           const struct context_attribute *attributes)
{
    bool is_bad = false;
    for (size_t i = 0; i < context->key_count; i++) {
        if (!attributes[i].is_there || !attributes[i].bytes)
            continue;
        if (!key_text(context->keys[i], text->keys[i]) ||
            !context_attribute_text(&attributes[i], text->values[i]))
            is_bad = true;
        else if (!has_key(text, text->keys[i]))
            add_label(text, text->keys[i], text->values[i]);
    }
    return is_bad;
}

/* Spans are distinguished by the whole value, even one beyond the limits. */
static uint64_t identity_of(const struct labels_text *text, const struct thread_context *context,
                            const char *key)
{
    for (size_t i = 0; key && i < text->count; i++) {
        const char *value = text->labels[i].value;
        if (strcmp(text->labels[i].key, key) != 0)
            continue;
        uint64_t ids =
            hash_bytes(context->record, CONTEXT_TRACE_ID_BYTES + CONTEXT_SPAN_ID_BYTES, 0);
        return hash_bytes(value, strlen(value), ids) | 1;
    }
    return 0;
}

static int take_record(struct program_labels *labels, const struct means *means,
                       const struct observation *observation, uint32_t *ret_set_plus_1,
                       struct span_sight *ret_sight)
{
    const struct thread_context *context = observation->snapshot->context;
    struct results *results = means->results;
    struct result_counts *counts = &results->counts;
    struct context_attribute attributes[ATTRIBUTE_KEYS_MAX];
    struct labels_text text;
    bool was_read, is_limited;
    text.count = 0;
    context_attributes_find(context, attributes);
    /* Keys are only ever added (OTEP 4947). */
    if (lacks_key(&labels->context, attributes) &&
        read_process_context(labels, observation, &was_read))
        return -ENOMEM;
    counts->labels_bad += add_attributes(&text, &labels->context, attributes);
    if (results->has_trace_ids) {
        add_id(&text, "trace_id", context->record, CONTEXT_TRACE_ID_BYTES, text.trace_id);
        add_id(&text, "span_id", context->record + CONTEXT_TRACE_ID_BYTES, CONTEXT_SPAN_ID_BYTES,
               text.span_id);
    }
    *ret_sight = (struct span_sight){true, identity_of(&text, context, means->spans.key)};
    int err =
        label_sets_add(&results->label_sets, text.labels, text.count, ret_set_plus_1, &is_limited);
    counts->labels_limited += !err && is_limited;
    counts->labels_read++;
    counts->labels_later += context->may_be_later;
    return err;
}

int program_labels_take(struct program_labels *labels, const struct means *means,
                        const struct observation *observation, uint32_t *ret_set_plus_1,
                        struct span_sight *ret_sight)
{
    const struct thread_context *context = observation->snapshot->context;
    *ret_set_plus_1 = 0;
    *ret_sight = (struct span_sight){0};
    switch (context ? context->state : CONTEXT_NOT_READ) {
    case CONTEXT_NOT_READ:
        return 0;
    case CONTEXT_NONE:
        ret_sight->is_known = true;
        return 0;
    case CONTEXT_CHANGED:
        means->results->counts.labels_changed++;
        return 0;
    case CONTEXT_UNREADABLE:
        means->results->counts.labels_unreadable++;
        return 0;
    case CONTEXT_READ:
        return take_record(labels, means, observation, ret_set_plus_1, ret_sight);
    }
    return 0;
}

/* The value, as shown to users. Returns false if it is not text. */
static bool value_text(const char *value, char *ret_value)
{
    const struct context_attribute attribute = {(const unsigned char *)value, strlen(value), true};
    return context_attribute_text(&attribute, ret_value);
}

int labels_take_texts(struct results *results, const char *texts, size_t bytes,
                      uint32_t *ret_set_plus_1)
{
    struct labels_text text;
    bool is_limited;
    const char *end = texts + bytes;
    text.count = 0;
    *ret_set_plus_1 = 0;
    for (size_t i = 0; texts < end && i < ATTRIBUTE_KEYS_MAX; i++) {
        const char *value = texts + strlen(texts) + 1;
        if (!key_text(texts, text.keys[i]) || !value_text(value, text.values[i]))
            results->counts.labels_bad++;
        else if (!has_key(&text, text.keys[i]))
            add_label(&text, text.keys[i], text.values[i]);
        texts = value + strlen(value) + 1;
    }
    if (!text.count)
        return 0;
    int err =
        label_sets_add(&results->label_sets, text.labels, text.count, ret_set_plus_1, &is_limited);
    results->counts.labels_limited += !err && is_limited;
    return err;
}

void program_labels_free(struct program_labels *labels)
{
    process_context_free(&labels->context);
}
