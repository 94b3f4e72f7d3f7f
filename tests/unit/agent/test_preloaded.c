/* The agent preloaded into programs: it sees all their allocations, and changes nothing else about
 * them. */
#include "target.h"

#include <sys/resource.h>

static void start(struct target *target, const char *preload, const char *command, uint32_t wanted,
                  uint64_t rate)
{
    target_start(target, preload, NULL, NULL, command);
    assert_int_equal(target_ready(target), target->pid);
    assert_true(reader_open(&target->reader, target->pid));
    reader_start(&target->reader, wanted, rate);
    target_go(target);
}

static void assert_consistent(const struct target *target)
{
    const struct reader *reader = &target->reader;
    assert_int_equal(reader->unknown, 0);
    assert_int_equal(reader->twice, 0);
    assert_int_equal(reader->header->made_lost, 0);
    assert_int_equal(reader->header->gone_lost, 0);
    assert_int_equal(reader->header->live, reader->live);
}

/* At a rate that samples every object. */
static void assert_exact(struct target *target, struct truth truth)
{
    assert_int_equal(target->reader.live, truth.live);
    assert_int_equal(target->reader.live_bytes, truth.live_bytes);
    assert_consistent(target);
}

static void check_exact(const char *preload, const char *command)
{
    struct target target;
    start(&target, preload, command, AGENT_WANTS_HEAP, EVERY_OBJECT);
    struct truth truth = target_done(&target);
    assert_exact(&target, truth);
    assert_true(target.reader.made >= truth.made);
    target_end(&target);
}

static void count_leftovers(const struct agent_record *record, void *context)
{
    if (record->object_bytes == 1001)
        ++*(unsigned *)context;
}

/* libc keeps what it allocated for a thread, and reuses it for the next one. */
static void check_threads(const char *preload, const char *command, unsigned count)
{
    struct target target;
    unsigned leftovers = 0;
    target_start(&target, preload, NULL, NULL, command);
    target_ready(&target);
    assert_true(reader_open(&target.reader, target.pid));
    target.reader.on_made = count_leftovers;
    target.reader.context = &leftovers;
    reader_start(&target.reader, AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_go(&target);
    struct truth truth = target_done(&target);
    const struct agent_header *header = target.reader.header;
    assert_int_equal(target.reader.unknown, 0);
    assert_int_equal(target.reader.twice, 0);
    assert_int_equal(header->gone_lost, 0);
    assert_int_equal(header->live, target.reader.live);
    assert_true(leftovers <= count && leftovers + header->made_lost >= count);
    assert_in_range(target.reader.live, leftovers, truth.live + count);
    assert_true(target.reader.made + header->made_lost >= truth.made);
    target_end(&target);
}

static void check_functions(const char *preload, const char *allocator)
{
    struct target target;
    start(&target, preload, "allocations functions", AGENT_WANTS_HEAP, EVERY_OBJECT);
    struct truth truth = target_done(&target);
    assert_exact(&target, truth);
    /* An object that could not be made larger is reported once more. */
    assert_int_equal(target.reader.made, truth.made + 1);
    assert_string_equal(target.reader.header->allocator, allocator);
    target_go(&target);
    assert_exact(&target, target_done(&target));
    target_end(&target);
}

static void test_functions(void **state)
{
    (void)state;
    check_functions(AGENT, "libc.so.6");
}

static bool is_installed(const char *path)
{
    return access(path, R_OK) == 0;
}

/* Other allocators, preloaded behind the agent and before it. */
static void test_other_allocators(void **state)
{
    (void)state;
    static const char *const names[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                        "libmimalloc.so.2"};
    unsigned checked = 0;
    for (unsigned i = 0; i < 3; i++) {
        char path[256], preload[1024];
        snprintf(path, sizeof path, "%s/%s", LIBRARIES, names[i]);
        if (!is_installed(path))
            continue;
        checked++;
        snprintf(preload, sizeof preload, "%s:%s", AGENT, path);
        check_functions(preload, names[i]);
        snprintf(preload, sizeof preload, "%s %s", path, AGENT);
        check_functions(preload, names[i]);
    }
    if (!checked)
        skip();
}

/* jemalloc's own function that resizes reports an object that it could not make larger once more,
 * with the size that it has. */
static void test_functions_of_jemalloc(void **state)
{
    (void)state;
    static const char path[] = LIBRARIES "/libjemalloc.so.2";
    char preload[1024];
    if (!is_installed(path))
        skip();
    snprintf(preload, sizeof preload, "%s:%s", AGENT, path);
    check_exact(preload, "allocations jemalloc");
    snprintf(preload, sizeof preload, "%s %s", path, AGENT);
    check_exact(preload, "allocations jemalloc");
}

static void test_calls_of_libc(void **state)
{
    (void)state;
    struct target target;
    start(&target, AGENT, "allocations libc", AGENT_WANTS_HEAP, EVERY_OBJECT);
    assert_exact(&target, target_done(&target));
    /* strdup, asprintf, fopen and its buffer, getline. */
    assert_true(target.reader.made >= 5);
    target_end(&target);
}

/* Objects that a thread frees while it exits, and objects that another thread frees. */
static void test_threads(void **state)
{
    (void)state;
    check_threads(AGENT, "allocations threads 10", 10);
}

static void test_2000_threads(void **state)
{
    (void)state;
    check_threads(AGENT, "allocations threads 2000", 2000);
}

static void test_dlsym_that_allocates(void **state)
{
    (void)state;
    check_threads(GREEDY_DLSYM ":" AGENT, "allocations threads 10", 10);
    check_threads(AGENT ":" GREEDY_DLSYM, "allocations threads 10", 10);
}

/* Threads that free the memory with their pthread_t before the function that creates them returns.
 */
static void test_threads_that_free_their_pthread_t(void **state)
{
    (void)state;
    struct target target;
    target_start(&target, AGENT ":" LATE_CREATE, NULL, NULL, "allocations unmapping-threads");
    target_ready(&target);
    target_go(&target);
    target_done(&target);
    target_end(&target);
    start(&target, AGENT ":" LATE_CREATE, "allocations unmapping-threads", AGENT_WANTS_THREADS,
          EVERY_OBJECT);
    struct truth truth = target_done(&target);
    assert_int_equal(target.reader.threads + target.reader.header->threads_lost, truth.made);
    target_end(&target);
}

/* Signal handlers that interrupt the agent: their allocations are not sampled then, but frees are
 * reported. */
static void test_signal_handlers(void **state)
{
    (void)state;
    struct target target;
    start(&target, AGENT ":" BUMP, "allocations signals", AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_done(&target);
    const struct reader *reader = &target.reader;
    assert_int_equal(reader->unknown, 0);
    assert_int_equal(reader->twice, 0);
    assert_int_equal(reader->header->gone_lost, 0);
    assert_int_equal(reader->live, 0);
    assert_int_equal(reader->header->live, 0);
    assert_true(reader->made > 2000);
    target_end(&target);
}

/* Millions of objects that threads pass to each other, at a rate that samples many of them. */
static void test_stress(void **state)
{
    (void)state;
    struct target target;
    start(&target, AGENT, "allocations stress 500000", AGENT_WANTS_HEAP, 20000);
    target_done(&target);
    const struct reader *reader = &target.reader;
    assert_int_equal(reader->unknown, 0);
    assert_int_equal(reader->twice, 0);
    assert_int_equal(reader->header->gone_lost, 0);
    assert_int_equal(reader->live, 0);
    assert_int_equal(reader->live_bytes, 0);
    assert_int_equal(reader->header->live, 0);
    assert_true(reader->made > 10000);
    target_end(&target);
}

/* An estimate of all allocations from the samples, with the weights that readers use. */
#define SIZES_RATE (128u << 10)

struct estimate {
    double objects, bytes;
};

static double exp_of_negative(double x)
{
    double sum = 1, term = 1;
    for (int n = 1; n < 30; n++) {
        term *= -x / 64 / n;
        sum += term;
    }
    for (int i = 0; i < 6; i++)
        sum *= sum;
    return x > 64 ? 0 : sum;
}

static void add_estimate(const struct agent_record *record, void *context)
{
    struct estimate *estimate = context;
    double bytes = (double)record->object_bytes;
    double weight = 1 / (1 - exp_of_negative(bytes / SIZES_RATE));
    estimate->objects += weight;
    estimate->bytes += weight * bytes;
}

static void test_estimate(void **state)
{
    (void)state;
    struct target target;
    struct estimate estimate = {0};
    target_start(&target, AGENT, NULL, NULL, "allocations sizes");
    target_ready(&target);
    assert_true(reader_open(&target.reader, target.pid));
    target.reader.on_made = add_estimate;
    target.reader.context = &estimate;
    reader_start(&target.reader, AGENT_WANTS_HEAP, SIZES_RATE);
    target_go(&target);
    struct truth truth = target_done(&target);
    /* A lost record is equally likely for every size. */
    double made = (double)target.reader.made;
    double kept = made / (made + (double)target.reader.header->made_lost);
    double bytes = estimate.bytes / kept / (double)truth.made_bytes;
    double objects = estimate.objects / kept / (double)truth.made;
    if (bytes < 0.98 || bytes > 1.02 || objects < 0.9 || objects > 1.1)
        fail_msg("bytes * %f, objects * %f", bytes, objects);
    assert_int_equal(target.reader.unknown, 0);
    target_end(&target);
}

/* The child has a segment of its own; what it frees is not reported to the parent's reader. */
static void test_fork(void **state)
{
    (void)state;
    struct target target;
    struct reader of_parent;
    start(&target, AGENT, "allocations fork", AGENT_WANTS_HEAP, EVERY_OBJECT);
    pid_t child = target_ready(&target);
    assert_int_not_equal(child, target.pid);
    of_parent = target.reader;
    assert_true(reader_open(&target.reader, child));
    assert_int_equal(target.reader.header->wanted, 0);
    assert_int_equal(target.reader.header->live, 0);
    assert_int_equal(target.reader.header->written, 0);
    reader_start(&target.reader, AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_go(&target);
    struct truth truth = target_done(&target);
    assert_int_equal(target.reader.made, truth.made);
    assert_int_equal(target.reader.gone, 0);
    assert_int_equal(target.reader.tid, child);
    assert_exact(&target, truth);
    target_go(&target);
    reader_close(&target.reader);
    target.reader = of_parent;
    truth = target_done(&target);
    assert_exact(&target, truth);
    assert_int_equal(target.reader.made, truth.made);
    assert_int_equal(target.reader.gone, 0);
    target_end(&target);
}

/* Making a file larger than the limit permits would end the program: the agent stays off. */
static void test_a_small_limit_of_files(void **state)
{
    (void)state;
    struct target target;
    struct reader reader;
    struct rlimit before, none;
    check_exact(AGENT, "allocations file-limit");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    target_start(&target, AGENT, NULL, NULL, "allocations rounds 10");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(target_ready(&target), target.pid);
    assert_false(reader_open(&reader, target.pid));
    target_go(&target);
    target_done(&target);
    target_end(&target);
}

static void test_other_children(void **state)
{
    (void)state;
    check_exact(AGENT, "allocations other-children");
}

static void test_mappings(void **state)
{
    (void)state;
    struct target target;
    start(&target, AGENT, "allocations mappings", AGENT_WANTS_MMAP, EVERY_OBJECT);
    assert_exact(&target, target_done(&target));
    target_go(&target);
    assert_exact(&target, target_done(&target));
    target_end(&target);
    /* Mappings are not wanted here. */
    start(&target, AGENT, "allocations mappings", AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_done(&target);
    assert_int_equal(target.reader.made, 0);
    target_end(&target);
}

/* Nobody reads: records without space are counted, and the program goes on. Frees of reported
 * objects are still reported. */
static void test_full_ring(void **state)
{
    (void)state;
    struct target target;
    struct reader reader;
    start(&target, AGENT, "allocations rounds 3000", AGENT_WANTS_HEAP, EVERY_OBJECT);
    reader = target.reader;
    target.reader = (struct reader){0};
    target_done(&target);
    uint64_t lost = reader.header->made_lost;
    assert_in_range(lost, 1, 2999);
    target_go(&target);
    target_done(&target);
    assert_int_equal(reader.header->made_lost, lost + 3000);
    assert_int_equal(reader.header->gone_lost, 0);
    reader_drain(&reader);
    assert_int_equal(reader.made, 3000 - lost);
    assert_int_equal(reader.gone, reader.made);
    assert_int_equal(reader.unknown, 0);
    assert_int_equal(reader.header->live, 0);
    target.reader = reader;
    target_go(&target);
    target_done(&target);
    assert_true(target.reader.live > 0);
    assert_int_equal(target.reader.live + target.reader.header->made_lost, lost + 6000);
    target_end(&target);
}

/* Known objects are forgotten, as are records that the reader did not take. */
static void test_new_epoch(void **state)
{
    (void)state;
    struct target target;
    start(&target, AGENT, "allocations rounds 500", AGENT_WANTS_HEAP, EVERY_OBJECT);
    assert_exact(&target, target_done(&target));
    reader_start(&target.reader, AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_go(&target);
    struct truth truth = target_done(&target);
    /* Frees of the previous epoch are reported until the first sample of this one. */
    assert_int_equal(target.reader.unknown, 500);
    assert_int_equal(target.reader.gone, 500);
    assert_int_equal(target.reader.live, truth.live);
    assert_int_equal(target.reader.header->live, truth.live);
    /* No longer wanted: frees are reported, and nothing else. */
    reader_stop(&target.reader);
    target_go(&target);
    target_done(&target);
    assert_int_equal(target.reader.live, 0);
    assert_int_equal(target.reader.header->live, 0);
    assert_int_equal(target.reader.made, 1000);
    target_end(&target);
}

static void find_size(const struct agent_record *record, void *context)
{
    if (record->object_bytes == 54321)
        *(bool *)context = true;
}

/* Requested by the environment: active from the first allocation on. */
static void check_early(const char *variable, const char *value, uint32_t wanted, uint64_t rate)
{
    struct target target;
    bool was_seen = false;
    target_start(&target, AGENT, variable, value, "allocations early");
    target_ready(&target);
    assert_true(reader_open(&target.reader, target.pid));
    assert_int_equal(target.reader.header->wanted, wanted);
    assert_int_equal(target.reader.header->rate, rate);
    target.reader.on_made = find_size;
    target.reader.context = &was_seen;
    target_go(&target);
    target_done(&target);
    if (rate == 10)
        assert_true(was_seen && target.reader.gone >= 1);
    target_end(&target);
}

static void test_early(void **state)
{
    (void)state;
    check_early("FGPROF_AGENT_HEAP_RATE", "10", AGENT_WANTS_HEAP, 10);
    check_early("FGPROF_AGENT_HEAP_RATE", "10x", 0, AGENT_RATE_DEFAULT);
    check_early("FGPROF_AGENT_WANTED", "6", AGENT_WANTS_MMAP | AGENT_WANTS_THREADS,
                AGENT_RATE_DEFAULT);
}

/* Asserts what is wanted of the process that says that it is ready. */
static void check_wanted(const char *command, const char *children, uint32_t wanted)
{
    struct target target;
    assert_int_equal(setenv("FGPROF_AGENT_CHILDREN", children, 1), 0);
    target_start(&target, AGENT, "FGPROF_AGENT_WANTED", "6", command);
    assert_int_equal(unsetenv("FGPROF_AGENT_CHILDREN"), 0);
    assert_true(reader_open(&target.reader, target_ready(&target)));
    assert_int_equal(target.reader.header->wanted, wanted);
    reader_stop(&target.reader); /* so that it does not wait for a reader when it exits */
    target_end(&target);
}

/* Other programs than the one that the profiler starts may inherit what it asks for: through a
 * program without the agent, or because they are linked with it. Nobody reads them. */
static void test_only_the_program_that_was_started_is_read(void **state)
{
    (void)state;
    char own_id[16];
    snprintf(own_id, sizeof own_id, "%d", (int)getpid());
    assert_int_equal(setenv("FGPROF_AGENT_PARENT", own_id, 1), 0);
    check_wanted("allocations early", "0", 6);
    check_wanted("executes-static execv " FIXTURES "/fixture-allocations early x x", "0", 6);
    check_wanted("executes-static fork execv " FIXTURES "/fixture-allocations early x", "0", 0);
    check_wanted("executes-static fork execv " FIXTURES "/fixture-allocations early x", "1", 6);
    check_wanted("executes fork execv " FIXTURES "/fixture-linked early x", "0", 0);
    assert_int_equal(unsetenv("FGPROF_AGENT_PARENT"), 0);
    check_wanted("executes-static fork execv " FIXTURES "/fixture-allocations early x", "0", 6);
}

static void check_environment(const char *preload, const char *variable, const char *value,
                              const char *expected)
{
    struct target target;
    char line[1024];
    target_start(&target, preload, variable, value, "allocations environment");
    target_line(&target, line, sizeof line);
    assert_string_equal(line, expected);
    target_end(&target);
}

/* Programs that the target starts run without the agent, unless the environment asks for it. */
static void test_environment_of_children(void **state)
{
    (void)state;
    check_environment(AGENT, "OTHER", "x", "preload none other x");
    check_environment(AGENT ":" BUMP, "OTHER", "x", "preload " BUMP " other x");
    check_environment(BUMP " " AGENT, "OTHER", "x", "preload " BUMP " other x");
    check_environment(BUMP ":" AGENT ":" BUMP, "OTHER", "x", "preload " BUMP ":" BUMP " other x");
    check_environment(AGENT, "FGPROF_AGENT_CHILDREN", "0", "preload none other none");
    check_environment(AGENT, "FGPROF_AGENT_CHILDREN", "1", "preload " AGENT " other none");
}

/* The segment is as the reader expects it. */
static void test_segment(void **state)
{
    (void)state;
    struct target target;
    char path[64];
    target_start(&target, AGENT, NULL, NULL, "allocations rounds 20000");
    target_ready(&target);
    assert_true(reader_open(&target.reader, target.pid));
    const struct agent_header *header = target.reader.header;
    assert_int_equal(header->version, AGENT_VERSION);
    assert_int_equal(header->header_bytes, AGENT_HEADER_BYTES);
    assert_int_equal(header->ring_bytes, AGENT_RING_BYTES);
    assert_string_equal(header->release, VERSION);
    assert_true(header->code_start && header->code_limit > header->code_start);
    assert_int_equal(header->wanted, 0);
    assert_int_equal(header->written, 0);
    /* Its size can't be changed, and its descriptor number is higher than programs expect to get.
     */
    snprintf(path, sizeof path, "/proc/%d/fd/960", (int)target.pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    close(fd);
    reader_start(&target.reader, AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_go(&target);
    target_done(&target);
    target_end(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_other_allocators),
        cmocka_unit_test(test_functions_of_jemalloc),
        cmocka_unit_test(test_calls_of_libc),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_2000_threads),
        cmocka_unit_test(test_dlsym_that_allocates),
        cmocka_unit_test(test_threads_that_free_their_pthread_t),
        cmocka_unit_test(test_signal_handlers),
        cmocka_unit_test(test_stress),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_a_small_limit_of_files),
        cmocka_unit_test(test_other_children),
        cmocka_unit_test(test_mappings),
        cmocka_unit_test(test_full_ring),
        cmocka_unit_test(test_new_epoch),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_only_the_program_that_was_started_is_read),
        cmocka_unit_test(test_environment_of_children),
        cmocka_unit_test(test_segment),
    };
    return cmocka_run_group_tests_name("preloaded", tests, NULL, NULL);
}
