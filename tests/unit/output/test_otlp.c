#include "make_objects.h"
#include "read_protobuf.h"

/* Goes to the first field of that number in a message. */
static struct bytes first_of(struct bytes message, unsigned number)
{
    struct field field;
    while (read_field(&message, &field)) {
        if (field.number == number)
            return field.bytes;
    }
    fail();
    return message;
}

/* Reads the id of the first profile (opentelemetry/proto/profiles: resource_profiles 1,
 * scope_profiles 2, profiles 2, profile_id 7). Frees the profile. */
static void take_id(struct fgprof_profile *profile, unsigned char ret_id[16])
{
    size_t length;
    char *packed = written(profile, FGPROF_OTLP, &length);
    struct bytes request = gunzip(packed, length);
    struct bytes id = first_of(first_of(first_of(first_of(request, 1), 2), 2), 7);
    assert_int_equal(id.end - id.at, 16);
    memcpy(ret_id, id.at, 16);
    free((void *)request.at);
    free(packed);
    fgprof_profile_free(profile);
}

/* What a program counts may have the name of another type. */
static void test_ids_of_custom_profiles(void **state)
{
    (void)state;
    unsigned char ids[5][16], again[16];
    take_id(make_kind(FGPROF_KIND_THREADCREATE), ids[0]);
    take_id(make_custom("threadcreate"), ids[1]);
    take_id(make_custom("custom"), ids[2]);
    take_id(make_custom("sockets"), ids[3]);
    take_id(make_custom("files"), ids[4]);
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(ids[i], ids[j], 16);
    }
    take_id(make_custom("files"), again);
    assert_memory_equal(again, ids[4], 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids_of_custom_profiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
