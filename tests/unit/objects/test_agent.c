/* An agent that the test plays: valid reports are passed on, and invalid ones do no harm. */
#include "unit.h"
#include "make_agent.h"
#include "proc/maps.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#define RING_BYTES 4096u
#define HEAD_BYTES (sizeof(struct agent_record))
#define REGISTER_BYTES (AGENT_REGISTER_COUNT * sizeof(uint64_t))
#define STACK_BYTES 64u
#define RATE 1000u

struct world {
    struct segment segment;
    struct program program;
    struct object_options options;
    struct snapshot_pool *snapshots;
    struct object_source *source; /* NULL: not open */
    struct object_news news;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->segment = segment_make(RING_BYTES, F_SEAL_SHRINK);
    world->program = own_program();
    world->options.kinds[OBJECT_ALLOCATION] = true;
    world->options.heap_rate = RATE;
    assert_int_equal(snapshot_pool_new(&world->snapshots), 0);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    if (world->source)
        world->source->free(world->source);
    snapshot_pool_free(world->snapshots);
    own_program_close(&world->program);
    segment_free(&world->segment);
    free(world);
    return 0;
}

static int try_to_open(struct world *world)
{
    return agent_source_new(&world->program, &world->options, &world->source);
}

static void open_source(struct world *world)
{
    assert_int_equal(try_to_open(world), 0);
}

/* Appends an incomplete record. */
static struct agent_record *append(struct world *world, unsigned kind, size_t bytes)
{
    struct agent_header *header = world->segment.header;
    uint64_t position = atomic_load(&header->written);
    struct agent_record *record = segment_record(&world->segment, position);
    memset(record, 0, bytes < HEAD_BYTES ? bytes : HEAD_BYTES);
    record->bytes = (uint32_t)bytes;
    record->kind = (uint16_t)kind;
    atomic_store(&header->written, position + bytes);
    return record;
}

static void complete(struct world *world, struct agent_record *record)
{
    const char *ring = (const char *)world->segment.header + AGENT_HEADER_BYTES;
    uint64_t written = atomic_load(&world->segment.header->written);
    uint64_t position = (written & ~(uint64_t)(RING_BYTES - 1)) + (uint64_t)((char *)record - ring);
    atomic_store(&record->committed, (position < written ? position : position - RING_BYTES) + 1);
}

static struct agent_record *append_allocation(struct world *world, uint64_t object, uint64_t bytes)
{
    struct agent_record *record =
        append(world, AGENT_ALLOCATED, HEAD_BYTES + REGISTER_BYTES + STACK_BYTES);
    record->object = object;
    record->object_bytes = bytes;
    record->tid = 77;
    record->at_ns = 99;
    record->stack_bytes = STACK_BYTES;
    for (size_t i = 0; i < AGENT_REGISTER_COUNT; i++)
        record->registers[i] = 1000 + i;
    memset(&record->registers[AGENT_REGISTER_COUNT], (int)object, STACK_BYTES);
    complete(world, record);
    return record;
}

static void append_free(struct world *world, uint64_t object)
{
    size_t left = RING_BYTES - (atomic_load(&world->segment.header->written) & (RING_BYTES - 1));
    if (left < HEAD_BYTES)
        complete(world, append(world, AGENT_PADDING, left));
    struct agent_record *record = append(world, AGENT_FREED, HEAD_BYTES);
    record->object = object;
    complete(world, record);
}

static bool collect(struct world *world)
{
    bool has_news = world->source->collect(world->source, world->snapshots, &world->news);
    if (has_news && world->news.snapshot)
        snapshot_pool_give(world->snapshots, world->news.snapshot, false);
    return has_news;
}

static void assert_told(struct world *world, enum object_change change, uint64_t key)
{
    assert_true(collect(world));
    assert_int_equal(world->news.kind, OBJECT_ALLOCATION);
    assert_int_equal(world->news.change, change);
    assert_int_equal(world->news.key, key);
}

static struct object_counts heap_counts(const struct world *world)
{
    struct object_counts counts[OBJECT_KIND_COUNT] = {0};
    world->source->count(world->source, counts);
    return counts[OBJECT_ALLOCATION];
}

static void assert_damaged(struct world *world)
{
    assert_false(collect(world));
    assert_false(collect(world));
    assert_false(heap_counts(world).has_source);
    assert_int_equal(heap_counts(world).refusal, EBADMSG);
}

static void test_an_allocation_and_its_end_are_told(void **state)
{
    static const unsigned numbers[] = AGENT_REGISTERS;
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    header->code_start = 500;
    header->code_limit = 600;
    open_source(world);
    assert_false(collect(world));
    append_allocation(world, 5, 4096)->is_cut = true;
    append_free(world, 5);
    assert_told(world, OBJECT_MADE, 5);
    assert_int_equal(world->news.bytes, 4096);
    assert_int_equal(world->news.weight, 1);
    assert_int_equal(world->news.code_start, 500);
    assert_int_equal(world->news.code_limit, 600);
    assert_null(world->news.name);
    assert_int_equal(world->news.tid, 77);
    assert_int_equal(world->news.at_ns, 99);
    const struct snapshot *snapshot = world->news.snapshot;
    for (size_t i = 0; i < AGENT_REGISTER_COUNT; i++)
        assert_int_equal(snapshot->registers.values[numbers[i]], 1000 + i);
    assert_int_equal(snapshot->stack.address, registers_sp(&snapshot->registers));
    assert_int_equal(snapshot->stack.bytes, STACK_BYTES);
    assert_int_equal(snapshot->stack.memory[STACK_BYTES - 1], 5);
    assert_true(snapshot->stack.end > snapshot->stack.address + STACK_BYTES);
    assert_told(world, OBJECT_GONE, 5);
    assert_null(world->news.snapshot);
    assert_false(collect(world));
    assert_int_equal(atomic_load(&header->read), atomic_load(&header->written));
}

static void test_the_agent_is_turned_on_and_off(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    world->options.has_mappings = world->options.kinds[OBJECT_THREAD] = true;
    open_source(world);
    assert_int_equal(atomic_load(&header->wanted),
                     AGENT_WANTS_HEAP | AGENT_WANTS_MMAP | AGENT_WANTS_THREADS);
    assert_int_equal(atomic_load(&header->rate), RATE);
    assert_int_equal(atomic_load(&header->epoch), 1);
    assert_int_equal(heap_counts(world).rate, RATE);
    world->source->free(world->source);
    world->source = NULL;
    assert_int_equal(atomic_load(&header->wanted), 0);
}

static void test_only_what_is_wanted_is_told(void **state)
{
    struct world *world = *state;
    world->options.kinds[OBJECT_ALLOCATION] = false;
    world->options.kinds[OBJECT_THREAD] = true;
    open_source(world);
    assert_int_equal(atomic_load(&world->segment.header->wanted), AGENT_WANTS_THREADS);
    append_allocation(world, 1, 1);
    append_free(world, 1);
    complete(world, append(world, 99, HEAD_BYTES));
    complete(world, append(world, 0, HEAD_BYTES));
    struct agent_record *record = append(world, AGENT_THREAD, HEAD_BYTES);
    record->object = 7;
    complete(world, record);
    assert_true(collect(world));
    assert_int_equal(world->news.kind, OBJECT_THREAD);
    assert_int_equal(world->news.change, OBJECT_MADE);
    assert_int_equal(world->news.key, 7);
    assert_false(collect(world));
}

static void test_records_go_round(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    open_source(world);
    for (uint64_t i = 1; i < 200; i++) {
        size_t left = RING_BYTES - (atomic_load(&header->written) & (RING_BYTES - 1));
        /* Records of all sizes, so that all sizes of padding occur. */
        size_t bytes = HEAD_BYTES + i % 4 * 16;
        if (left < bytes)
            complete(world, append(world, AGENT_PADDING, left));
        struct agent_record *record = append(world, AGENT_FREED, bytes);
        record->object = i;
        complete(world, record);
        assert_told(world, OBJECT_GONE, i);
        assert_false(collect(world));
    }
    assert_true(atomic_load(&header->written) > 3 * RING_BYTES);
    assert_int_equal(heap_counts(world).made_lost, 0);
}

static void test_a_record_without_stack_at_the_end_of_the_memory(void **state)
{
    struct world *world = *state;
    open_source(world);
    complete(world, append(world, AGENT_PADDING, RING_BYTES - HEAD_BYTES));
    struct agent_record *record = append(world, AGENT_ALLOCATED, HEAD_BYTES);
    record->object = 3;
    complete(world, record);
    assert_told(world, OBJECT_MADE, 3);
    assert_null(world->news.snapshot);
}

static void test_what_came_before_the_first_profiler_counts(void **state)
{
    struct world *world = *state;
    append_allocation(world, 5, 8);
    open_source(world);
    assert_told(world, OBJECT_MADE, 5);
}

static void test_what_came_before_another_profiler_does_not(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    /* It was killed, and the agent continued until there was no room. */
    atomic_store(&header->epoch, 3);
    atomic_store(&header->wanted, AGENT_WANTS_HEAP);
    atomic_store(&header->made_lost, 10);
    atomic_store(&header->gone_lost, 20);
    for (unsigned i = 0; i < RING_BYTES / HEAD_BYTES; i++)
        append_free(world, i);
    complete(world, append(world, AGENT_PADDING, RING_BYTES % HEAD_BYTES));
    open_source(world);
    assert_int_equal(atomic_load(&header->epoch), 4);
    assert_int_equal(atomic_load(&header->read), atomic_load(&header->written));
    assert_false(collect(world));
    atomic_store(&header->made_lost, 11);
    atomic_store(&header->gone_lost, 22);
    append_free(world, 77);
    assert_told(world, OBJECT_GONE, 77);
    assert_int_equal(heap_counts(world).made_lost, 1);
    assert_int_equal(heap_counts(world).gone_lost, 2);
    /* A counter that decreases is not believed. */
    atomic_store(&header->made_lost, 0);
    assert_int_equal(heap_counts(world).made_lost, 0);
}

/* The ring was full for long, because we were stopped. */
static void test_an_agent_that_gave_up_is_turned_on_again(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    open_source(world);
    append_free(world, 1);
    atomic_store(&header->wanted, 0);
    assert_true(collect(world));
    assert_int_equal(world->news.change, OBJECT_FORGOTTEN);
    assert_int_equal(atomic_load(&header->wanted), AGENT_WANTS_HEAP);
    assert_int_equal(atomic_load(&header->epoch), 2);
    atomic_store(&header->wanted, 0);
    assert_false(collect(world)); /* an agent that does so all the time does not keep us busy */
    assert_true(collect(world));
    assert_int_equal(world->news.change, OBJECT_FORGOTTEN);
    assert_false(collect(world));
    append_free(world, 2);
    assert_told(world, OBJECT_GONE, 2);
    assert_true(heap_counts(world).has_source);
}

static void test_a_program_that_is_over_is_let_end(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    open_source(world);
    assert_false(collect(world));
    assert_int_equal(atomic_load(&header->may_end), 0);
    append_free(world, 1);
    struct agent_record *record = append(world, AGENT_FREED, HEAD_BYTES);
    atomic_store(&header->is_ending, 1);
    assert_told(world, OBJECT_GONE, 1);
    assert_false(collect(world));
    assert_int_equal(atomic_load(&header->may_end), 0); /* there is more */
    complete(world, record);
    assert_told(world, OBJECT_GONE, 0);
    assert_false(collect(world));
    assert_int_equal(atomic_load(&header->may_end), 1);
}

static void test_an_incomplete_record_is_waited_for(void **state)
{
    struct world *world = *state;
    open_source(world);
    struct agent_record *record = append(world, AGENT_FREED, HEAD_BYTES);
    append_free(world, 2);
    for (unsigned i = 0; i < 5; i++)
        assert_false(collect(world));
    record->object = 1;
    complete(world, record);
    assert_told(world, OBJECT_GONE, 1);
    assert_told(world, OBJECT_GONE, 2);
}

/* A process that has exited completes no records. */
static void make_program_end(struct world *world)
{
    int empty_fd = memfd_create("empty", MFD_CLOEXEC);
    assert_true(empty_fd >= 0 && dup2(empty_fd, world->program.mem_fd) >= 0);
    close(empty_fd);
}

static void test_a_record_that_stays_incomplete_is_passed(void **state)
{
    struct world *world = *state;
    open_source(world);
    append(world, AGENT_FREED, HEAD_BYTES);
    append(world, AGENT_FREED, HEAD_BYTES + 32);
    append_free(world, 2);
    append(world, AGENT_FREED, HEAD_BYTES);
    assert_false(collect(world));
    make_program_end(world);
    assert_told(world, OBJECT_GONE, 2);
    assert_false(collect(world));
    assert_int_equal(heap_counts(world).made_lost, 2);
    assert_int_equal(atomic_load(&world->segment.header->read),
                     atomic_load(&world->segment.header->written));
}

static void test_a_record_whose_thread_was_killed_is_passed(void **state)
{
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 50000000};
    struct world *world = *state;
    open_source(world);
    append(world, AGENT_FREED, HEAD_BYTES);
    append_free(world, 2);
    assert_false(collect(world));
    nanosleep(&pause, NULL);
    assert_told(world, OBJECT_GONE, 2);
}

/* Invalid records; the record behind each is found nevertheless. */
static void test_a_record_that_lies_is_passed(void **state)
{
    static const struct {
        uint32_t bytes, stack_bytes;
        uint64_t object_bytes;
    } lies[] = {
        {.bytes = 0},
        {.bytes = 8},
        {.bytes = HEAD_BYTES - 16},
        {.bytes = HEAD_BYTES + 8},
        {.bytes = 2 * RING_BYTES},
        {.bytes = UINT32_MAX},
        {.bytes = HEAD_BYTES, .stack_bytes = 1},
        {.bytes = HEAD_BYTES, .stack_bytes = UINT32_MAX},
        {.bytes = 2 * HEAD_BYTES, .stack_bytes = 2 * HEAD_BYTES},
        {.bytes = HEAD_BYTES, .object_bytes = UINT64_MAX},
    };
    struct world *world = *state;
    open_source(world);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct agent_record *record = append(world, AGENT_ALLOCATED, HEAD_BYTES);
        append_free(world, 100 + i);
        record->bytes = lies[i].bytes;
        record->stack_bytes = lies[i].stack_bytes;
        record->object_bytes = lies[i].object_bytes;
        complete(world, record);
        assert_told(world, OBJECT_GONE, 100 + i);
        assert_false(collect(world));
        assert_int_equal(heap_counts(world).made_lost, i + 1);
    }
}

/* The largest allowed ring, with `written` at its end. */
static struct agent_header *make_large_ring(struct world *world)
{
    const size_t ring_bytes = 16u << 20;
    segment_free(&world->segment);
    world->segment = segment_make(ring_bytes, F_SEAL_SHRINK);
    open_source(world);
    atomic_store(&world->segment.header->written, ring_bytes);
    return world->segment.header;
}

/* How many turns it takes to read everything. */
static unsigned count_turns(struct world *world)
{
    unsigned turns = 1;
    assert_false(collect(world));
    for (; world->source->has_more && turns < 10000; turns++)
        assert_false(collect(world));
    return turns;
}

/* There is no other record, in a million places where one might begin. */
static void test_a_large_record_that_lies_takes_several_turns(void **state)
{
    struct world *world = *state;
    struct agent_header *header = make_large_ring(world);
    atomic_store(&segment_record(&world->segment, 0)->committed, 1);
    assert_in_range(count_turns(world), 20, 1000);
    assert_int_equal(atomic_load(&header->read), atomic_load(&header->written));
    assert_int_equal(heap_counts(world).made_lost, 1);
    atomic_fetch_add(&header->written, HEAD_BYTES);
    struct agent_record *record = segment_record(&world->segment, 0);
    record->bytes = HEAD_BYTES;
    record->kind = AGENT_FREED;
    record->object = 7;
    atomic_store(&record->committed, (16u << 20) + 1);
    assert_told(world, OBJECT_GONE, 7);
}

/* Records that are not needed also count as steps. */
static void test_very_many_records_take_several_turns(void **state)
{
    struct world *world = *state;
    struct agent_header *header = make_large_ring(world);
    for (uint64_t position = 0; position < atomic_load(&header->written); position += 16) {
        struct agent_record *record = segment_record(&world->segment, position);
        record->bytes = 16;
        record->kind = AGENT_PADDING;
        atomic_store(&record->committed, position + 1);
    }
    assert_in_range(count_turns(world), 20, 1000);
    assert_int_equal(atomic_load(&header->read), atomic_load(&header->written));
    assert_int_equal(heap_counts(world).made_lost, 0);
}

static void test_a_header_that_lies_ends_it(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    open_source(world);
    append_free(world, 1);
    assert_told(world, OBJECT_GONE, 1);
    assert_false(collect(world));
    atomic_fetch_add(&header->written, RING_BYTES + 16);
    assert_damaged(world);
}

static void test_a_position_that_goes_back(void **state)
{
    struct world *world = *state;
    open_source(world);
    append_free(world, 1);
    append_free(world, 2);
    assert_told(world, OBJECT_GONE, 1);
    assert_told(world, OBJECT_GONE, 2);
    assert_false(collect(world));
    atomic_store(&world->segment.header->written, 0);
    assert_damaged(world);
}

static void test_a_position_between_records(void **state)
{
    struct world *world = *state;
    open_source(world);
    atomic_fetch_add(&world->segment.header->written, 8);
    assert_damaged(world);
}

static void test_an_epoch_that_goes_back(void **state)
{
    struct world *world = *state;
    open_source(world);
    append_free(world, 1);
    atomic_store(&world->segment.header->epoch, 0);
    assert_damaged(world);
}

static void test_what_was_taken_is_the_readers_to_say(void **state)
{
    struct world *world = *state;
    open_source(world);
    append_free(world, 1);
    atomic_store(&world->segment.header->read, 12345);
    assert_told(world, OBJECT_GONE, 1);
    append_free(world, 2);
    assert_false(collect(world)); /* it came later */
    assert_told(world, OBJECT_GONE, 2);
}

static void test_a_program_that_goes_on_does_not_hold_us_up(void **state)
{
    struct world *world = *state;
    unsigned told = 0;
    open_source(world);
    append_free(world, 1);
    while (collect(world) && told < 100) {
        append_free(world, 1);
        told++;
    }
    assert_int_equal(told, 1);
}

static void test_a_ring_that_fills_is_read_again_soon(void **state)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    struct world *world = *state;
    open_source(world);
    assert_false(collect(world));
    /* On a busy machine we may be delayed between two looks. */
    for (unsigned tries = 0; tries < 50 && !world->source->is_fast; tries++) {
        for (unsigned i = 0; i < 8; i++)
            append_free(world, i);
        while (collect(world)) {
        }
    }
    assert_true(world->source->is_fast);
    nanosleep(&pause, NULL);
    assert_false(collect(world));
    assert_false(world->source->is_fast);
}

static void test_without_a_snapshot_the_record_stays(void **state)
{
    struct world *world = *state;
    struct snapshot *taken[SNAPSHOTS_MAX];
    const struct stack_place none = {0};
    open_source(world);
    append_allocation(world, 5, 8);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        assert_non_null(taken[i] = snapshot_pool_take(world->snapshots, 64, &none));
    assert_false(collect(world));
    assert_true(world->source->has_more);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshot_pool_give(world->snapshots, taken[i], false);
    assert_told(world, OBJECT_MADE, 5);
}

static void test_an_allocator_of_its_own(void **state)
{
    struct world *world = *state;
    char *allocator = world->segment.header->allocator, path[4096] = "";
    open_source(world);
    assert_false(heap_counts(world).allocator_is_own);
    strcpy(allocator, "libc.so.6");
    assert_false(heap_counts(world).allocator_is_own);
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    snprintf(allocator, sizeof world->segment.header->allocator, "%s", strrchr(path, '/') + 1);
    assert_true(heap_counts(world).allocator_is_own);
    /* The name need not be terminated. */
    memset(allocator, 'x', sizeof world->segment.header->allocator);
    assert_false(heap_counts(world).allocator_is_own);
    assert_true(heap_counts(world).resident_peak > 0 || !collect(world));
    assert_true(heap_counts(world).resident_peak > 0);
}

static void test_what_is_refused(void **state)
{
    struct world *world = *state;
    struct agent_header *header = world->segment.header;
    memset(header->magic, 0, sizeof header->magic);
    assert_int_equal(try_to_open(world), -ENOENT);
    memcpy(header->magic, "FGPROF\0B", sizeof header->magic);
    assert_int_equal(try_to_open(world), -EBADMSG);
    segment_fill(&world->segment);
    header->version++;
    assert_int_equal(try_to_open(world), -EPROTONOSUPPORT);
    header->version -= 2;
    assert_int_equal(try_to_open(world), -EPROTONOSUPPORT);
    segment_fill(&world->segment);
    header->pid++;
    assert_int_equal(try_to_open(world), -ENOENT);
    segment_fill(&world->segment);
    header->header_bytes *= 2;
    assert_int_equal(try_to_open(world), -EBADMSG);
    segment_fill(&world->segment);
    header->ring_bytes *= 2;
    assert_int_equal(try_to_open(world), -EBADMSG);
    header->ring_bytes = 0;
    assert_int_equal(try_to_open(world), -EBADMSG);
    assert_int_equal(atomic_load(&header->wanted), 0);
    segment_fill(&world->segment);
    open_source(world);
}

static void check_refused_memory(struct world *world, size_t ring_bytes, int seals)
{
    segment_free(&world->segment);
    world->segment = segment_make(ring_bytes, seals);
    assert_int_equal(try_to_open(world), -EBADMSG);
}

static void test_refused_memory(void **state)
{
    struct world *world = *state;
    check_refused_memory(world, RING_BYTES, F_SEAL_GROW);
    check_refused_memory(world, RING_BYTES + 16, F_SEAL_SHRINK);
    check_refused_memory(world, 0, F_SEAL_SHRINK);
    check_refused_memory(world, 32u << 20, F_SEAL_SHRINK);
}

static void test_one_profiler_at_a_time(void **state)
{
    struct world *world = *state;
    struct object_source *first;
    open_source(world);
    first = world->source;
    assert_int_equal(try_to_open(world), -EBUSY);
    append_free(world, 1);
    assert_int_not_equal(atomic_load(&world->segment.header->wanted), 0);
    first->free(first);
    open_source(world);
    assert_false(collect(world));
    append_free(world, 2);
    assert_told(world, OBJECT_GONE, 2);
}

static void test_a_profiler_that_was_killed_is_no_other(void **state)
{
    struct world *world = *state;
    int status;
    pid_t child = fork();
    if (!child) {
        /* For the child, the process with the memory is its parent. */
        _exit(try_to_open(world) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(atomic_load(&world->segment.header->wanted), 0);
    open_source(world);
    assert_int_equal(atomic_load(&world->segment.header->epoch), 2);
}

static unsigned earlier_maps; /* how many reads of the maps still show the earlier program */

int __real_maps_read(int fd, maps_visit_fn *visit, void *context);
int __wrap_maps_read(int fd, maps_visit_fn *visit, void *context);

int __wrap_maps_read(int fd, maps_visit_fn *visit, void *context)
{
    const struct maps_entry earlier = {
        .start = 0x1000, .end = 0x2000, .inode = 1, .deleted = true, .path = "/memfd:" AGENT_MEMFD};
    if (!earlier_maps)
        return __real_maps_read(fd, visit, context);
    earlier_maps--;
    return visit(context, &earlier);
}

/* The program has not closed its descriptor, but lost it by the exec. */
static void test_a_program_that_executes_another_meanwhile(void **state)
{
    struct world *world = *state;
    munmap(world->segment.header, world->segment.bytes);
    world->segment.header =
        mmap(NULL, world->segment.bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    earlier_maps = 1;
    assert_int_equal(try_to_open(world), -ENOENT);
    earlier_maps = 2;
    assert_int_equal(try_to_open(world), -EBADF);
    assert_int_equal(earlier_maps, 0);
}

static void test_without_an_agent(void **state)
{
    struct world *world = *state;
    /* Another mapped file of that name. */
    segment_free(&world->segment);
    world->segment = segment_make(RING_BYTES, F_SEAL_SHRINK);
    close(world->segment.fd);
    world->segment.fd = memfd_create(AGENT_MEMFD, MFD_CLOEXEC);
    int err = try_to_open(world);
    assert_true(err == 0 || err == -EBADF); /* with CAP_CHECKPOINT_RESTORE it is found */
    munmap(world->segment.header, world->segment.bytes);
    world->segment.header =
        mmap(NULL, world->segment.bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (world->source)
        world->source->free(world->source);
    world->source = NULL;
    assert_int_equal(try_to_open(world), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_allocation_and_its_end_are_told),
        TEST(the_agent_is_turned_on_and_off),
        TEST(only_what_is_wanted_is_told),
        TEST(records_go_round),
        TEST(a_record_without_stack_at_the_end_of_the_memory),
        TEST(what_came_before_the_first_profiler_counts),
        TEST(what_came_before_another_profiler_does_not),
        TEST(an_agent_that_gave_up_is_turned_on_again),
        TEST(a_program_that_is_over_is_let_end),
        TEST(an_incomplete_record_is_waited_for),
        TEST(a_record_that_stays_incomplete_is_passed),
        TEST(a_record_whose_thread_was_killed_is_passed),
        TEST(a_record_that_lies_is_passed),
        TEST(a_large_record_that_lies_takes_several_turns),
        TEST(very_many_records_take_several_turns),
        TEST(a_header_that_lies_ends_it),
        TEST(a_position_that_goes_back),
        TEST(a_position_between_records),
        TEST(an_epoch_that_goes_back),
        TEST(what_was_taken_is_the_readers_to_say),
        TEST(a_program_that_goes_on_does_not_hold_us_up),
        TEST(a_ring_that_fills_is_read_again_soon),
        TEST(without_a_snapshot_the_record_stays),
        TEST(an_allocator_of_its_own),
        TEST(what_is_refused),
        TEST(refused_memory),
        TEST(one_profiler_at_a_time),
        TEST(a_profiler_that_was_killed_is_no_other),
        TEST(a_program_that_executes_another_meanwhile),
        TEST(without_an_agent),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
