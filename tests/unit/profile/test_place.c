#include "make_profile.h"
#include "profile/place.h"

#include <errno.h>

struct made_frames {
    uint32_t main, start, wait, guard, cxx_wait, poll;
};

static void make_frames(struct fgprof_profile *profile, struct made_frames *made)
{
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    uint32_t libc = make_mapping(profile, 0x10000000, "/lib/x86_64-linux-gnu/libc.so.6", "");
    uint32_t cxx = make_mapping(profile, 0x20000000, "/usr/lib/libstdc++.so.6.0.30", "");
    /* The lock is taken in inlined code. */
    struct made_line inlined[] = {
        {"std::lock_guard<std::mutex>::lock_guard", "", 0, true}, {"audit", "", 0, false}, {0}};
    struct made_line wrapper[] = {{"std::unique_lock<std::mutex>::lock", "", 0, false}, {0}};
    *made = (struct made_frames){
        .main = make_location(profile, 0x401000, app, 0, inlined),
        .guard = make_location(profile, 0x402000, app, 0, wrapper),
        .start = make_function(profile, 0x10001000, libc, "start_thread", "", 0),
        .wait = make_function(profile, 0x10002000, libc, "pthread_mutex_lock", "", 0),
        .cxx_wait = make_function(profile, 0x20001000, cxx, "std::condition_variable::wait", "", 0),
    };
    assert_int_equal(profile_add_kernel_function(profile, "futex_wait", &made->poll), 0);
}

/* Checks the place of the stack with these locations, and how many frames are closer to the leaf.
 */
static void assert_place(struct fgprof_profile *profile, const uint32_t *locations, size_t depth,
                         const char *expected, size_t nearer)
{
    struct places places;
    struct profile_frame frame;
    uint32_t stack;
    assert_int_equal(profile_add_stack(profile, locations, depth, &stack), 0);
    assert_int_equal(places_init(&places, profile), 0);
    for (int i = 0; i < 2; i++) { /* cached the second time */
        assert_int_equal(place_of_stack(&places, &profile->stacks[stack], &frame), nearer);
        if (nearer != PLACE_NONE)
            assert_string_equal(
                strings_get(&profile->strings, profile->functions[frame.line->function].name),
                expected);
    }
    places_free(&places);
}

#define ASSERT_PLACE(profile, expected, nearer, ...)                                               \
    assert_place(profile, (const uint32_t[]){__VA_ARGS__},                                         \
                 sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), expected, nearer)

static void test_places(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct made_frames f;
    make_frames(profile, &f);
    ASSERT_PLACE(profile, "audit", 2, f.wait, f.main, f.start);
    ASSERT_PLACE(profile, "audit", 4, f.poll, f.wait, f.guard, f.main, f.start);
    ASSERT_PLACE(profile, "audit", 2, f.cxx_wait, f.main);
    ASSERT_PLACE(profile, "pthread_mutex_lock", 0, f.wait, f.start); /* no better place */
    assert_place(profile, NULL, 0, NULL, PLACE_NONE);
    fgprof_profile_free(profile);
}

static void test_places_in_go(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    uint32_t park = make_function(profile, 0x401000, app, "runtime.gopark", "", 0);
    uint32_t lock = make_function(profile, 0x402000, app, "sync.(*Mutex).lockSlow", "", 0);
    uint32_t wait = make_function(profile, 0x403000, app, "internal/poll.(*FD).Read", "", 0);
    uint32_t main = make_function(profile, 0x404000, app, "runtime.main", "", 0);
    uint32_t collect = make_function(profile, 0x405000, app, "runtime.gcBgMarkWorker", "", 0);
    /* An inlined library method has the address of its caller. */
    struct made_line inlined[] = {
        {"sync.(*Mutex).Lock", "", 0, true}, {"main.serve", "", 0, false}, {0}};
    uint32_t serve = make_location(profile, 0x406000, app, 0, inlined);
    ASSERT_PLACE(profile, "main.serve", 3, park, lock, serve, main);
    uint32_t sync = make_function(profile, 0x407000, app, "sync.Pools", "", 0);
    ASSERT_PLACE(profile, "sync.Pools", 2, park, wait, sync, main);
    ASSERT_PLACE(profile, "runtime.gopark", 0, park, collect); /* no better place */
    assert_false(place_is_in_library(profile, &profile->locations[main], PLACE_GO_RUNTIME));
    fgprof_profile_free(profile);
}

static void test_a_file_without_a_name(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct made_frames f;
    make_frames(profile, &f);
    uint32_t unknown;
    bool is_new;
    assert_int_equal(profile_add_location(profile, 0x99, PROFILE_NO_MAPPING, &unknown, &is_new), 0);
    struct places places;
    struct profile_frame frame;
    uint32_t stack, locations[] = {f.wait, unknown, f.main};
    assert_int_equal(profile_add_stack(profile, locations, 3, &stack), 0);
    assert_int_equal(places_init(&places, profile), 0);
    assert_int_equal(place_of_stack(&places, &profile->stacks[stack], &frame), 1);
    assert_null(frame.line);
    places_free(&places);
    fgprof_profile_free(profile);
}

static void test_roles(void **state)
{
    (void)state;
    static const char *const locks[] = {"pthread_mutex_lock", "LockAcquireExtended",
                                        "LWLockAcquire", "absl::Mutex::LockSlow"};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        assert_int_equal(place_roles(locks[i]), LABEL_LOCK);
    assert_int_equal(place_roles("LockRelationOid"), 0);
    assert_int_equal(place_roles("WaitEventSetWait"), 0);
    assert_int_equal(place_roles("start_thread"), LABEL_START);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_places_in_go),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_a_file_without_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
