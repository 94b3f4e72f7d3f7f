#include "make_profile.h"
#include "base/random.h"
#include "output/dump/dump.h"

/* Two threads that wait for each other's mutexes, and two with equal stacks, one of whose names has
 * a line feed. */
static fgprof_dump *make_dump(void)
{
    fgprof_dump *dump = calloc(1, sizeof *dump);
    assert_non_null(dump);
    dump->profile = make_profile();
    struct fgprof_profile *profile = dump->profile;
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/lib/libc.so.6", "");
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    const struct made_line lock_lines[] = {
        {"futex_wait", "/f.h", 146, true}, {"pthread_mutex_lock", "/m.c", 93, false}, {0}};
    uint32_t lock = make_location(profile, 0x7f0000000111, libc, 0x11, lock_lines);
    uint32_t a = make_function(profile, 0x401010, app, "a", "/src/a.c", 12);
    uint32_t b = make_function(profile, 0x401020, app, "b", "/src/a.c", 22);
    uint32_t unnamed = make_location(profile, 0x401999, app, 0, NULL);
    MAKE_SAMPLE(profile, "A", 11, 1, lock, a);
    MAKE_SAMPLE(profile, "B", 12, 1, lock, b);
    MAKE_SAMPLE(profile, "x\n\"y", 13, 1, unnamed);
    MAKE_SAMPLE(profile, "z", 14, 1, unnamed);
    for (size_t i = 0; i < profile->sample_count; i++) {
        profile->samples[i].state = i < 3 ? THREAD_SLEEPING : THREAD_RUNNING;
        profile->samples[i].syscall_name = make_string(profile, i < 2    ? "futex"
                                                                : i == 2 ? "read"
                                                                         : "");
    }
    struct profile_wait wait = {.kind = make_string(profile, "mutex"),
                                .resource = make_string(profile, "mutex g_lock"),
                                .owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK};
    assert_int_equal(profile_add_wait(profile, &wait, &profile->samples[0].wait_plus_1), 0);
    profile->samples[0].wait_plus_1++;
    for (int i = 0; i < 4; i++) {
        static const enum evidence evidence[] = {EVIDENCE_ASLEEP, EVIDENCE_GONE, EVIDENCE_STOPPED,
                                                 EVIDENCE_SAMPLED};
        struct wait_facts facts = {
            .process_id = 10, .tid = 11 + i, .inner_tid = 1 + i, .evidence = evidence[i]};
        if (i < 2) {
            facts.target =
                (struct call_target){.kind = CALL_FUTEX, .address = 0x1000u * (i + 1u), .value = 2};
            facts.memory.got[0] = (FUTEX_WORDS - FUTEX_WORDS_BEFORE) * sizeof(uint32_t);
            uint32_t *mutex = &facts.memory.words[FUTEX_WORDS_BEFORE];
            mutex[0] = 2;
            mutex[2] = 2 - (uint32_t)i;
            mutex[3] = 1;
        } else if (i == 2) {
            facts.target = (struct call_target){.kind = CALL_FILE, .fd = 5};
            facts.has_fd = true;
            facts.fd = 5;
            facts.file = strdup("/tmp/\x1b[2J\"");
            facts.resource = (struct resource){RESOURCE_FIFO, 0, 99};
            facts.owner_process = 1234;
            strcpy(facts.owner_name, "w\n");
        }
        assert_int_equal(wait_list_add(&dump->waits, &facts), 0);
    }
    make_birth(profile, 11, "app/10", "make_a");
    make_birth(profile, 12, "", "b"); /* as its stack shows, too */
    make_birth(profile, 13, "x\n/10", "");
    make_birth(profile, 14, "", "start");
    assert_int_equal(dump_complete(dump), 0);
    assert_int_equal(fgprof_dump_threads(dump), 4);
    assert_int_equal(fgprof_dump_deadlocks(dump), 1);
    return dump;
}

static void assert_dump(enum fgprof_dump_format format, const char *expected)
{
    fgprof_dump *dump = make_dump();
    int fd = file_of_text("");
    assert_int_equal(fgprof_dump_write(dump, format, fd), 0);
    char *text = contents_of(fd, NULL);
    assert_string_equal(text, expected);
    free(text);
    close(fd);
    fgprof_dump_free(dump);
}

#define LOCK_FRAMES "    futex_wait (/f.h:146, inlined)\n    pthread_mutex_lock (/m.c:93)\n"

static void test_text(void **state)
{
    (void)state;
    assert_dump(FGPROF_DUMP_TEXT,
                "deadlock: 2 threads wait for each other\n"
                "\tthread 11 \"A\" waits for mutex g_lock, held by 12 \"B\"\n"
                "\tthread 12 \"B\" waits for mutex 0x2000, held by 11 \"A\"\n"
                "\n"
                "process 10: 4 threads\n"
                "\n"
                "thread 11 \"A\" [futex, mutex g_lock, owner 12 \"B\"]:\n" LOCK_FRAMES
                "    a (/src/a.c:12)\n"
                "made by app/10 in make_a\n"
                "\n"
                "thread 12 \"B\" [futex, mutex 0x2000, owner 11 \"A\"]:\n" LOCK_FRAMES
                "    b (/src/a.c:22)\n"
                "\n"
                "thread 13 \"x\\x0a\"y\" [read fd 5 /tmp/\\x1b[2J\", other end in process 1234 "
                "\"w\\x0a\", paused]:\n"
                "    [app]\n"
                "made by x\\x0a/10\n"
                "\n"
                "thread 14 \"z\" [running]:\n"
                "    [app]\n"
                "began in start\n"
                "\n");
}

static void test_addresses(void **state)
{
    (void)state;
    fgprof_dump *dump = make_dump();
    int fd = file_of_text("");
    assert_int_equal(fgprof_dump_write(dump, FGPROF_DUMP_ADDRESSES, fd), 0);
    char *text = contents_of(fd, NULL);
    assert_non_null(strstr(text, "thread 11 \"A\" [futex 0x1000, mutex g_lock, owner 12 \"B\"]:\n"
                                 "    0x7f0000000111 futex_wait (/f.h:146, inlined)\n"
                                 "    0x7f0000000111 pthread_mutex_lock+0x11 (/m.c:93)\n"
                                 "    0x401010 a+0x10 (/src/a.c:12)\n"
                                 "made by"));
    assert_non_null(strstr(text, "    0x401999 [app]\n"));
    free(text);
    close(fd);
    fgprof_dump_free(dump);
}

static void test_grouped(void **state)
{
    (void)state;
    assert_dump(
        FGPROF_DUMP_GROUPED,
        "thread profile: total 4\n"
        "# deadlock: 2 threads wait for each other\n"
        "# \tthread 11 \"A\" waits for mutex g_lock, held by 12 \"B\"\n"
        "# \tthread 12 \"B\" waits for mutex 0x2000, held by 11 \"A\"\n"
        "\n"
        "2 @ 0x40199a\n"
        "# thread 13 \"x\\x0a\"y\" [read fd 5 /tmp/\\x1b[2J\", other end in process 1234 "
        "\"w\\x0a\", paused], made by x\\x0a/10\n"
        "# thread 14 \"z\" [running], began in start\n"
        "#\t0x401999\t[app]\n"
        "\n"
        "1 @ 0x7f0000000112 0x401011\n"
        "# thread 11 \"A\" [futex, mutex g_lock, owner 12 \"B\"], made by app/10 in make_a\n"
        "#\t0x7f0000000111\tfutex_wait+0x11\t\t/f.h:146\n"
        "#\t0x7f0000000111\tpthread_mutex_lock+0x11\t/m.c:93\n"
        "#\t0x401010\ta+0x10\t\t\t/src/a.c:12\n"
        "\n"
        "1 @ 0x7f0000000112 0x401021\n"
        "# thread 12 \"B\" [futex, mutex 0x2000, owner 11 \"A\"]\n"
        "#\t0x7f0000000111\tfutex_wait+0x11\t\t/f.h:146\n"
        "#\t0x7f0000000111\tpthread_mutex_lock+0x11\t/m.c:93\n"
        "#\t0x401020\tb+0x20\t\t\t/src/a.c:22\n"
        "\n");
}

#define LOCK_JSON                                                                                  \
    "\"frames\":[{\"address\":\"0x7f0000000111\",\"module\":\"/lib/libc.so.6\","                   \
    "\"function\":\"futex_wait\",\"file\":\"/f.h\",\"line\":146,\"inlined\":true},"                \
    "{\"address\":\"0x7f0000000111\",\"module\":\"/lib/libc.so.6\","                               \
    "\"function\":\"pthread_mutex_lock\",\"file\":\"/m.c\",\"line\":93,\"offset\":17},"

static void test_json(void **state)
{
    (void)state;
    assert_dump(
        FGPROF_DUMP_JSON,
        "{\"threads\":[\n"
        "{\"pid\":10,\"tid\":11,\"name\":\"A\",\"state\":\"sleeping\",\"evidence\":\"asleep\","
        "\"syscall\":\"futex\","
        "\"futex\":\"0x1000\",\"lock\":\"mutex\",\"owner\":12,"
        "\"resource\":\"mutex\",\"resource_name\":\"mutex g_lock\",\"owner_process\":10,"
        "\"deadlock\":1,\"made_by\":\"app/10\",\"made_in\":\"make_a\"," LOCK_JSON
        "{\"address\":\"0x401010\",\"module\":\"/opt/app\",\"function\":\"a\","
        "\"file\":\"/src/a.c\",\"line\":12,\"offset\":16}]},\n"
        "{\"pid\":10,\"tid\":12,\"name\":\"B\",\"state\":\"sleeping\",\"syscall\":\"futex\","
        "\"futex\":\"0x2000\",\"lock\":\"mutex\",\"owner\":11,"
        "\"resource\":\"mutex\",\"resource_name\":\"mutex 0x2000\",\"owner_process\":10,"
        "\"deadlock\":1,\"began_in\":\"b\"," LOCK_JSON
        "{\"address\":\"0x401020\",\"module\":\"/opt/app\",\"function\":\"b\","
        "\"file\":\"/src/a.c\",\"line\":22,\"offset\":32}]},\n"
        "{\"pid\":10,\"tid\":13,\"name\":\"x\\\\x0a\\\"y\",\"state\":\"sleeping\","
        "\"evidence\":\"stopped\",\"syscall\":\"read\",\"fd\":5,\"file\":\"/tmp/\\\\x1b[2J\\\"\","
        "\"resource\":\"FIFO\",\"resource_name\":\"FIFO /tmp/\\\\x1b[2J\\\"\","
        "\"owner_process\":1234,\"owner_process_name\":\"w\\\\x0a\",\"made_by\":\"x\\\\x0a/10\","
        "\"frames\":[{\"address\":\"0x401999\",\"module\":\"/opt/app\"}]},\n"
        "{\"pid\":10,\"tid\":14,\"name\":\"z\",\"state\":\"running\",\"evidence\":\"sampled\","
        "\"began_in\":\"start\","
        "\"frames\":[{\"address\":\"0x401999\",\"module\":\"/opt/app\"}]}],\n"
        "\"deadlocks\":[[11,12]]}\n");
}

/* The memory at a lock's address may have any contents: they never produce a false owner or
 * deadlock. */
static void test_hostile_words(void **state)
{
    (void)state;
    fgprof_dump *dump = make_dump();
    for (unsigned round = 0; round < 5000; round++) {
        for (size_t i = 0; i < 2; i++) {
            struct wait_facts *facts = &dump->waits.items[i];
            facts->target.is_pi = round % 2; /* then only the word names the owner */
            for (size_t j = 0; j < FUTEX_WORDS; j++)
                facts->memory.words[j] = round < 2   ? 0
                                         : round < 4 ? UINT32_MAX
                                                     : (uint32_t)random_number(round, j + 100 * i);
        }
        free(dump->threads);
        free(dump->tasks);
        free(dump->waiters);
        dump->threads = NULL;
        dump->tasks = NULL;
        dump->waiters = NULL;
        dump->thread_count = dump->task_count = dump->waiter_count = 0;
        assert_int_equal(dump_complete(dump), 0);
        for (size_t i = 0; i < 2; i++) {
            assert_true(dump->threads[i].owner == DUMP_NOBODY);
            assert_int_equal(dump->threads[i].owner_process, 0);
        }
        assert_int_equal(fgprof_dump_deadlocks(dump), 0);
    }
    fgprof_dump_free(dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),          cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_grouped),       cmocka_unit_test(test_json),
        cmocka_unit_test(test_hostile_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
