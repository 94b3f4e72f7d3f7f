/* Reads the context that this process publishes with fgprof_label.h, and damaged messages. */
#include "unit.h"
#include "base/protobuf.h"
#include "fgprof_label.h"
#include "label/process_context.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static int maps_fd;

static int open_maps(void **state)
{
    (void)state;
    maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    return maps_fd < 0;
}

static int close_maps(void **state)
{
    (void)state;
    return close(maps_fd);
}

static int read_own(struct process_context *context, bool *ret_changed)
{
    return process_context_read(context, getpid(), maps_fd, ret_changed);
}

static void test_keys_are_read_and_read_again_when_there_are_more(void **state)
{
    (void)state;
    struct process_context context = {0};
    struct fgprof_labels labels = {0};
    bool was_read;
    assert_int_equal(read_own(&context, &was_read), -ENOENT);
    assert_int_equal(fgprof_labels_put(&labels, "route", "/x"), 0);
    assert_int_equal(read_own(&context, &was_read), 0);
    assert_true(was_read && context.is_known_schema);
    assert_int_equal(context.key_count, 1);
    assert_string_equal(context.keys[0], "route");
    assert_int_equal(read_own(&context, &was_read), 0);
    assert_false(was_read);
    /* The maximum number of keys, of the maximum length. */
    for (unsigned i = 1; i < FGPROF_LABEL_KEYS_MAX; i++) {
        char key[FGPROF_LABEL_KEY_BYTES_MAX + 1];
        snprintf(key, sizeof key, "%063u", i);
        assert_int_equal(fgprof_labels_put(&labels, key, NULL), 0);
    }
    assert_int_equal(fgprof_labels_put(&labels, "another", "x"), -ENOSPC);
    assert_int_equal(read_own(&context, &was_read), 0);
    assert_true(was_read);
    assert_int_equal(context.key_count, FGPROF_LABEL_KEYS_MAX);
    assert_string_equal(context.keys[0], "route");
    assert_int_equal(strtoul(context.keys[255], NULL, 10), 255);
    /* While it is being changed. */
    fgprof_label_keys.context->published_at = 0;
    assert_int_equal(read_own(&context, &was_read), -EAGAIN);
    /* Hostile values. */
    struct fgprof_label_context *own = fgprof_label_keys.context;
    own->published_at = 7;
    own->payload_bytes = UINT32_MAX;
    assert_int_equal(read_own(&context, &was_read), -EBADMSG);
    own->published_at = 8;
    own->payload_bytes = 100;
    own->payload = 1;
    assert_int_equal(read_own(&context, &was_read), -EBADMSG);
    own->version = 3;
    assert_int_equal(read_own(&context, &was_read), -ENOENT);
    process_context_free(&context);
}

/* Appends an attribute with this name and a string as its value. */
static void put_attribute(struct buffer *message, const char *key, const char *value)
{
    size_t attribute = protobuf_begin(message, 2);
    protobuf_string(message, 1, key);
    size_t any = protobuf_begin(message, 2);
    protobuf_string(message, 1, value);
    protobuf_end(message, any);
    protobuf_end(message, attribute);
}

static void test_only_known_forms_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool is_known;
    } rows[] = {{"tls_v1", true},
                {"tlsdesc_v1_dev", true},
                {"tls_v2", false},
                {"go_pprof_labels_v1", false},
                {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer message = {0};
        struct process_context context = {0};
        put_attribute(&message, "other", "tls_v1");
        put_attribute(&message, "threadlocal.schema_version", rows[i].version);
        protobuf_number(&message, 9, 77); /* a field of a later version */
        assert_int_equal(process_context_parse(&context, (uint8_t *)message.bytes, message.length),
                         0);
        assert_int_equal(context.is_known_schema, rows[i].is_known);
        assert_int_equal(context.key_count, 0);
        buffer_free(&message);
    }
}

static void test_damaged_messages(void **state)
{
    (void)state;
    struct process_context context = {0};
    uint8_t payload[FGPROF_LABEL_CONTEXT_BYTES];
    static struct fgprof_label_keys keys;
    strcpy(keys.names[0], "a");
    strcpy(keys.names[1], "bb");
    keys.count = 2;
    size_t bytes = fgprof_label_encode(&keys, payload);
    assert_int_equal(process_context_parse(&context, payload, bytes), 0);
    assert_int_equal(context.key_count, 2);
    assert_string_equal(context.keys[1], "bb");
    for (size_t cut = 0; cut < bytes; cut++) {
        int err = process_context_parse(&context, payload, cut);
        assert_true(err == 0 || err == -EBADMSG);
        assert_true(err == 0 || (!context.key_count && !context.is_known_schema));
    }
    for (size_t i = 0; i < bytes; i++) {
        uint8_t was = payload[i];
        for (unsigned value = 0; value < 256; value++) {
            payload[i] = (uint8_t)value;
            int err = process_context_parse(&context, payload, bytes);
            assert_true(err == 0 || err == -EBADMSG);
        }
        payload[i] = was;
    }
    process_context_free(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_read_and_read_again_when_there_are_more),
        cmocka_unit_test(test_only_known_forms_are_read),
        cmocka_unit_test(test_damaged_messages),
    };
    return cmocka_run_group_tests_name("process_context", tests, open_maps, close_maps);
}
