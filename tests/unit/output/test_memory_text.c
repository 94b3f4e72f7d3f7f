#include "make_objects.h"

/* The rows of two of the stacks. */
#define PARSE "#\t0x400523\tparse+0x23\ta.c:20\n#\t0x400456\tmain+0x56\ta.c:9\n\n"
#define CACHE "#\t0x400610\tfill_cache+0x10\tcache.c:70\n#\t0x400456\tmain+0x56\ta.c:9\n\n"
#define MAP "--- Memory map: ---\n400000-500000 r-xp 00001000 00:00 0 /srv/app\n"

/* The numbers are those of sampled objects; the order is that of the estimates for all objects. */
static void test_heap(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    assert_written(profile, FGPROF_TEXT,
                   "heap profile: 63: 43248 [111: 8452496] @ heap_v2/524288\n"
                   "60: 30960 [100: 51600] @ 0x400524 0x400457\n" PARSE
                   "3: 12288 [3: 12288] @ 0x400611 0x400457\n" CACHE
                   "0: 0 [8: 8388608] @ 0x400611 0x400457\n" CACHE MAP);
    assert_int_equal(fgprof_profile_set_kind(profile, FGPROF_KIND_ALLOCS), 0);
    assert_written(profile, FGPROF_TEXT,
                   "heap profile: 63: 43248 [111: 8452496] @ heap_v2/524288\n"
                   "60: 30960 [100: 51600] @ 0x400524 0x400457\n" PARSE
                   "0: 0 [8: 8388608] @ 0x400611 0x400457\n" CACHE
                   "3: 12288 [3: 12288] @ 0x400611 0x400457\n" CACHE MAP);
    fgprof_profile_free(profile);
}

static void test_what_is_known_of_memory(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    MAKE_OBJECTS(profile, 10, 2, 0, MADE_MAIN);
    MAKE_LABELS(profile, 0, "route", "/a");
    profile->objects.resident_peak = 5000;
    profile->objects.heap_arena = 3000;
    profile->objects.heap_mmap = 700;
    profile->objects.heap_used = 1000;
    profile->objects.heap_free = 2000;
    profile->objects.made_lost = 3;
    assert_int_equal(fgprof_profile_set_reason(profile, "SIGUSR1"), 0);
    /* All objects were sampled, and all are in use; the last number is one more, so that they
     * differ. */
    assert_written(profile, FGPROF_TEXT,
                   "heap profile: 2: 20 [2: 21] @ heapprofile\n"
                   "2: 20 [2: 20] @ 0x400457\n"
                   "# labels: {\"route\":\"/a\"}\n"
                   "#\t0x400456\tmain+0x56\ta.c:9\n\n"
                   "# mallinfo2\n# HeapSys = 3700\n# HeapAlloc = 1700\n# HeapIdle = 2000\n"
                   "# MaxRSS = 5000\n"
                   "# recording fell behind: 3 objects are missing here, and 0 that are gone still "
                   "count as in use\n"
                   "# reason: SIGUSR1\n" MAP);
    fgprof_profile_free(profile);
}

static void test_an_empty_heap(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    assert_written(profile, FGPROF_TEXT, "heap profile: 0: 0 [0: 1] @ heapprofile\n" MAP);
    fgprof_profile_free(profile);
}

/* pprof accepts negative numbers for objects in use, but not in the header. */
static void test_a_difference(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    MAKE_OBJECTS(profile, 10, 0, 2, MADE_PARSE, MADE_MAIN);
    assert_written(profile, FGPROF_TEXT,
                   "heap profile: 0: 0 [0: 1] @ heapprofile\n"
                   "-2: -20 [0: 0] @ 0x400524 0x400457\n" PARSE MAP);
    fgprof_profile_free(profile);
}

static void test_growth(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_growth();
    assert_written(profile, FGPROF_TEXT,
                   "heap profile: 501: 4145152 [751: 5169152] @ growthz\n"
                   "1: 2097152 [1: 2097152] @ 0x400611 0x400457\n" CACHE
                   "500: 2048000 [700: 2867200] @ 0x400524 0x400457\n" PARSE MAP);
    fgprof_profile_free(profile);
}

static void test_counts(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_threads();
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    assert_written(profile, FGPROF_TEXT,
                   "threadcreate profile: total 3\n"
                   "2 @ 0x400524 0x400457\n# labels: {\"thread\":\"pool\"}\n" PARSE
                   "1 @ 0x400611 0x400457\n# labels: {\"thread\":\"log\"}\n" CACHE MAP);
    fgprof_profile_free(profile);
    profile = make_custom("open files");
    assert_written(profile, FGPROF_TEXT,
                   "open_files profile: total 5\n5 @ 0x400524 0x400457\n" PARSE MAP);
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap),          cmocka_unit_test(test_what_is_known_of_memory),
        cmocka_unit_test(test_an_empty_heap), cmocka_unit_test(test_a_difference),
        cmocka_unit_test(test_growth),        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
