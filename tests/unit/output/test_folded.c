#include "make_objects.h"

#include <errno.h>
#include <stdio.h>

static int set_up(void **state)
{
    *state = make_profile();
    return 0;
}

static int tear_down(void **state)
{
    fgprof_profile_free(*state);
    return 0;
}

static void assert_folded(const struct fgprof_profile *profile, const char *expected)
{
    assert_written(profile, FGPROF_FOLDED, expected);
}

static uint32_t function(struct fgprof_profile *profile, uint64_t address, const char *name)
{
    return make_function(profile, address, PROFILE_NO_MAPPING, name, "", 0);
}

static void test_root_comes_first(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "read");
    uint32_t caller = function(profile, 2, "serve");
    uint32_t root = function(profile, 3, "main");
    MAKE_SAMPLE(profile, "app", 0, 42, leaf, caller, root);
    assert_folded(profile, "main;serve;read 42\n");
}

static void test_lines_are_sorted_bytewise(void **state)
{
    struct fgprof_profile *profile = *state;
    static const char *const names[] = {"b", "a", "B", "_", "\xc3\xa4", "aa", "a b", "a.b", "a:b"};
    uint32_t root = function(profile, 1, "main");
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t leaf = function(profile, 10 + i, names[i]);
        MAKE_SAMPLE(profile, "app", 0, i + 1, leaf, root);
    }
    MAKE_SAMPLE(profile, "app", 0, 99, root);
    assert_folded(profile, "main 99\n"
                           "main;B 3\n"
                           "main;_ 4\n"
                           "main;a 2\n"
                           "main;a b 7\n"
                           "main;a.b 8\n"
                           "main;a:b 9\n"
                           "main;aa 6\n"
                           "main;b 1\n"
                           "main;\xc3\xa4 5\n");
}

static void test_equal_lines_are_one(void **state)
{
    struct fgprof_profile *profile = *state;
    /* Different addresses and threads, but the same names. */
    uint32_t first = function(profile, 1, "work");
    uint32_t second = function(profile, 2, "work");
    MAKE_SAMPLE(profile, "a", 0, 1, first);
    MAKE_SAMPLE(profile, "b", 0, 20, first);
    MAKE_SAMPLE(profile, "a", 0, 300, second);
    assert_folded(profile, "work 321\n");
}

static struct fgprof_profile *with_samples(const char *name, uint32_t count)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t both = function(profile, 1, "both"), own = function(profile, 2, name);
    MAKE_SAMPLE(profile, "app", 0, count, both);
    MAKE_SAMPLE(profile, "app", 0, 2 * count, own);
    return profile;
}

/* A stack that only one profile has counts as 0 in the other. */
static void test_a_difference(void **state)
{
    struct fgprof_profile *before = with_samples("a", 3), *after = with_samples("c", 30);
    (void)state;
    for (int is_normalized = 0; is_normalized < 2; is_normalized++) {
        int fd = file_of_text("");
        assert_int_equal(
            fgprof_profile_write_difference(before, after, FGPROF_FOLDED, is_normalized, fd), 0);
        char *text = contents_of(fd, NULL);
        assert_string_equal(text, is_normalized ? "a 60 0\nboth 30 30\nc 0 60\n"
                                                : "a 6 0\nboth 3 30\nc 0 60\n");
        free(text);
        close(fd);
    }
    fgprof_profile_free(before);
    fgprof_profile_free(after);
}

static void test_separators_in_names_are_replaced(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "[a; b];");
    uint32_t root = function(profile, 2, "line\nfeed");
    MAKE_SAMPLE(profile, "app", 0, 1, leaf, root);
    assert_folded(profile, "line\\x0afeed;[a: b]: 1\n");
}

static void test_inlined_calls_are_marked_and_outermost_first(void **state)
{
    struct fgprof_profile *profile = *state;
    struct made_line lines[] = {{"deepest", "in.h", 3, true},
                                {"middle", "in.h", 9, true},
                                {"outer", "a.c", 40, false},
                                {0}};
    uint32_t leaf = make_location(profile, 1, PROFILE_NO_MAPPING, 0, lines);
    uint32_t root = function(profile, 2, "main");
    MAKE_SAMPLE(profile, "app", 0, 5, leaf, root);
    assert_folded(profile, "main;outer;middle_[i];deepest_[i] 5\n");
}

static void test_generated_code_is_marked(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t function_number, leaf, root = function(profile, 2, "main");
    bool is_new;
    assert_int_equal(profile_add_function(profile, "handle /srv/app.js:10:3", "", "/srv/app.js",
                                          &function_number),
                     0);
    struct profile_line line = {.function = function_number, .line = 12};
    assert_int_equal(
        profile_add_jit_location(profile, 1, PROFILE_NO_MAPPING, function_number, &leaf, &is_new),
        0);
    assert_int_equal(profile_set_lines(profile, leaf, &line, 1), 0);
    MAKE_SAMPLE(profile, "app", 0, 5, leaf, root);
    assert_folded(profile, "main;handle /srv/app.js:10:3_[j] 5\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_LINES), 0);
    assert_folded(profile, "main;handle /srv/app.js:10:3 (app.js:12)_[j] 5\n");
}

static void test_frames_without_a_name(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t library = make_mapping(profile, 0x1000000, "/usr/lib/x;y/libc.so.6", "");
    uint32_t semicolon = make_mapping(profile, 0x2000000, "/opt/a;b", "");
    uint32_t vdso = make_mapping(profile, 0x3000000, "[vdso]", "");
    uint32_t vsyscall = make_mapping(profile, 0xffffffffff600000, "[vsyscall]", "");
    uint32_t anonymous = make_mapping(profile, 0x4000000, "", "");
    uint32_t in_library = make_location(profile, 0x1000010, library, 0, NULL);
    uint32_t in_semicolon = make_location(profile, 0x2000010, semicolon, 0, NULL);
    uint32_t in_vdso = make_location(profile, 0x3000010, vdso, 0, NULL);
    uint32_t in_vsyscall = make_location(profile, 0xffffffffff600400, vsyscall, 0, NULL);
    uint32_t in_anonymous = make_location(profile, 0x4000010, anonymous, 0, NULL);
    uint32_t nowhere = make_location(profile, 0x99, PROFILE_NO_MAPPING, 0, NULL);
    MAKE_SAMPLE(profile, "app", 0, 1, in_vdso, in_semicolon, in_library);
    MAKE_SAMPLE(profile, "app", 0, 2, nowhere, in_anonymous);
    MAKE_SAMPLE(profile, "app", 0, 3, in_vsyscall, in_library);
    assert_folded(profile, "[libc.so.6];[a:b];[vdso] 1\n"
                           "[libc.so.6];[vsyscall] 3\n"
                           "[unknown];[unknown] 2\n");
    /* A frame that the file has no address for gets no offset either. */
    profile->mappings[library].has_bias = profile->mappings[vdso].has_bias = true;
    profile->mappings[library].bias = 0xff0000;
    profile->mappings[vdso].bias = 0x3000000;
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_LINES), 0);
    assert_folded(profile, "[unknown];[unknown] 2\n"
                           "libc.so.6+0x10010;[a:b];[vdso]+0x10 1\n"
                           "libc.so.6+0x10010;[vsyscall] 3\n");
}

static void test_a_sample_without_frames_still_counts(void **state)
{
    struct fgprof_profile *profile = *state;
    make_sample(profile, NULL, 0, "app", 0, 3);
    assert_folded(profile, "[unknown] 3\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_folded(profile, "app;[unknown] 3\n");
}

/* flamegraph.pl takes a number before the count as that of another profile, not as part of the
 * frame: a second "\s+?(\d+(?:\.\d*)?)$". */
static bool ends_like_a_count(const char *stack)
{
    size_t end = strlen(stack), at = end;
    while (at > 0 && strchr("0123456789.", stack[at - 1]))
        at--;
    return at < end && at > 0 && stack[at] != '.' && strchr(" \t", stack[at - 1]);
}

static void test_no_stack_ends_like_a_count(void **state)
{
    struct fgprof_profile *profile = *state;
    static const char *const names[] = {"step 12", "step 1.5", "step 7.", " 3"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t leaf = function(profile, i + 1, names[i]);
        MAKE_SAMPLE(profile, "app", 0, 1, leaf);
    }
    char *text = written(profile, FGPROF_FOLDED, NULL), *line = text, *end;
    size_t lines = 0;
    for (; (end = strchr(line, '\n')); line = end + 1, lines++) {
        *end = '\0';
        char *count = strrchr(line, ' ');
        assert_non_null(count);
        assert_string_equal(count, " 1");
        *count = '\0';
        if (ends_like_a_count(line))
            fail_msg("\"%s\" ends like a count", line);
    }
    assert_int_equal(lines, 4);
    free(text);
}

static void test_notes_are_frames(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t note;
    uint32_t leaf = function(profile, 1, "leaf");
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &note), 0);
    MAKE_SAMPLE(profile, "app", 0, 3, leaf, note);
    assert_folded(profile, "[truncated: max depth];leaf 3\n");
}

static void test_thread_root_by_name(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "main");
    MAKE_SAMPLE(profile, "io;1", 0, 1, leaf);
    MAKE_SAMPLE(profile, "", 0, 2, leaf);
    MAKE_SAMPLE(profile, "bad\x1b[2J", 0, 4, leaf);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_folded(profile, "[unnamed];main 2\n"
                           "bad\\x1b[2J;main 4\n"
                           "io:1;main 1\n");
    /* Without the flag, threads are not told apart. */
    assert_int_equal(fgprof_profile_set_folded_flags(profile, 0), 0);
    assert_folded(profile, "main 7\n");
}

static void test_thread_root_by_id(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "main");
    MAKE_SAMPLE(profile, "worker", 4294967295u, 1, leaf);
    MAKE_SAMPLE(profile, "worker", 102, 2, leaf);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_folded(profile, "worker/102;main 2\n"
                           "worker/4294967295;main 1\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, 0), 0);
    assert_folded(profile, "main 3\n");
}

static void test_a_goroutine_with_the_id_of_a_thread(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "main");
    MAKE_SAMPLE(profile, "server", 7, 1, leaf);
    struct profile_sample parked = profile->samples[0];
    parked.is_goroutine = true;
    parked.count = 2;
    assert_int_equal(profile_add_sample(profile, &parked, NULL), 0);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_folded(profile, "server/7;main 1\n"
                           "server/goroutine 7;main 2\n");
    /* By name they are not told apart. */
    profile->threads = FGPROF_THREADS_BY_NAME;
    assert_folded(profile, "server;main 3\n");
}

static void test_lines(void **state)
{
    struct fgprof_profile *profile = *state;
    struct made_line lines[] = {
        {"inner", "include/in;line.h", 3, true}, {"outer", "/src/a b.c", 40, false}, {0}};
    uint32_t leaf = make_location(profile, 1, PROFILE_NO_MAPPING, 0, lines);
    uint32_t root = function(profile, 2, "main");
    uint32_t other = make_function(profile, 3, PROFILE_NO_MAPPING, "other", "plain.c", 7);
    MAKE_SAMPLE(profile, "app", 0, 5, leaf, root);
    MAKE_SAMPLE(profile, "app", 0, 6, other, root);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_LINES), 0);
    assert_folded(profile, "main;other (plain.c:7) 6\n"
                           "main;outer (a b.c:40);inner (in:line.h:3)_[i] 5\n");
    assert_int_equal(
        fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_LINES | FGPROF_FOLDED_THREADS), 0);
    assert_folded(profile, "app;main;other (plain.c:7) 6\n"
                           "app;main;outer (a b.c:40);inner (in:line.h:3)_[i] 5\n");
}

/* The name of the lock that a thread waits for says more than its call. Addresses are left out,
 * because they change with each run. */
static void test_state_leaf_of_waits(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "f");
    make_state(profile, leaf, THREAD_SLEEPING, "futex", "", 1);
    make_wait(profile, leaf, NULL, 2);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_STATE), 0);
    assert_folded(profile, "f;[futex] 1\nf;[mutex g_lock] 2\n");
    profile->waits[0].resource = make_string(profile, "mutex a;b");
    assert_folded(profile, "f;[futex] 1\nf;[mutex a:b] 2\n");
    profile->waits[0].resource = make_string(profile, "mutex 0x55d0c0");
    assert_folded(profile, "f;[futex] 1\nf;[mutex] 2\n");
    profile->waits[0].resource = make_string(profile, "mutex in net::Connection 0x55d0c0");
    assert_folded(profile, "f;[futex] 1\nf;[mutex in net::Connection] 2\n");
    /* Resources other than locks are not named. */
    profile->waits[0].resource = make_string(profile, "tcp 127.0.0.1:55521 listening");
    profile->samples[1].syscall_name = make_string(profile, "accept");
    assert_folded(profile, "f;[accept] 2\nf;[futex] 1\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, 0), 0);
    assert_folded(profile, "f 3\n");
}

static void test_state_leaf(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "f");
    make_state(profile, leaf, THREAD_UNKNOWN, "", "", 1);
    make_state(profile, leaf, THREAD_RUNNING, "", "", 2);
    make_state(profile, leaf, THREAD_RUNNABLE, "", "", 4);
    make_state(profile, leaf, THREAD_STOPPED, "", "", 8);
    make_state(profile, leaf, THREAD_SLEEPING, "futex", "", 16);
    make_state(profile, leaf, THREAD_SLEEPING, "syscall_999", "", 32);
    make_state(profile, leaf, THREAD_SLEEPING, "", "", 64);
    make_state(profile, leaf, THREAD_UNINTERRUPTIBLE, "vfork", "kernel_clone", 128);
    make_state(profile, leaf, THREAD_UNINTERRUPTIBLE, "vfork", "", 256);
    make_state(profile, leaf, THREAD_UNINTERRUPTIBLE, "", "", 512);
    make_state(profile, leaf, THREAD_UNINTERRUPTIBLE, "", "odd;name\n", 1024);
    assert_folded(profile, "f 2047\n");
    /* Less than a tick: no line. */
    make_state(profile, make_function(profile, 2, PROFILE_NO_MAPPING, "g", "", 0), THREAD_RUNNING,
               "", "", 0);
    assert_folded(profile, "f 2047\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_STATE), 0);
    assert_folded(profile, "f;[futex] 16\n"
                           "f;[runnable] 4\n"
                           "f;[running] 2\n"
                           "f;[sleeping] 64\n"
                           "f;[stopped] 8\n"
                           "f;[syscall_999] 32\n"
                           "f;[uninterruptible: kernel_clone] 128\n"
                           "f;[uninterruptible: odd:name\\x0a] 1024\n"
                           "f;[uninterruptible: vfork] 256\n"
                           "f;[uninterruptible] 512\n"
                           "f;[unknown] 1\n");
}

static void test_state_leaf_with_the_other_flags(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "step 12", "a.c", 7);
    make_state(profile, leaf, THREAD_SLEEPING, "read", "", 3);
    make_sample(profile, NULL, 0, "app", 0, 5);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_STATE |
                                                                  FGPROF_FOLDED_LINES |
                                                                  FGPROF_FOLDED_THREADS),
                     0);
    assert_folded(profile, "app;[unknown];[unknown] 5\n"
                           "app;step 12 (a.c:7);[read] 3\n");
}

static void test_only_what_is_kept_is_written(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "f");
    static const enum thread_state off_cpu[] = {THREAD_UNKNOWN, THREAD_RUNNABLE, THREAD_SLEEPING,
                                                THREAD_UNINTERRUPTIBLE, THREAD_STOPPED};
    make_state(profile, leaf, THREAD_RUNNING, "", "", 100);
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_OFF_CPU), 0);
    assert_folded(profile, "");
    for (size_t i = 0; i < sizeof off_cpu / sizeof *off_cpu; i++)
        make_state(profile, leaf, off_cpu[i], "", "", 1);
    assert_folded(profile, "f 5\n");
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    assert_folded(profile, "f 100\n");
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ALL), 0);
    assert_folded(profile, "f 105\n");
}

static void test_nothing_sampled(void **state)
{
    assert_folded(*state, "");
}

static void test_counts_are_64_bits_wide(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = function(profile, 1, "main");
    MAKE_SAMPLE(profile, "app", 0, UINT64_MAX, leaf);
    assert_folded(profile, "main 18446744073709551615\n");
}

static void test_many_samples(void **state)
{
    struct fgprof_profile *profile = *state;
    char name[32];
    for (uint32_t i = 5000; i-- > 0;) {
        snprintf(name, sizeof name, "f%05u", i);
        uint32_t leaf = function(profile, i + 1, name);
        MAKE_SAMPLE(profile, "app", 0, i + 1, leaf);
    }
    char *text = written(profile, FGPROF_FOLDED, NULL), *at = text;
    for (uint32_t i = 0; i < 5000; i++) {
        char expected[48];
        int length = snprintf(expected, sizeof expected, "f%05u %u\n", i, i + 1);
        assert_memory_equal(at, expected, (size_t)length);
        at += length;
    }
    assert_int_equal(*at, '\0');
    free(text);
}

static void test_processes(void **state)
{
    struct fgprof_profile *profile = *state;
    make_two_processes(profile, function(profile, 1, "main"));
    assert_int_equal(profile->sample_count, 2);
    assert_folded(profile, "main 5\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_PROCESSES), 0);
    assert_folded(profile, "a:b c/71;main 3\nmake/70;main 2\n");
    assert_int_equal(
        fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_PROCESSES | FGPROF_FOLDED_THREADS),
        0);
    assert_folded(profile, "a:b c/71;app;main 3\nmake/70;app;main 2\n");
}

/* Written in ticks of elapsed time; the sum is rounded, not each line. Idle time belongs to no
 * thread and no state. */
static void test_elapsed_time(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t process;
    char *text;
    profile->period_ns = 4000000;
    assert_int_equal(profile_add_process(profile, 7, "make", &process), 0);
    MAKE_SAMPLE(profile, "app", 0, 100, function(profile, 1, "a"));
    MAKE_SAMPLE(profile, "app", 0, 1, function(profile, 2, "b"));
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_ELAPSED), 0);
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_write(profile, FGPROF_FOLDED, fd), -ENODATA);
    text = contents_of(fd, NULL);
    assert_string_equal(text, "");
    free(text);
    close(fd);
    make_elapsed(profile);
    assert_folded(profile, "[idle] 5\na 3\nb 2\n");
    assert_int_equal(
        fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_ELAPSED | FGPROF_FOLDED_PROCESSES |
                                                     FGPROF_FOLDED_THREADS | FGPROF_FOLDED_STATE),
        0);
    assert_folded(profile, "make/7;[idle] 5\nmake/7;app;a;[unknown] 3\nmake/7;app;b;[unknown] 2\n");
    profile->period_ns = 25000000;
    assert_folded(profile, "make/7;[idle] 1\nmake/7;app;b;[unknown] 1\n");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, 0), 0);
    assert_folded(profile, "a 100\nb 1\n");
}

#define WITH_PROFILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void test_functions_of_the_kernel(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t wait, entry, again;
    uint32_t leaf = function(profile, 0, "read");
    assert_int_equal(profile_add_kernel_function(profile, "pipe_read", &wait), 0);
    assert_int_equal(profile_add_kernel_function(profile, "entry", &entry), 0);
    assert_int_equal(profile_add_kernel_function(profile, "pipe_read", &again), 0);
    assert_int_equal(wait, again);
    MAKE_SAMPLE(profile, "app", 0, 5, wait, entry, leaf);
    assert_folded(profile, "read;entry_[k];pipe_read_[k] 5\n");
    assert_int_equal(
        fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_STATE | FGPROF_FOLDED_LINES), 0);
    assert_folded(profile, "read;entry_[k];pipe_read_[k];[unknown] 5\n");
}

static void test_labels_are_roots_if_asked_for(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t main_function = function(profile, 1, "main");
    MAKE_SAMPLE(profile, "a", 0, 1, main_function);
    MAKE_SAMPLE(profile, "b", 0, 20, main_function);
    MAKE_SAMPLE(profile, "c", 0, 300, main_function);
    MAKE_LABELS(profile, 0, "route", "/a;b", "tenant", "one\n");
    MAKE_LABELS(profile, 1, "tenant", "two 2");
    assert_folded(profile, "main 321\n");
    assert_int_equal(fgprof_profile_add_root_label(profile, ""), -EINVAL);
    assert_int_equal(fgprof_profile_add_root_label(profile, "tenant"), 0);
    assert_folded(profile, "main 300\n"
                           "one\\x0a;main 1\n"
                           "two 2;main 20\n");
    assert_int_equal(fgprof_profile_add_root_label(profile, "route"), 0);
    assert_int_equal(fgprof_profile_add_root_label(profile, "none"), 0);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_folded(profile, "c;main 300\n"
                           "one\\x0a;/a:b;a;main 1\n"
                           "two 2;b;main 20\n");
}

/* Allocations and pages count their bytes, all other objects their number. */
static void test_objects(void **state)
{
    (void)state;
    struct fgprof_profile *profiles[] = {make_heap(), make_heap(), make_growth(), make_threads(),
                                         make_custom("sockets")};
    static const char *const expected[] = {
        "main;fill_cache 1579016\nmain;parse 31472763\n",
        "main;fill_cache 11280589\nmain;parse 52454604\n",
        "main;fill_cache 2097152\nmain;parse 2048000\n",
        "log/23;main;fill_cache 1\npool/21;main;parse 1\npool/22;main;parse 1\n",
        "main;parse 5\n",
    };
    assert_int_equal(fgprof_profile_set_kind(profiles[1], FGPROF_KIND_ALLOCS), 0);
    for (size_t i = 0; i < 5; i++) {
        /* They have no state, and not all have a thread. */
        unsigned flags = FGPROF_FOLDED_THREADS | FGPROF_FOLDED_STATE;
        assert_int_equal(fgprof_profile_set_folded_flags(profiles[i], flags), 0);
        assert_written(profiles[i], FGPROF_FOLDED, expected[i]);
        fgprof_profile_free(profiles[i]);
    }
}

/* The sizes of one stack are added up first. */
static void test_less_than_nothing_is_left_out(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    MAKE_OBJECTS(profile, 10, 0, 2, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 25, 1, 0, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 10, 0, 2, MADE_CACHE, MADE_MAIN);
    assert_written(profile, FGPROF_FOLDED, "main;parse 5\n");
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PROFILE(test_processes),
        WITH_PROFILE(test_elapsed_time),
        WITH_PROFILE(test_labels_are_roots_if_asked_for),
        WITH_PROFILE(test_root_comes_first),
        WITH_PROFILE(test_lines_are_sorted_bytewise),
        WITH_PROFILE(test_equal_lines_are_one),
        cmocka_unit_test(test_a_difference),
        WITH_PROFILE(test_separators_in_names_are_replaced),
        WITH_PROFILE(test_inlined_calls_are_marked_and_outermost_first),
        WITH_PROFILE(test_generated_code_is_marked),
        WITH_PROFILE(test_frames_without_a_name),
        WITH_PROFILE(test_a_sample_without_frames_still_counts),
        WITH_PROFILE(test_no_stack_ends_like_a_count),
        WITH_PROFILE(test_notes_are_frames),
        WITH_PROFILE(test_thread_root_by_name),
        WITH_PROFILE(test_thread_root_by_id),
        WITH_PROFILE(test_a_goroutine_with_the_id_of_a_thread),
        WITH_PROFILE(test_lines),
        WITH_PROFILE(test_state_leaf),
        WITH_PROFILE(test_state_leaf_of_waits),
        WITH_PROFILE(test_state_leaf_with_the_other_flags),
        WITH_PROFILE(test_only_what_is_kept_is_written),
        WITH_PROFILE(test_nothing_sampled),
        WITH_PROFILE(test_counts_are_64_bits_wide),
        WITH_PROFILE(test_many_samples),
        WITH_PROFILE(test_functions_of_the_kernel),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_less_than_nothing_is_left_out),
    };
    return cmocka_run_group_tests_name("output_folded", tests, NULL, NULL);
}
