/* Profiles of objects built by hand, for tests of what is made from them. */
#ifndef FGPROF_TESTS_MAKE_OBJECTS_H
#define FGPROF_TESTS_MAKE_OBJECTS_H

#include "make_profile.h"

#define MADE_RATE (512u << 10)

/* `locations`: leaf first. */
static inline void make_objects(struct fgprof_profile *profile, const uint32_t *locations,
                                size_t depth, uint64_t object_bytes, uint64_t made, uint64_t gone)
{
    struct profile_sample sample = {.object_bytes = object_bytes, .made = made, .gone = gone};
    assert_int_equal(profile_add_stack(profile, locations, depth, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
}

#define MAKE_OBJECTS(profile, object_bytes, made, gone, ...)                                       \
    make_objects(profile, (const uint32_t[]){__VA_ARGS__},                                         \
                 sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), object_bytes, made, gone)

/* A profile of one process, with the three places below. */
static inline struct fgprof_profile *make_kind(enum fgprof_kind kind)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "0011ff"), process;
    make_function(profile, 0x400456, app, "main", "a.c", 9);
    make_function(profile, 0x400523, app, "parse", "a.c", 20);
    make_function(profile, 0x400610, app, "fill_cache", "cache.c", 70);
    assert_int_equal(profile_add_process(profile, 11, "app", &process), 0);
    profile->kind = kind;
    profile->start_time_ns = 1790000000000000000;
    profile->summary.elapsed_ns = 60000000000;
    return profile;
}
enum { MADE_MAIN, MADE_PARSE, MADE_CACHE };

/* Many small objects, some of which are in use; large ones, none of which is; and a few of another
 * size at the same place. */
static inline struct fgprof_profile *make_heap(void)
{
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    profile->objects.rate = MADE_RATE;
    MAKE_OBJECTS(profile, 516, 100, 40, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 1 << 20, 8, 8, MADE_CACHE, MADE_MAIN);
    MAKE_OBJECTS(profile, 4096, 3, 0, MADE_CACHE, MADE_MAIN);
    MAKE_OBJECTS(profile, 4096, 0, 0, MADE_MAIN);
    profile_finish(profile);
    return profile;
}

/* Pages, one of which is huge. */
static inline struct fgprof_profile *make_growth(void)
{
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_GROWTH);
    MAKE_OBJECTS(profile, 4096, 700, 200, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 2 << 20, 1, 0, MADE_CACHE, MADE_MAIN);
    MAKE_OBJECTS(profile, 4096, 50, 50, MADE_MAIN);
    profile_finish(profile);
    return profile;
}

/* Created threads, two of them with the same name. */
static inline struct fgprof_profile *make_threads(void)
{
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_THREADCREATE);
    static const char *const names[] = {"pool", "pool", "log"};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t locations[] = {i < 2 ? MADE_PARSE : MADE_CACHE, MADE_MAIN};
        struct profile_sample sample = {
            .thread_name = make_string(profile, names[i]), .tid = 21 + i, .made = 1};
        assert_int_equal(profile_add_stack(profile, locations, 2, &sample.stack), 0);
        assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    }
    profile_finish(profile);
    return profile;
}

/* A profile that the program counts itself. */
static inline struct fgprof_profile *make_custom(const char *name)
{
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_CUSTOM);
    profile->objects.name = make_string(profile, name);
    MAKE_OBJECTS(profile, 0, 9, 4, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 0, 2, 2, MADE_CACHE, MADE_MAIN);
    profile_finish(profile);
    return profile;
}

#endif
