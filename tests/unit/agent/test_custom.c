/* Custom profiles inside the program: names, exact counts, and the memory that fgprof-c reads. */
#include "fgprof_profiles.h"
#include "fgprof.h" /* both headers in one program */
#include "unit.h"
#include "agent/values_format.h"
#include "proc/maps.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>

#define THREADS 8
#define ADDS (1000000 / THREADS) /* per thread */
#define HELD 64                  /* per thread, at once */
#define ROUNDS 500

#define SP_AT (AGENT_REGISTER_COUNT - (AGENT_REGISTER_COUNT == 8 ? 6 : 2))

static fgprof_custom_profile *new_profile(const char *name)
{
    fgprof_custom_profile *profile;
    assert_int_equal(fgprof_custom_new(name, &profile), 0);
    return profile;
}

static const void *value_of(uintptr_t number)
{
    return (const void *)number;
}

static int note_place(void *context, const struct maps_entry *entry)
{
    if (strcmp(entry->path, "/memfd:" VALUES_MEMFD) != 0)
        return 0;
    *(struct values_header **)context = (struct values_header *)(uintptr_t)entry->start;
    return 1;
}

/* This process's header, or NULL if it has none. */
static struct values_header *find_header(void)
{
    struct values_header *header = NULL;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(maps_read(fd, note_place, &header) >= 0);
    close(fd);
    return header;
}

typedef void slot_fn(const struct values_slot *slot, void *context);

/* Calls the function for each slot that was ever used; a slot without a profile is free. */
static void each_slot(slot_fn *function, void *context)
{
    struct values_header *header = find_header();
    for (uint32_t i = 0; i < header->slab_count; i++) {
        uint32_t size_class = header->slabs[i].class_plus_1 - 1;
        const char *slab = (char *)header + VALUES_HEADER_BYTES + i * (size_t)VALUES_SLAB_BYTES;
        for (uint32_t j = 0; j < header->slabs[i].used; j++)
            function((const void *)(slab + j * (size_t)values_class_slot_bytes(size_class)),
                     context);
    }
}

struct slots {
    size_t used, live;
    const struct values_slot *last; /* the last live one */
};

static void count_slot(const struct values_slot *slot, void *context)
{
    struct slots *slots = context;
    assert_int_equal(slot->sequence % 2, 0);
    slots->used++;
    if (!slot->profile_plus_1)
        return;
    slots->live++;
    slots->last = slot;
}

static struct slots count_slots(void)
{
    struct slots slots = {0};
    each_slot(count_slot, &slots);
    return slots;
}

/* ---- Calls that fail ---- */

int __real_madvise(void *address, size_t bytes, int advice);
int __wrap_madvise(void *address, size_t bytes, int advice);
int __real_mprotect(void *address, size_t bytes, int protection);
int __wrap_mprotect(void *address, size_t bytes, int protection);

#define NO_CALL (-1)
#define MPROTECT (-2)

/* An madvise(2) advice, or MPROTECT: the call that fails. */
static int failing_call = NO_CALL;
static void *failed_for;

static int refuse(void *address)
{
    failed_for = address;
    errno = ENOMEM;
    return -1;
}

int __wrap_madvise(void *address, size_t bytes, int advice)
{
    return advice == failing_call ? refuse(address) : __real_madvise(address, bytes, advice);
}

int __wrap_mprotect(void *address, size_t bytes, int protection)
{
    return failing_call == MPROTECT ? refuse(address) : __real_mprotect(address, bytes, protection);
}

static size_t count_open_files(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 100; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Runs first, before there is any memory for values: a failed attempt leaves none behind, and later
 * calls succeed. */
static void test_memory_that_can_not_be_as_it_must(void **state)
{
    static const int calls[] = {MADV_WIPEONFORK, MADV_DONTFORK, MADV_DONTDUMP, MPROTECT};
    fgprof_custom_profile *profile;
    size_t open_files = count_open_files();
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        unsigned char is_there;
        failed_for = NULL;
        failing_call = calls[i];
        assert_int_equal(fgprof_custom_new("refused", &profile), -ENOMEM);
        failing_call = NO_CALL;
        assert_non_null(failed_for);
        assert_int_equal(mincore(failed_for, 4096, &is_there), -1);
        assert_null(find_header());
        assert_int_equal(count_open_files(), open_files);
        assert_null(fgprof_custom_lookup("refused"));
    }
}

static void test_names(void **state)
{
    static const char *const wrong[] = {
        "",
        "two words",
        "tab\there",
        "line\n",
        "\x7f",
        "\xc2\x9b",
        "\xff\xfe",
        "cut\xc3",
        "a23456789b23456789c23456789d23456789e23456789f23456789g234567890"};
    static const char *const ours[] = {"fgprof", "wall",         "cpu",       "profile", "block",
                                       "mutex",  "blame",        "heap",      "allocs",  "growth",
                                       "trace",  "threadcreate", "goroutine", "symbol",  "cmdline"};
    fgprof_custom_profile *profile, *none = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(fgprof_custom_new(wrong[i], &none), -EINVAL);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        assert_int_equal(fgprof_custom_new(ours[i], &none), -EPERM);
    assert_null(none);
    assert_null(fgprof_custom_lookup("names"));
    profile = new_profile("names");
    assert_string_equal(fgprof_custom_name(profile), "names");
    assert_ptr_equal(fgprof_custom_lookup("names"), profile);
    assert_int_equal(fgprof_custom_new("names", &none), -EEXIST);
    new_profile("a23456789b23456789c23456789d23456789e23456789f23456789g23456789");
    new_profile("example.com/größe:x;y"); /* characters that are special in other formats */
    assert_ptr_not_equal(fgprof_custom_lookup("example.com/größe:x;y"), profile);
}

static void note_name(fgprof_custom_profile *profile, void *context)
{
    strcat(strcat(context, " "), fgprof_custom_name(profile));
}

static void test_all_profiles(void **state)
{
    char names[1024] = "";
    (void)state;
    new_profile("zebra");
    new_profile("aardvark");
    fgprof_custom_each(note_name, names);
    const char *first = strstr(names, " aardvark"), *last = strstr(names, " zebra");
    assert_true(first && last && first < last);
}

static void test_values(void **state)
{
    fgprof_custom_profile *one = new_profile("one"), *other = new_profile("other");
    (void)state;
    assert_int_equal(fgprof_custom_count(one), 0);
    fgprof_custom_remove(one, value_of(1));
    for (uintptr_t i = 0; i < 1000; i++)
        assert_int_equal(fgprof_custom_add(one, value_of(i), 0), 0);
    for (uintptr_t i = 0; i < 1000; i++)
        assert_int_equal(fgprof_custom_add(one, value_of(i), 0), -EEXIST);
    assert_int_equal(fgprof_custom_add(other, value_of(7), 0), 0); /* values of different profiles
                                                                      are separate */
    assert_int_equal(fgprof_custom_count(one), 1000);
    assert_int_equal(fgprof_custom_count(other), 1);
    for (uintptr_t i = 0; i < 1000; i += 2) {
        fgprof_custom_remove(one, value_of(i));
        fgprof_custom_remove(one, value_of(i));
    }
    assert_int_equal(fgprof_custom_count(one), 500);
    for (uintptr_t i = 1; i < 1000; i += 2) {
        assert_int_equal(fgprof_custom_add(one, value_of(i), 0), -EEXIST);
        fgprof_custom_remove(one, value_of(i));
    }
    assert_int_equal(fgprof_custom_count(one), 0);
    assert_int_equal(fgprof_custom_count(other), 1);
    assert_int_equal(count_slots().live, 1);
    fgprof_custom_remove(other, value_of(7));
    assert_int_equal(count_slots().live, 0);
}

__attribute__((noinline, no_sanitize("address"))) static int
add_below(size_t bytes, fgprof_custom_profile *profile, uintptr_t value)
{
    volatile char filled[bytes];
    for (size_t i = 0; i < bytes; i++)
        filled[i] = 'f';
    int err = fgprof_custom_add(profile, value_of(value), 3);
    assert_int_equal(filled[bytes - 1], 'f');
    return err;
}

struct place {
    fgprof_custom_profile *profile;
    size_t bytes;
    struct slots slots;
};

/* A new thread has a short stack. */
static void *add_in_thread(void *context)
{
    struct place *place = context;
    assert_int_equal(add_below(place->bytes, place->profile, 77), 0);
    place->slots = count_slots();
    fgprof_custom_remove(place->profile, value_of(77));
    return NULL;
}

static struct slots slots_of_thread(struct place *place)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, add_in_thread, place), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return place->slots;
}

static void test_what_a_slot_has(void **state)
{
    static const size_t depths[] = {16, 1000, 3000, 9000, 40000};
    struct place place = {.profile = new_profile("slots")};
    const struct values_header *header = find_header();
    (void)state;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        place.bytes = depths[i];
        const struct values_slot *slot = slots_of_thread(&place).last;
        const char *stack = (const char *)(slot->registers + AGENT_REGISTER_COUNT);
        size_t least = depths[i] < AGENT_STACK_BYTES_MAX ? depths[i] : AGENT_STACK_BYTES_MAX;
        assert_int_equal(place.slots.live, 1);
        assert_int_equal(slot->value, 77);
        assert_int_equal(slot->skip, 3);
        assert_true(slot->tid && slot->tid != (uint32_t)getpid());
        assert_in_range(slot->stack_bytes, least, AGENT_STACK_BYTES_MAX);
        assert_int_equal(slot->is_cut, slot->stack_bytes == AGENT_STACK_BYTES_MAX);
        assert_non_null(memmem(stack, slot->stack_bytes, "ffffffffffffffff", 16));
        assert_true(slot->registers[AGENT_REGISTER_COUNT - 1] >= (uintptr_t)fgprof_custom_add &&
                    slot->registers[AGENT_REGISTER_COUNT - 1] <
                        (uintptr_t)fgprof_custom_add + 1000);
        assert_true(slot->registers[SP_AT] % 8 == 0);
    }
    assert_int_equal(memcmp(header->magic, VALUES_MAGIC, sizeof header->magic), 0);
    assert_int_equal(header->version, VALUES_VERSION);
    assert_int_equal(header->pid, getpid());
    assert_string_equal(header->profiles[header->profile_count - 1].name, "slots");
}

static ucontext_t back;
static fgprof_custom_profile *in_coroutine;

static void on_coroutine(void)
{
    assert_int_equal(fgprof_custom_add(in_coroutine, value_of(1), 0), 0);
}

/* The size of a stack that the program allocated itself is known only once it is copied: the slot
 * then shrinks to fit. */
static void test_a_stack_of_another_kind(void **state)
{
    const size_t bytes = 65536;
    struct values_header *header;
    ucontext_t there;
    (void)state;
    char *memory =
        mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED && !mprotect(memory + bytes, 4096, PROT_NONE));
    in_coroutine = new_profile("coroutine");
    header = find_header();
    assert_int_equal(getcontext(&there), 0);
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = bytes;
    there.uc_link = &back;
    makecontext(&there, on_coroutine, 0);
    assert_int_equal(swapcontext(&back, &there), 0);
    struct slots slots = count_slots();
    assert_int_equal(slots.live, 1);
    size_t offset = (size_t)((const char *)slots.last - (const char *)header);
    uint32_t size_class =
        header->slabs[(offset - VALUES_HEADER_BYTES) / VALUES_SLAB_BYTES].class_plus_1 - 1;
    assert_in_range(slots.last->stack_bytes, 8, 4096);
    assert_in_range(values_class_stack_bytes(size_class), slots.last->stack_bytes,
                    2 * slots.last->stack_bytes + 256);
    assert_true(slots.last->registers[SP_AT] + slots.last->stack_bytes ==
                (uintptr_t)memory + bytes);
    fgprof_custom_remove(in_coroutine, value_of(1));
    assert_int_equal(count_slots().live, 0);
    munmap(memory, bytes + 4096);
}

/* Values without a free slot are counted all the same; once others are removed, there are slots
 * again. */
static void test_all_the_memory_is_used(void **state)
{
    fgprof_custom_profile *profile = new_profile("full");
    const struct values_header *header = find_header();
    const struct values_profile *counted = &header->profiles[header->profile_count - 1];
    uintptr_t count = 0;
    (void)state;
    while (!counted->without_slot)
        assert_int_equal(add_below(AGENT_STACK_BYTES_MAX, profile, count++), 0);
    assert_int_equal(header->slab_count, VALUES_SLABS_MAX);
    assert_int_equal(fgprof_custom_count(profile), count);
    assert_int_equal(count_slots().live, count - 1);
    assert_int_equal(count_slots().used, count - 1); /* including smaller slots */
    fgprof_custom_remove(profile, value_of(count - 1));
    assert_int_equal(counted->without_slot, 0);
    fgprof_custom_remove(profile, value_of(0));
    for (uintptr_t value = 0; value <= count; value += count)
        assert_int_equal(add_below(AGENT_STACK_BYTES_MAX, profile, value), 0);
    assert_int_equal(counted->without_slot, 1);
    for (uintptr_t value = 0; value <= count; value++)
        fgprof_custom_remove(profile, value_of(value));
    assert_int_equal(counted->without_slot, 0);
    assert_int_equal(fgprof_custom_count(profile), 0);
    assert_int_equal(count_slots().live, 0);
    /* Smaller stacks use the larger slots. */
    for (uintptr_t value = 0; value < 1000; value++)
        assert_int_equal(fgprof_custom_add(profile, value_of(value), 0), 0);
    assert_int_equal(counted->without_slot, 0);
    for (uintptr_t value = 0; value < 1000; value++)
        fgprof_custom_remove(profile, value_of(value));
}

struct work {
    pthread_t thread;
    unsigned number;
    fgprof_custom_profile *own, *shared;
    pthread_barrier_t *barrier;
    atomic_uint *added;
};

/* Adds and removes the thread's own values, some of which are live at a time; then all threads add
 * the same value at once, and one succeeds. */
static void *work(void *context)
{
    const struct work *work = context;
    uintptr_t first = (uintptr_t)work->number << 32;
    for (uintptr_t i = 0; i < ADDS; i++) {
        if (i >= HELD)
            fgprof_custom_remove(work->own, value_of(first + i - HELD));
        assert_int_equal(fgprof_custom_add(work->own, value_of(first + i), 0), 0);
    }
    for (uintptr_t i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(work->barrier);
        int err = fgprof_custom_add(work->shared, value_of(i % 7), 0);
        assert_true(err == 0 || err == -EEXIST);
        if (!err)
            atomic_fetch_add(work->added, 1);
        pthread_barrier_wait(work->barrier);
        if (work->number == i % THREADS)
            fgprof_custom_remove(work->shared, value_of(i % 7));
    }
    return NULL;
}

static void start_all(struct work *all, void *(*function)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        all[i] = all[0];
        all[i].number = i;
        assert_int_equal(pthread_create(&all[i].thread, NULL, function, &all[i]), 0);
    }
}

static void test_counts_of_many_threads_are_exact(void **state)
{
    pthread_barrier_t barrier;
    atomic_uint added = 0;
    struct work all[THREADS] = {{.own = new_profile("own"),
                                 .shared = new_profile("shared"),
                                 .barrier = &barrier,
                                 .added = &added}};
    size_t used = count_slots().used + THREADS * (HELD + 2);
    (void)state;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (unsigned round = 0; round < 2; round++) {
        start_all(all, work);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(all[i].thread, NULL), 0);
        assert_int_equal(added, (round + 1) * ROUNDS);
        assert_int_equal(fgprof_custom_count(all[0].shared), 0);
        assert_int_equal(fgprof_custom_count(all[0].own), THREADS * HELD);
        struct slots slots = count_slots();
        assert_int_equal(slots.live, THREADS * HELD);
        /* No slots leak: the second round needs no more. */
        assert_in_range(slots.used, THREADS * HELD, used);
        used = slots.used;
        for (uintptr_t i = 0; i < THREADS; i++) {
            for (uintptr_t j = ADDS - HELD; j < ADDS; j++)
                fgprof_custom_remove(all[0].own, value_of((i << 32) + j));
        }
        assert_int_equal(fgprof_custom_count(all[0].own), 0);
        assert_int_equal(count_slots().live, 0);
    }
    pthread_barrier_destroy(&barrier);
}

static int wait_for(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* In the child: checks what it has and what it adds. Returns 0 if all is right. */
static int check_child(fgprof_custom_profile *profile)
{
    bool had_memory = find_header() != NULL;
    if (had_memory || fgprof_custom_lookup("forks") != profile || fgprof_custom_count(profile))
        return 1;
    fgprof_custom_remove(profile, value_of(1));
    if (fgprof_custom_add(profile, value_of(1), 0) || fgprof_custom_count(profile) != 1 ||
        fgprof_custom_add(profile, value_of(1), 0) != -EEXIST)
        return 2;
    const struct values_header *header = find_header();
    struct slots slots = count_slots();
    if (!header || header->pid != (uint32_t)getpid() || slots.live != 1 || slots.used != 1)
        return 3;
    new_profile("child's");
    return 0;
}

static void test_a_child_begins_anew(void **state)
{
    fgprof_custom_profile *profile = new_profile("forks");
    (void)state;
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(fgprof_custom_add(profile, value_of(i), 0), 0);
    pid_t child = fork();
    if (!child)
        _exit(check_child(profile));
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(fgprof_custom_count(profile), 3);
    assert_int_equal(count_slots().live, 3);
    assert_null(fgprof_custom_lookup("child's"));
    for (uintptr_t i = 0; i < 3; i++)
        fgprof_custom_remove(profile, value_of(i));
}

static atomic_bool is_over;

static void *add_on(void *context)
{
    const struct work *work = context;
    const void *value = value_of((uintptr_t)work->number + 100);
    while (!is_over) {
        assert_int_equal(fgprof_custom_add(work->own, value, 0), 0);
        fgprof_custom_remove(work->own, value);
    }
    return NULL;
}

/* Threads of the parent may hold any lock when it forks. */
static void test_a_child_of_a_busy_program(void **state)
{
    struct work all[THREADS] = {{.own = fgprof_custom_lookup("forks")}};
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* the sanitizer's runtime has locks that may be taken in a child */
#endif
    start_all(all, add_on);
    for (unsigned i = 0; i < 100; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(200); /* emulated machines are slow */
            for (uintptr_t value = 1; value < 1000; value++) {
                if (fgprof_custom_add(all[0].own, value_of(value), 0))
                    _exit(1);
            }
            _exit(fgprof_custom_count(all[0].own) != 999);
        }
        assert_int_equal(wait_for(child), 0);
    }
    is_over = true;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    assert_int_equal(fgprof_custom_count(all[0].own), 0);
    assert_int_equal(count_slots().live, 0);
}

/* In a child without memory for values: creates it within this file size limit. */
static int add_within(rlim_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    fgprof_custom_profile *profile = fgprof_custom_lookup("forks");
    if (setrlimit(RLIMIT_FSIZE, &limit))
        return 1;
    for (uintptr_t value = 0; value < 2000; value++) {
        int err = fgprof_custom_add(profile, value_of(value), 0);
        if (err)
            return -err;
    }
    return fgprof_custom_count(profile) == 2000 ? 0 : 2;
}

static void test_a_small_limit_of_files(void **state)
{
    static const struct {
        rlim_t bytes;
        int result;
    } cases[] = {{VALUES_HEADER_BYTES - 1, EFBIG}, {VALUES_HEADER_BYTES + 5, 0}, {1 << 20, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t child = fork();
        if (!child)
            _exit(add_within(cases[i].bytes));
        assert_int_equal(wait_for(child), cases[i].result << 8);
    }
}

/* The kernel populates every page that such a program may access, as soon as it is mapped. */
static void test_a_program_that_locks_its_memory(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        if (mlockall(MCL_FUTURE))
            _exit(77);
        if (fgprof_custom_add(fgprof_custom_lookup("forks"), value_of(1), 0))
            _exit(1);
        unsigned char pages[VALUES_BYTES_MAX / 4096];
        size_t there = 0;
        if (mincore(find_header(), VALUES_BYTES_MAX, pages))
            _exit(2);
        for (size_t i = 0; i < sizeof pages; i++)
            there += pages[i] & 1;
        _exit(there < 100 ? 0 : 3);
    }
    int status = wait_for(child);
    if (status == 77 << 8)
        skip();
    assert_int_equal(status, 0);
}

/* Runs last: no profile can be created afterwards. */
static void test_too_many_profiles(void **state)
{
    fgprof_custom_profile *profile;
    char name[32];
    int err = 0;
    (void)state;
    for (unsigned i = 0; !err; i++) {
        snprintf(name, sizeof name, "many/%u", i);
        err = fgprof_custom_new(name, &profile);
        assert_in_range(i, 0, VALUES_PROFILES_MAX);
    }
    assert_int_equal(err, -ENOSPC);
    assert_int_equal(find_header()->profile_count, VALUES_PROFILES_MAX);
    assert_int_equal(fgprof_custom_add(profile, value_of(1), 0), 0);
    assert_int_equal(find_header()->profiles[VALUES_PROFILES_MAX - 1].count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_can_not_be_as_it_must),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_all_profiles),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_a_slot_has),
        cmocka_unit_test(test_a_stack_of_another_kind),
        cmocka_unit_test(test_counts_of_many_threads_are_exact),
        cmocka_unit_test(test_all_the_memory_is_used),
        cmocka_unit_test(test_a_child_begins_anew),
        cmocka_unit_test(test_a_child_of_a_busy_program),
        cmocka_unit_test(test_a_small_limit_of_files),
        cmocka_unit_test(test_a_program_that_locks_its_memory),
        cmocka_unit_test(test_too_many_profiles),
    };
    return cmocka_run_group_tests_name("custom", tests, NULL, NULL);
}
