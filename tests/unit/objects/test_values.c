/* Custom profiles as read from outside: invalid memory, values that change meanwhile, and what is
 * reported again. */
#include "fgprof_profiles.h"
#include "unit.h"
#include "objects/values.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define BYTES (VALUES_HEADER_BYTES + 4 * VALUES_SLAB_BYTES)
#define SP_AT (AGENT_REGISTER_COUNT - (AGENT_REGISTER_COUNT == 8 ? 6 : 2))
#define NEWS_MAX 4096

/* A program's memory, in a file. */
struct world {
    struct values_memory memory;
    struct values_header *header;
    struct snapshot_pool *snapshots;
    struct object_source *source; /* NULL: not open */
    size_t made, gone, forgotten; /* counts of the last news */
    struct object_news news[NEWS_MAX];
};

static struct world *world_of(int fd)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->memory.fd = fd;
    world->header = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(world->header != MAP_FAILED);
    assert_int_equal(snapshot_pool_new(&world->snapshots), 0);
    return world;
}

static struct values_slot *slot_at(const struct world *world, uint32_t slab, uint32_t slot)
{
    const struct values_header *header = world->header;
    uint32_t size_class = header->slabs[slab].class_plus_1 - 1;
    return (struct values_slot *)((char *)header + VALUES_HEADER_BYTES + slab * VALUES_SLAB_BYTES +
                                  slot * values_class_slot_bytes(size_class));
}

static void fill(struct values_slot *slot, uint32_t profile, uint32_t stack_bytes, uint32_t skip)
{
    slot->sequence += 2;
    slot->profile_plus_1 = profile + 1;
    slot->tid = 77;
    slot->skip = skip;
    slot->stack_bytes = stack_bytes;
    slot->is_cut = 0;
    for (size_t i = 0; i < AGENT_REGISTER_COUNT; i++)
        slot->registers[i] = 0x1000 + i;
    memset(slot->registers + AGENT_REGISTER_COUNT, (int)skip, stack_bytes);
}

/* Two profiles, "files" with two values and "locks" with one; three slabs. */
static int setup(void **state)
{
    int fd = memfd_create("unit", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, BYTES), 0);
    struct world *world = world_of(fd);
    struct values_header *header = world->header;
    memcpy(header->magic, VALUES_MAGIC, sizeof header->magic);
    header->version = VALUES_VERSION;
    header->bytes = BYTES;
    header->profile_count = 2;
    strcpy(header->profiles[0].name, "files");
    strcpy(header->profiles[1].name, "locks");
    header->profiles[0].count = 2;
    header->profiles[1].count = 1;
    header->slab_count = 3;
    header->slabs[0].class_plus_1 = 1;
    header->slabs[0].used = 3;
    header->slabs[1].class_plus_1 = VALUES_CLASSES;
    header->slabs[1].used = 1;
    fill(slot_at(world, 0, 0), 0, 256, 1);
    fill(slot_at(world, 0, 2), 1, 64, 2);
    fill(slot_at(world, 1, 0), 0, AGENT_STACK_BYTES_MAX, 3);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    if (world->source)
        world->source->free(world->source);
    snapshot_pool_free(world->snapshots);
    munmap(world->header, BYTES);
    close(world->memory.fd);
    free(world);
    return 0;
}

static void open_source(struct world *world)
{
    assert_int_equal(values_source_at(&world->memory, &world->source), 0);
}

/* Takes news until there are no snapshots left, and gives these back. */
static void take_some(struct world *world, void (*check)(const struct snapshot *snapshot))
{
    struct snapshot *held[SNAPSHOTS_MAX];
    struct object_news news;
    size_t count = 0;
    while (world->source->collect(world->source, world->snapshots, &news)) {
        assert_int_equal(news.kind, OBJECT_VALUE);
        world->made += news.change == OBJECT_MADE;
        world->gone += news.change == OBJECT_GONE;
        world->forgotten += news.change == OBJECT_FORGOTTEN;
        if (news.change == OBJECT_MADE)
            assert_non_null(news.name);
        if (news.snapshot) {
            held[count++] = news.snapshot;
            if (check)
                check(news.snapshot);
        }
        free(news.name);
        news.name = NULL;
        world->news[(world->made + world->gone) % NEWS_MAX] = news;
    }
    while (count)
        snapshot_pool_give(world->snapshots, held[--count], false);
}

static void take_all(struct world *world)
{
    world->made = world->gone = world->forgotten = 0;
    do
        take_some(world, NULL);
    while (world->source->has_more);
}

static uint64_t lost(const struct world *world)
{
    struct object_counts counts[OBJECT_KIND_COUNT] = {0};
    world->source->count(world->source, counts);
    assert_true(counts[OBJECT_VALUE].has_source);
    return counts[OBJECT_VALUE].made_lost;
}

static void refresh(struct world *world)
{
    world->source->refresh(world->source);
    take_all(world);
}

static void test_lists(void **state)
{
    struct world *world = *state;
    struct values_listed *listed;
    size_t count;
    world->header->profile_count = 6;
    strcpy(world->header->profiles[2].name, "two words");
    memset(world->header->profiles[3].name, 'x', VALUES_NAME_BYTES); /* not terminated */
    strcpy(world->header->profiles[4].name, "\x1b[31m");
    strcpy(world->header->profiles[5].name, "last");
    assert_int_equal(values_list(&world->memory, &listed, &count), 0);
    assert_int_equal(count, 3);
    assert_string_equal(listed[0].name, "files");
    assert_int_equal(listed[0].count, 2);
    assert_string_equal(listed[1].name, "locks");
    assert_int_equal(listed[1].count, 1);
    assert_string_equal(listed[2].name, "last");
    free(listed);
}

static void assert_refused(const struct world *world, int err)
{
    struct values_listed *listed;
    struct object_source *source;
    size_t count;
    assert_int_equal(values_list(&world->memory, &listed, &count), err);
    assert_int_equal(values_source_at(&world->memory, &source), err);
}

#define REFUSES(world, field, value, err)                                                          \
    do {                                                                                           \
        uint64_t before = (world)->header->field;                                                  \
        (world)->header->field = (value);                                                          \
        assert_refused(world, err);                                                                \
        (world)->header->field = before;                                                           \
    } while (0)

static void test_headers_that_lie(void **state)
{
    struct world *world = *state;
    struct values_header *header = world->header;
    REFUSES(world, magic[0], 'f', -EBADMSG);
    memset(header->magic, 0, sizeof header->magic);
    assert_refused(world, -ENOENT); /* it is not complete yet */
    memcpy(header->magic, VALUES_MAGIC, sizeof header->magic);
    REFUSES(world, version, 0, -EPROTONOSUPPORT);
    REFUSES(world, version, VALUES_VERSION + 1, -EPROTONOSUPPORT);
    REFUSES(world, bytes, 0, -EBADMSG);
    REFUSES(world, bytes, BYTES + 1, -EBADMSG);
    REFUSES(world, bytes, VALUES_BYTES_MAX + VALUES_SLAB_BYTES, -EBADMSG);
    REFUSES(world, bytes, UINT64_MAX, -EBADMSG);
    REFUSES(world, profile_count, VALUES_PROFILES_MAX + 1, -EBADMSG);
    REFUSES(world, profile_count, UINT32_MAX, -EBADMSG);
    REFUSES(world, slab_count, 5, -EBADMSG); /* more than fit in the memory */
    REFUSES(world, slab_count, UINT32_MAX, -EBADMSG);
    REFUSES(world, slabs[2].class_plus_1, VALUES_CLASSES + 1, -EBADMSG);
    REFUSES(world, slabs[2].class_plus_1, UINT32_MAX, -EBADMSG);
    REFUSES(world, slabs[0].used, values_class_slots(0) + 1, -EBADMSG);
    REFUSES(world, slabs[0].used, UINT32_MAX, -EBADMSG);
    REFUSES(world, slabs[2].used, 1, -EBADMSG); /* it has no class */
    open_source(world);
    assert_int_equal(ftruncate(world->memory.fd, 4096), 0);
    assert_refused(world, -ESRCH);
    refresh(world);
    assert_int_equal(lost(world), 0);
    assert_int_equal(ftruncate(world->memory.fd, BYTES), 0);
    refresh(world); /* zeros */
}

static void check_snapshot(const struct snapshot *snapshot)
{
    static const unsigned numbers[AGENT_REGISTER_COUNT] = AGENT_REGISTERS;
    const struct stack_copy *stack = &snapshot->stack;
    for (size_t i = 0; i < AGENT_REGISTER_COUNT; i++) {
        assert_true(registers_has(&snapshot->registers, numbers[i]));
        assert_int_equal(snapshot->registers.values[numbers[i]], 0x1000 + i);
    }
    assert_int_equal(stack->address, 0x1000 + SP_AT);
    assert_int_equal(stack->end, stack->address + stack->bytes);
    assert_true(stack->end_is_known);
    for (size_t i = 1; i < stack->bytes; i++)
        assert_int_equal(stack->memory[i], stack->memory[0]);
    assert_true((stack->bytes == 256 && stack->memory[0] == 1) ||
                (stack->bytes == 64 && stack->memory[0] == 2) ||
                (stack->bytes == AGENT_STACK_BYTES_MAX && stack->memory[0] == 3));
}

static void test_values_are_told(void **state)
{
    struct world *world = *state;
    struct object_news news;
    static const char *const names[] = {"files", "locks", "files"};
    uint64_t keys[3];
    open_source(world);
    assert_true(world->source->has_more);
    assert_true(world->source->collect(world->source, world->snapshots, &news));
    assert_int_equal(news.change, OBJECT_FORGOTTEN); /* of an earlier program */
    for (unsigned i = 0; i < 3; i++) {
        assert_true(world->source->collect(world->source, world->snapshots, &news));
        assert_int_equal(news.change, OBJECT_MADE);
        assert_int_equal(news.weight, 1);
        assert_int_equal(news.skip, i + 2); /* the agent's own frame, too */
        assert_int_equal(news.code_limit, 0);
        assert_string_equal(news.name, names[i]);
        assert_int_equal(news.tid, 77);
        check_snapshot(news.snapshot);
        snapshot_pool_give(world->snapshots, news.snapshot, false);
        free(news.name);
        keys[i] = news.key;
    }
    assert_false(world->source->collect(world->source, world->snapshots, &news));
    assert_false(world->source->has_more);
    assert_true(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
}

static void test_only_changes_are_told_again(void **state)
{
    struct world *world = *state;
    open_source(world);
    take_all(world);
    assert_int_equal(world->made, 3);
    assert_int_equal(world->forgotten, 1);
    take_all(world);
    assert_int_equal(world->made + world->gone + world->forgotten, 0);
    refresh(world);
    assert_int_equal(world->made + world->gone + world->forgotten, 0);
    /* One goes, another takes a slot that was never used, a third one reuses a slot. */
    struct values_slot *slot = slot_at(world, 0, 0);
    slot->sequence += 2;
    slot->profile_plus_1 = 0;
    fill(slot_at(world, 0, 1), 1, 8, 4);
    fill(slot_at(world, 1, 0), 1, 16, 5);
    refresh(world);
    assert_int_equal(world->made, 2);
    assert_int_equal(world->gone, 1);
    refresh(world);
    assert_int_equal(world->made + world->gone, 0);
    /* In between, one came and went. */
    slot->sequence += 4;
    refresh(world);
    assert_int_equal(world->made + world->gone, 0);
    assert_int_equal(lost(world), 0);
}

static void test_values_that_change_are_left_out(void **state)
{
    struct world *world = *state;
    slot_at(world, 0, 0)->sequence++;
    open_source(world);
    take_all(world);
    assert_int_equal(world->made, 2);
    for (unsigned i = 0; i < 2; i++) {
        slot_at(world, 0, 0)->sequence++;
        refresh(world);
        assert_int_equal(world->made, 1);
        assert_int_equal(world->gone, 0);
        slot_at(world, 0, 0)->sequence++;
        refresh(world);
        assert_int_equal(world->made, 0);
        assert_int_equal(world->gone, 1); /* what was there before */
    }
    assert_int_equal(lost(world), 0);
}

static void test_slots_that_lie(void **state)
{
    struct world *world = *state;
    slot_at(world, 0, 0)->stack_bytes = 257;
    slot_at(world, 1, 0)->profile_plus_1 = 3; /* that profile may exist soon */
    slot_at(world, 0, 2)->registers[SP_AT] = UINT64_MAX - 10;
    slot_at(world, 0, 2)->skip = UINT32_MAX;
    open_source(world);
    take_all(world);
    assert_int_equal(world->made, 1);
    assert_int_equal(world->news[1].skip, UINT32_MAX);
    assert_int_equal(lost(world), 1);
    refresh(world);
    assert_int_equal(world->made, 0);
    assert_int_equal(lost(world), 1); /* because it is still there */
    world->header->profile_count = 3;
    strcpy(world->header->profiles[2].name, "not a name");
    refresh(world);
    assert_int_equal(world->made, 1); /* of a profile that can't be requested */
    slot_at(world, 0, 0)->stack_bytes = UINT32_MAX;
    slot_at(world, 0, 0)->sequence += 2;
    refresh(world);
    assert_int_equal(world->made, 0);
    /* A slab whose class changes has more slots than there is room to note. */
    world->header->slabs[1].class_plus_1 = 1;
    world->header->slabs[1].used = values_class_slots(0);
    refresh(world);
    assert_int_equal(world->made, 0);
    world->header->slabs[1].used = UINT32_MAX;
    world->source->refresh(world->source);
    take_all(world);
    struct object_counts counts[OBJECT_KIND_COUNT] = {0};
    world->source->count(world->source, counts);
    assert_false(counts[OBJECT_VALUE].has_source);
    assert_int_equal(counts[OBJECT_VALUE].refusal, EBADMSG);
}

static void test_values_without_a_slot(void **state)
{
    struct world *world = *state;
    struct values_profile *profile = &world->header->profiles[1];
    profile->without_slot = 5;
    open_source(world);
    take_all(world);
    assert_int_equal(world->made, 4);
    assert_int_equal(world->news[1].weight, 5);
    uint64_t key = world->news[1].key;
    refresh(world);
    assert_int_equal(world->made + world->gone, 0);
    profile->without_slot = 1ull << 40;
    refresh(world);
    assert_int_equal(world->made, 1);
    assert_int_equal(world->news[1].weight, UINT32_MAX);
    assert_true(world->news[1].key == key);
    profile->without_slot = 0;
    refresh(world);
    assert_int_equal(world->made, 0);
    assert_int_equal(world->gone, 1);
    assert_true(world->news[1].key == key);
}

/* More values than there are snapshots. */
static void test_values_wait_for_snapshots(void **state)
{
    struct world *world = *state;
    uint32_t count = values_class_slots(0);
    assert_in_range(count, SNAPSHOTS_MAX + 1, NEWS_MAX);
    world->header->slabs[0].used = count;
    for (uint32_t i = 0; i < count; i++)
        fill(slot_at(world, 0, i), 0, 8, i);
    open_source(world);
    take_some(world, NULL);
    assert_int_equal(world->made, SNAPSHOTS_MAX);
    assert_true(world->source->has_more);
    take_some(world, NULL);
    assert_int_equal(world->made, count + 1);
    assert_false(world->source->has_more);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(world->news[i + 1].skip, i + 1);
}

/* ---- The agent's own memory, while threads change it ---- */

#define WRITERS 2
#define VALUES_HELD 40
#define MARKS_MIN 2000000u
#define MARK 0x6d61726b00000000u

struct writer {
    pthread_t thread;
    fgprof_custom_profile *profile;
    uint64_t number;
};

static atomic_bool is_over;
static size_t marks_found;

/* Adds a value with a stack that is full of its mark. */
__attribute__((noinline)) static void add_marked(fgprof_custom_profile *profile, uint64_t value)
{
    volatile uint64_t marks[100];
    for (size_t i = 0; i < 100; i++)
        marks[i] = MARK | value;
    assert_int_equal(fgprof_custom_add(profile, (const void *)(uintptr_t)value, 0), 0);
    assert_true(marks[99] == (MARK | value));
}

static void *write_values(void *context)
{
    const struct writer *writer = context;
    uint64_t first = writer->number << 24;
    for (uint64_t i = 0; i < VALUES_HELD || !is_over; i++) {
        add_marked(writer->profile, first + i % (1 << 24));
        if (i >= VALUES_HELD)
            fgprof_custom_remove(writer->profile,
                                 (const void *)(uintptr_t)(first + (i - VALUES_HELD) % (1 << 24)));
    }
    return NULL;
}

/* All marks in the copy are those of one value. */
static void check_marks(const struct snapshot *snapshot)
{
    uint64_t mark = 0;
    for (size_t i = 0; i + 8 <= snapshot->stack.bytes; i += 8) {
        uint64_t word;
        memcpy(&word, snapshot->stack.memory + i, sizeof word);
        if (word >> 32 != MARK >> 32)
            continue;
        marks_found++;
        assert_true(!mark || word == mark);
        mark = word;
    }
    assert_true(mark);
}

static void test_values_that_change_meanwhile(void **state)
{
    struct writer writers[WRITERS];
    fgprof_custom_profile *profile;
    struct values_memory memory;
    (void)state;
    assert_int_equal(fgprof_custom_new("marked", &profile), 0);
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int mem_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    assert_true(maps_fd >= 0 && mem_fd >= 0);
    assert_int_equal(values_find(maps_fd, mem_fd, &memory), 0);
    struct world world = {.memory = memory};
    assert_int_equal(snapshot_pool_new(&world.snapshots), 0);
    open_source(&world);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.profile = profile, .number = i + 1};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_values, &writers[i]), 0);
    }
    while (marks_found < MARKS_MIN) {
        world.source->refresh(world.source);
        take_some(&world, check_marks);
        assert_false(world.source->has_more);
    }
    is_over = true;
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    /* Another reader, now that no thread changes values. */
    world.source->free(world.source);
    open_source(&world);
    world.made = world.gone = 0;
    take_some(&world, check_marks);
    assert_int_equal(world.made, fgprof_custom_count(profile));
    assert_int_equal(world.made, WRITERS * VALUES_HELD);
    assert_int_equal(lost(&world), 0);
    world.source->free(world.source);
    snapshot_pool_free(world.snapshots);
    close(maps_fd);
    close(mem_fd);
}

static void test_programs_without(void **state)
{
    struct values_memory memory;
    int fd =
        file_of_text("7f12a1e00000-7f12a1f55000 rw-s 00000000 00:01 2097 /memfd:FGPROF (deleted)\n"
                     "7f12a2e00000-7f12a2f55000 rw-s 00001000 00:01 2098 /memfd:FGPROF-VALUES\n"
                     "7f12a3e00000-7f12a3f55000 rw-s 00000000 00:01 2098 /FGPROF-VALUES\n");
    (void)state;
    assert_int_equal(values_find(fd, 0, &memory), -ENOENT);
    close(fd);
    fd = file_of_text("7f12a1e00000-7f12a1f55000 rw-s 00000000 00:01 2097 /memfd:FGPROF (deleted)\n"
                      "7f12a2e00000-7f12a2f55000 rw-s 00000000 00:01 2098 /memfd:FGPROF-VALUES "
                      "(deleted)\n");
    assert_int_equal(values_find(fd, 7, &memory), 0);
    assert_int_equal(memory.fd, 7);
    assert_true(memory.address == 0x7f12a2e00000);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_headers_that_lie, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_changes_are_told_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_that_change_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slots_that_lie, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_without_a_slot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_wait_for_snapshots, setup, teardown),
        cmocka_unit_test(test_values_that_change_meanwhile),
        cmocka_unit_test(test_programs_without),
    };
    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
