/* From an observation to a stack, and the requests on the way. */
#include "unit.h"

#ifdef __x86_64__

#include "make_walk.h"
#include "base/clock.h"
#include "wait/wait_list.h"
#include "worker/unwind_step.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>

uint64_t __wrap_registers_code_mask(void);

uint64_t __wrap_registers_code_mask(void)
{
    return UINT64_MAX;
}

/* DEEP has a frame of 20,000 bytes; NEEDING has its CFA at rbp + 16, and its code does not show
 * where it saves rbp. */
enum {
    FIRST = 0x100,
    NEEDING = 0x200,
    DEEP = 0x300,
    PLAIN = 0x600, /* calls at several offsets; CFA = rsp + 8 */
    INDIRECT = PLAIN + 0x50,
};

#define DEEP_WORD 2499u /* the word with its return address */
#define FIRST_LIMIT (16u << 10)
#define OTHER 0x7ffe00010000u
#define STACKS                                                                                     \
    "7ffd00000000-7ffd00010000 rw-p 00000000 00:00 0 \n"                                           \
    "7ffe00000000-7ffe00100000 rw-p 00000000 00:00 0 \n"

static struct made_walk made;
static struct results results;
static struct channel *channel;
static struct means means;
static struct rule_tables rules;
static struct program program;
static struct program_tables tables;
static struct thread_unwinding threads[3];
static uint64_t round_ns, tick;

static int set_up(void **state)
{
    (void)state;
    static const uint8_t unreadable[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4};
    static const uint8_t indirect[] = {0xff, 0xd0};
    begin_module(&made);
    put_function(&made, FIRST, 0x80, BYTES(DW_CFA_undefined, RIP));
    put_function(&made, NEEDING, 0x80, BYTES(DW_CFA_def_cfa, RBP, 16, DW_CFA_offset | RBP, 2));
    put_function(&made, DEEP, 0x80, BYTES(DW_CFA_def_cfa_offset, 0xa0, 0x9c, 0x01));
    put_function(&made, PLAIN, 0x80, NULL, 0);
    put_code(&made, NEEDING, unreadable, sizeof unreadable);
    put_code(&made, INDIRECT - 2, indirect, sizeof indirect);
    put_code(&made, 0x3000, (const uint8_t[]){0xf4}, 1);
    end_module(&made);
    made.words[0] = made.words[DEEP_WORD] = code_at(FIRST + 5);
    assert_int_equal(results_init(&results), 0);
    assert_int_equal(channel_new(&channel), 0);
    means =
        (struct means){.channel = channel, .results = &results, .max_depth = 100, .rules = &rules};
    program = (struct program){.number = 5, .proc_fd = -1, .mem_fd = -1};
    program.maps_fd = file_of_text(STACKS);
    round_ns = 1000;
    tick = 10;
    memset(&tables, 0, sizeof tables);
    tables.maps.space = &made.space;
    tables.maps.reading.done_ns = UINT64_MAX; /* its maps are up to date */
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        threads[i] = (struct thread_unwinding){.stack_limit = STACK_LIMIT_FIRST};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sites_free(&tables.sites);
    stack_areas_free(&tables.maps.areas);
    close(program.maps_fd);
    rule_tables_free(&rules);
    channel_free(channel);
    results_free(&results);
    made_walk_free(&made);
    return 0;
}

/* A thread's id is 100 plus its number. All requests have been served. */
static struct observation observe(uint32_t thread, uint64_t pc)
{
    set_register(&made, RIP, pc);
    set_register(&made, RSP, word_at(0));
    return (struct observation){
        .thread = thread,
        .tid = (pid_t)(100 + thread),
        .program = &program,
        .tick = tick,
        .round_ns = round_ns,
        .evidence = EVIDENCE_ASLEEP,
        .state = THREAD_SLEEPING,
        .wait.syscall_number = SYS_clock_nanosleep,
        .served = threads[thread].asked,
        .snapshot = &made.snapshot,
    };
}

static bool is_asked_for(const struct observation *observation)
{
    enum unwind_result result;
    struct thread_unwinding *thread = &threads[observation->thread];
    assert_int_equal(unwind_observation(&means, observation, &tables, thread, &made.stack, &result),
                     0);
    assert_int_not_equal(result, UNWIND_GONE);
    return result == UNWIND_ASKED;
}

static bool is_asked_at(uint32_t thread, uint64_t offset)
{
    const struct observation observation = observe(thread, code_at(offset));
    return is_asked_for(&observation);
}

static struct request next(enum request_kind kind)
{
    struct request request;
    assert_true(channel_next_request(channel, &request));
    assert_int_equal(request.kind, kind);
    return request;
}

static struct request next_of(enum request_kind kind, uint32_t thread)
{
    struct request request = next(kind);
    assert_int_equal(request.thread, thread);
    assert_int_equal(request.tid, 100 + thread);
    return request;
}

static void assert_no_request(void)
{
    struct request request;
    assert_false(channel_next_request(channel, &request));
}

static void assert_whole(size_t depth)
{
    assert_int_equal(made.stack.cut, STACK_WHOLE);
    assert_int_equal(made.stack.depth, depth);
}

static void set_copied(size_t bytes)
{
    made.snapshot.stack.bytes = bytes;
}

static void test_what_is_there_is_enough(void **state)
{
    (void)state;
    set_copied(FIRST_LIMIT);
    assert_false(is_asked_at(0, PLAIN + 4));
    assert_whole(2);
    assert_no_request();
}

static void test_a_thread_of_the_kernels_has_no_stack(void **state)
{
    (void)state;
    const struct observation observation = observe(0, 0);
    set_register(&made, RSP, 0);
    assert_false(is_asked_for(&observation));
    assert_int_equal(made.stack.cut, STACK_KERNEL_ONLY);
    assert_int_equal(made.stack.depth, 0);
    assert_no_request();
}

static void test_a_longer_copy_is_asked_for(void **state)
{
    (void)state;
    set_copied(FIRST_LIMIT);
    assert_true(is_asked_at(0, DEEP + 4));
    assert_int_equal(next_of(REQUEST_STACK_ANEW, 0).stack_limit, 8 * FIRST_LIMIT);
    /* Many observations were made before the sampling thread got the request: the next one is
     * awaited. */
    for (unsigned i = 0; i < 20; i++) {
        struct observation old = observe(0, code_at(DEEP + 4));
        old.served--;
        assert_true(is_asked_for(&old));
    }
    assert_int_equal(threads[0].tries, 1);
    assert_no_request();
    /* But an observation that suffices is counted. */
    struct observation enough = observe(0, code_at(PLAIN + 4));
    enough.served--;
    assert_false(is_asked_for(&enough));
    set_copied(sizeof made.words);
    threads[0].stack_limit = sizeof made.words;
    assert_false(is_asked_at(0, DEEP + 4));
    assert_whole(2);
    assert_int_equal(threads[0].tries, 0);
    assert_no_request();
}

/* However much is copied, the stack goes on. */
static void test_a_stack_without_end_is_asked_for_a_few_times(void **state)
{
    (void)state;
    size_t limit = FIRST_LIMIT;
    set_copied(FIRST_LIMIT);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(is_asked_at(0, DEEP + 4));
        limit = i ? limit : 8 * FIRST_LIMIT;
        assert_int_equal(next_of(REQUEST_STACK_ANEW, 0).stack_limit, limit);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_false(is_asked_at(0, DEEP + 4));
        assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    }
    assert_no_request();
    /* After another stack of the thread that can be followed, requests start again. */
    assert_false(is_asked_at(0, PLAIN + 4));
    assert_true(is_asked_at(0, DEEP + 4));
}

/* If it were not counted, the thread's time would go to the few stacks that can be followed. */
static void test_a_stack_in_unreadable_memory_is_counted_as_found(void **state)
{
    (void)state;
    set_copied(1024);
    made.snapshot.stack.is_unreadable = true;
    for (enum evidence evidence = EVIDENCE_ASLEEP; evidence <= EVIDENCE_SAMPLED; evidence++) {
        struct observation observation = observe(0, code_at(DEEP + 4));
        observation.evidence = evidence;
        assert_false(is_asked_for(&observation));
        assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    }
    assert_no_request();
    /* Once it can be read, a longer copy is requested again. */
    made.snapshot.stack.is_unreadable = false;
    assert_true(is_asked_at(0, DEEP + 4));
    next_of(REQUEST_STACK_ANEW, 0);
}

static void test_the_longest_copy_is_the_last(void **state)
{
    (void)state;
    static const size_t limits[] = {FIRST_LIMIT, 8 * FIRST_LIMIT, 64 * FIRST_LIMIT,
                                    512 * FIRST_LIMIT, 16u << 20};
    size_t count = sizeof limits / sizeof *limits;
    unsigned char *memory = made.snapshot.stack.memory;
    made.snapshot.stack.memory = calloc(1, 16u << 20);
    made.snapshot.stack.end = MADE_STACK + (64u << 20);
    assert_non_null(made.snapshot.stack.memory);
    for (size_t i = 0; i < count; i++) {
        set_copied(limits[i]);
        set_register(&made, RBP, MADE_STACK + limits[i] + 512);
        bool is_last = i + 1 == count;
        assert_int_equal(is_asked_at(0, NEEDING + 0x40), !is_last);
        if (!is_last)
            assert_int_equal(next_of(REQUEST_STACK_ANEW, 0).stack_limit, limits[i + 1]);
    }
    assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    /* Nor is a longer copy requested after a shorter one. */
    set_copied(FIRST_LIMIT);
    set_register(&made, RBP, MADE_STACK + FIRST_LIMIT + 512);
    assert_false(is_asked_at(0, NEEDING + 0x40));
    free(made.snapshot.stack.memory);
    made.snapshot.stack.memory = memory;
}

static void test_what_is_not_needed_is_told_seldom(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 15; i++)
        assert_false(is_asked_at(0, PLAIN + 4));
    assert_no_request();
    /* A stack that needed more restarts the count. */
    assert_false(is_asked_at(0, DEEP + 4));
    assert_int_equal(next_of(REQUEST_STACK, 0).stack_limit, 40000);
    for (unsigned i = 0; i < 15; i++)
        assert_false(is_asked_at(0, PLAIN + 4));
    assert_no_request();
    assert_false(is_asked_at(0, PLAIN + 4));
    assert_int_equal(next_of(REQUEST_STACK, 0).stack_limit, 2048);
    for (unsigned i = 0; i < 100; i++)
        assert_false(is_asked_at(0, PLAIN + 4));
    assert_no_request();
}

static void test_the_end_of_a_new_stack_is_found(void **state)
{
    (void)state;
    set_copied(1024);
    made.snapshot.stack.end_is_known = false;
    made.snapshot.stack.end = MADE_STACK + 4096;
    assert_true(is_asked_at(0, DEEP + 4));
    struct request areas = next(REQUEST_AREAS);
    assert_int_equal(areas.program, 5);
    assert_int_equal(areas.areas.count, 2);
    assert_int_equal(areas.areas.items[0].end, 0x7ffd00010000u);
    stack_areas_free(&areas.areas);
    next_of(REQUEST_ANEW, 0);
    /* Another thread in the same round: the areas are known. */
    assert_true(is_asked_at(1, DEEP + 4));
    next_of(REQUEST_ANEW, 1);
    assert_no_request();
}

/* The search for Python reads the ends of mappings too, but does not send them. */
static void test_an_end_that_was_read_for_something_else_is_told(void **state)
{
    (void)state;
    const struct observation observation = observe(0, code_at(DEEP + 4));
    assert_int_equal(program_maps_read_areas(&tables.maps, &observation), 0);
    assert_no_request();
    set_copied(1024);
    made.snapshot.stack.end_is_known = false;
    made.snapshot.stack.end = MADE_STACK + 4096;
    assert_true(is_asked_for(&observation));
    struct request areas = next(REQUEST_AREAS);
    assert_int_equal(areas.areas.count, 2);
    stack_areas_free(&areas.areas);
    next_of(REQUEST_ANEW, 0);
    assert_no_request();
}

static void test_an_end_that_is_not_there_is_looked_for_once_a_round(void **state)
{
    (void)state;
    close(program.maps_fd);
    program.maps_fd = file_of_text("1000-2000 rw-p 00000000 00:00 0 \n");
    set_copied(1024);
    made.snapshot.stack.end_is_known = false;
    assert_false(is_asked_at(0, DEEP + 4));
    struct request areas = next(REQUEST_AREAS);
    stack_areas_free(&areas.areas);
    assert_false(is_asked_at(1, DEEP + 4));
    assert_no_request();
}

static void put_other_frame(void)
{
    set_register(&made, RBP, OTHER);
    made.snapshot.other_stack = (struct stack_copy){0};
}

static void test_another_stack_is_asked_for(void **state)
{
    (void)state;
    uint64_t words[2] = {0, code_at(FIRST + 5)};
    put_other_frame();
    assert_true(is_asked_at(0, NEEDING + 0x40));
    struct request areas = next(REQUEST_AREAS);
    stack_areas_free(&areas.areas);
    struct request request = next_of(REQUEST_STACK_ANEW, 0);
    assert_int_equal(request.stack_limit, FIRST_LIMIT);
    assert_true(request.other_stack.address <= OTHER);
    assert_true(request.other_stack.address + request.other_stack.bytes > OTHER + 16);
    made.snapshot.other_stack = (struct stack_copy){
        .address = OTHER, .memory = (unsigned char *)words, .bytes = sizeof words};
    assert_false(is_asked_at(0, NEEDING + 0x40));
    assert_whole(2);
    assert_no_request();
    /* While it is used, it stays; later it is no longer copied. */
    threads[0].stack_limit = 4096;
    for (unsigned i = 0; i < 15; i++)
        assert_false(is_asked_at(0, PLAIN + 4));
    assert_false(is_asked_at(0, NEEDING + 0x40));
    assert_no_request();
    for (unsigned i = 0; i < 16; i++)
        assert_false(is_asked_at(0, PLAIN + 4));
    assert_int_equal(next_of(REQUEST_STACK, 0).other_stack.address, 0);
    assert_no_request();
    made.snapshot.other_stack = (struct stack_copy){0};
}

static void test_another_stack_in_vain_is_asked_for_ever_less_often(void **state)
{
    (void)state;
    unsigned asked = 0;
    put_other_frame();
    for (unsigned i = 0; i < 64; i++, tick++)
        asked += is_asked_at(0, NEEDING + 0x40);
    assert_int_equal(asked, 7); /* 1, 2, 4, ... 64 */
}

/* By the time the kernel's sample is read, the thread is elsewhere. A better observation is
 * requested, and the partial sample counts only if none comes. */
static void test_a_partial_sample_of_the_kernel_is_not_counted(void **state)
{
    (void)state;
    put_other_frame();
    for (unsigned i = 0; i < 5; i++, tick++) {
        struct observation observation = observe(0, code_at(NEEDING + 0x40));
        observation.evidence = EVIDENCE_SAMPLED;
        assert_true(is_asked_for(&observation));
    }
    struct observation unmapped = observe(1, 0x1234567);
    assert_false(is_asked_for(&unmapped));
    unmapped.evidence = EVIDENCE_SAMPLED;
    assert_true(is_asked_for(&unmapped));
    struct observation whole = observe(2, code_at(PLAIN + 4));
    whole.evidence = EVIDENCE_SAMPLED;
    assert_false(is_asked_for(&whole));
}

static void test_unknown_code_is_looked_at_again_once(void **state)
{
    (void)state;
    made.words[0] = 0x1234567;
    assert_false(is_asked_at(0, PLAIN + 4));
    next_of(REQUEST_LATER, 0);
    for (unsigned i = 0; i < 5; i++)
        assert_false(is_asked_at(0, PLAIN + 4));
    assert_no_request();
    made.words[0] = code_at(FIRST + 5);
    assert_false(is_asked_at(0, PLAIN + 4));
    made.words[0] = 0x1234567;
    assert_false(is_asked_at(0, PLAIN + 4));
    next_of(REQUEST_LATER, 0);
}

/* The program is gone: its memory is empty. */
static void test_unknown_code_of_a_program_that_is_gone(void **state)
{
    (void)state;
    const struct observation observation = observe(0, code_at(PLAIN + 4));
    enum unwind_result result;
    program.mem_fd = file_of_text("");
    assert_int_equal(
        unwind_observation(&means, &observation, &tables, &threads[0], &made.stack, &result), 0);
    assert_int_equal(result, UNWIND_DONE);
    made.words[0] = 0x1234567;
    assert_int_equal(
        unwind_observation(&means, &observation, &tables, &threads[0], &made.stack, &result), 0);
    assert_int_equal(result, UNWIND_GONE);
    close(program.mem_fd);
}

/* Once per round, and a few more times for a new program. */
static void test_maps_are_read_for_unknown_code(void **state)
{
    (void)state;
    made.words[0] = 0x1234567;
    close(program.maps_fd);
    program.maps_fd = file_of_text("");
    tables.maps.spare_readings = 1;
    for (unsigned i = 0; i < 3; i++) {
        tables.maps.reading.done_ns = i == 2 ? round_ns - 1 : UINT64_MAX;
        assert_false(is_asked_at(0, PLAIN + 4));
        bool was_read = tables.maps.reading.done_ns != UINT64_MAX;
        assert_int_equal(was_read, i != 1);
        assert_true(i != 2 || tables.maps.reading.done_ns > round_ns);
    }
}

#define REPLACED_NS 1000000000u

static bool is_asked_of(uint64_t made_ns, enum evidence evidence)
{
    struct observation observation = observe(0, code_at(PLAIN + 4));
    observation.evidence = evidence;
    observation.now.at_ns = evidence == EVIDENCE_SAMPLED ? 0 : made_ns;
    observation.sampled.at_ns = evidence == EVIDENCE_SAMPLED ? made_ns : 0;
    return is_asked_for(&observation);
}

/* An observation from long before may have gone through the code that was there. */
static void test_code_that_was_replaced(void **state)
{
    (void)state;
    assert_false(is_asked_of(1, EVIDENCE_SAMPLED));
    assert_no_request();
    tables.maps.replaced_ns = REPLACED_NS;
    assert_true(is_asked_of(REPLACED_NS - 50000000, EVIDENCE_SAMPLED));
    assert_int_equal(next(REQUEST_HURRY).program, 5);
    assert_true(is_asked_of(REPLACED_NS - 50000000, EVIDENCE_ASLEEP));
    assert_false(is_asked_of(REPLACED_NS - 1000000, EVIDENCE_SAMPLED));
    assert_false(is_asked_of(REPLACED_NS + 1000000, EVIDENCE_ASLEEP));
    assert_no_request();
}

static void test_that_code_was_replaced_is_seen_in_the_maps(void **state)
{
    (void)state;
    char line[100], path[] = "";
    close(program.maps_fd);
    snprintf(line, sizeof line, "%" PRIx64 "-%" PRIx64 " r-xp 00000000 00:00 0 [other]\n",
             code_at(0), code_at(0x1000));
    program.maps_fd = file_of_text(line);
    tables.maps.reading.done_ns = 1;
    made.space.mappings[0].path = path;
    made.words[0] = 0x1234567;
    is_asked_at(0, PLAIN + 4);
    assert_true(tables.maps.replaced_ns > 1);
    assert_ptr_not_equal(tables.maps.space, &made.space);
    made.space.mappings[0].path = NULL;
    struct request request;
    do
        assert_true(channel_next_request(channel, &request));
    while (request.kind != REQUEST_HURRY);
}

/* A frame with its frame pointer at word 33, which nothing else shows. */
static void put_needing_frame(void)
{
    forget_register(&made, RBP);
    made.words[33] = 0;
    made.words[34] = code_at(INDIRECT);
    made.words[35] = code_at(FIRST + 5);
}

static void test_a_stop_tells_the_frame_pointer_of_a_site(void **state)
{
    (void)state;
    put_needing_frame();
    assert_true(is_asked_at(0, NEEDING + 0x40));
    struct request request = next_of(REQUEST_FRAME_POINTER, 0);
    assert_int_equal(request.asleep.pc, code_at(NEEDING + 0x40));
    assert_int_equal(request.asleep.sp, word_at(0));
    assert_int_equal(request.asleep.state, THREAD_SLEEPING);
    assert_int_equal(request.asleep.syscall_number, SYS_clock_nanosleep);
    /* Two other threads there: they are counted with cut stacks, and observed again later. */
    for (uint32_t i = 1; i < 3; i++) {
        assert_false(is_asked_at(i, NEEDING + 0x40));
        assert_int_equal(made.stack.cut, STACK_CUT_NO_REGISTER);
        next_of(REQUEST_LATER, i);
    }
    assert_no_request();
    struct observation stopped = observe(0, code_at(NEEDING + 0x40));
    stopped.evidence = EVIDENCE_STOPPED;
    stopped.stop.asked = request.asleep;
    set_register(&made, RBP, word_at(33));
    set_register(&made, RBX, 0);
    assert_false(is_asked_for(&stopped));
    assert_whole(3);
    assert_no_request();
    forget_register(&made, RBP);
    forget_register(&made, RBX);
    assert_false(is_asked_at(1, NEEDING + 0x40));
    assert_whole(3);
    assert_no_request();
}

/* The thread that was to be stopped has moved on. */
static void test_another_thread_is_tried_a_few_times(void **state)
{
    (void)state;
    put_needing_frame();
    for (uint32_t i = 0; i < 3; i++) {
        round_ns = monotonic_ns();
        assert_true(is_asked_at(i, NEEDING + 0x40));
        next_of(REQUEST_FRAME_POINTER, i);
        /* Observed before the request was made. */
        assert_false(is_asked_at((i + 1) % 3, NEEDING + 0x40));
        next_of(REQUEST_LATER, (i + 1) % 3);
    }
    round_ns = monotonic_ns();
    assert_false(is_asked_at(0, NEEDING + 0x40));
    assert_int_equal(made.stack.cut, STACK_CUT_NO_REGISTER);
    next_of(REQUEST_REGISTERS, 0);
    assert_no_request();
}

static void test_a_stop_that_tells_nothing_is_the_last(void **state)
{
    (void)state;
    put_needing_frame();
    assert_true(is_asked_at(0, NEEDING + 0x40));
    struct observation stopped = observe(0, code_at(NEEDING + 0x40));
    stopped.evidence = EVIDENCE_STOPPED;
    stopped.stop.asked = next(REQUEST_FRAME_POINTER).asleep;
    set_register(&made, RBP, word_at(60));
    made.words[61] = code_at(0x900); /* no call before it, and no function around it */
    assert_false(is_asked_for(&stopped));
    forget_register(&made, RBP);
    round_ns = monotonic_ns();
    assert_false(is_asked_at(1, NEEDING + 0x40));
    assert_int_equal(made.stack.cut, STACK_CUT_NO_REGISTER);
    next_of(REQUEST_REGISTERS, 1);
    assert_no_request();
}

static void test_sleepers_are_not_stopped_for_a_dump_or_in_calls_that_notice(void **state)
{
    (void)state;
    struct wait_list waits = {0};
    put_needing_frame();
    means.waits = &waits;
    assert_false(is_asked_at(0, NEEDING + 0x40));
    assert_no_request();
    means.waits = NULL;
    struct observation observation = observe(0, code_at(NEEDING + 0x40));
    observation.wait.syscall_number = SYS_epoll_wait;
    /* Its registers are requested once: they are reported when it sleeps again. */
    assert_false(is_asked_for(&observation));
    next_of(REQUEST_REGISTERS, 0);
    assert_false(is_asked_for(&observation));
    assert_no_request();
    set_register(&made, RBP, word_at(33));
    assert_false(is_asked_for(&observation));
    assert_whole(3);
}

/* In a page fault, the thread has the frame pointer that it had when it was last stopped there. */
static void test_a_page_fault_is_followed_as_the_last_stop(void **state)
{
    (void)state;
    put_needing_frame();
    struct observation stopped = observe(0, code_at(PLAIN + 4));
    stopped.evidence = EVIDENCE_STOPPED;
    set_register(&made, RBP, word_at(33));
    set_register(&made, RBX, 0);
    assert_false(is_asked_for(&stopped));
    forget_register(&made, RBP);
    forget_register(&made, RBX);
    struct observation faulting = observe(0, code_at(NEEDING + 0x40));
    faulting.wait.syscall_number = -1;
    assert_false(is_asked_for(&faulting));
    assert_whole(3);
    assert_no_request();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_there_is_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_thread_of_the_kernels_has_no_stack, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_longer_copy_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stack_without_end_is_asked_for_a_few_times, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_stack_in_unreadable_memory_is_counted_as_found,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_longest_copy_is_the_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_not_needed_is_told_seldom, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_of_a_new_stack_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_end_that_was_read_for_something_else_is_told,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_end_that_is_not_there_is_looked_for_once_a_round,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_stack_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_stack_in_vain_is_asked_for_ever_less_often,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_partial_sample_of_the_kernel_is_not_counted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_code_is_looked_at_again_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_code_of_a_program_that_is_gone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_maps_are_read_for_unknown_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_code_that_was_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_that_code_was_replaced_is_seen_in_the_maps, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_stop_tells_the_frame_pointer_of_a_site, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_another_thread_is_tried_a_few_times, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_stop_that_tells_nothing_is_the_last, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_sleepers_are_not_stopped_for_a_dump_or_in_calls_that_notice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_page_fault_is_followed_as_the_last_stop, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("unwind_step", tests, NULL, NULL);
}

#elif defined __aarch64__

#include "make_go_code.h"
#include "make_walk.h"
#include "worker/unwind_step.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The code is at a higher address than any in a process under an emulator. */
uint64_t __wrap_registers_code_mask(void);

uint64_t __wrap_registers_code_mask(void)
{
    return UINT64_MAX;
}

enum { FIRST = 0x100, WRAPPER = 0x200 };
enum { X19 = 19, X29 = 29, X30 = 30 };

static struct made_walk made;
static struct results results;
static struct channel *channel;
static struct means means;
static struct rule_tables rules;
static struct program program = {.number = 5, .maps_fd = -1, .proc_fd = -1, .mem_fd = -1};
static struct program_tables tables;
static struct thread_unwinding thread = {.stack_limit = 16u << 10};

static void begin_step(void)
{
    assert_int_equal(results_init(&results), 0);
    assert_int_equal(channel_new(&channel), 0);
    means =
        (struct means){.channel = channel, .results = &results, .max_depth = 100, .rules = &rules};
    tables.maps.space = &made.space;
    tables.maps.reading.done_ns = UINT64_MAX; /* its maps are new */
}

static void end_step(void)
{
    sites_free(&tables.sites);
    rule_tables_free(&rules);
    channel_free(channel);
    results_free(&results);
    made_walk_free(&made);
}

static void begin(void)
{
    static const struct made_form form = {1, false, "zR", 0x1b, 4, -8, X30};
    static const uint32_t first = 0x94000040;                   /* bl WRAPPER */
    static const uint32_t wrapper[] = {0xd4000001, 0xd65f03c0}; /* svc #0; ret */
    begin_module(&made);
    memset(made.code, 0, sizeof made.code);
    put_code(&made, FIRST, (const uint8_t *)&first, sizeof first);
    put_code(&made, WRAPPER, (const uint8_t *)wrapper, sizeof wrapper);
    uint64_t cie = put_cie(&made.eh, &form, BYTES(DW_CFA_def_cfa, 31, 0));
    put_fde(&made.eh, &form, cie, MADE_ADDRESS + FIRST, 0x20, BYTES(DW_CFA_undefined, X30));
    end_module(&made);
    begin_step();
}

/* Observes the thread where it sleeps. */
static enum unwind_result observe_at(uint64_t pc, enum evidence evidence,
                                     const struct sleep_place *asked)
{
    enum unwind_result result;
    set_register(&made, architecture.pc, pc);
    set_register(&made, architecture.sp, word_at(0));
    struct observation observation = {
        .tid = getpid(),
        .program = &program,
        .tick = 10,
        .round_ns = 1000,
        .evidence = evidence,
        .state = THREAD_SLEEPING,
        .wait.syscall_number = SYS_clock_nanosleep,
        .snapshot = &made.snapshot,
    };
    if (asked)
        observation.stop.asked = *asked;
    assert_int_equal(
        unwind_observation(&means, &observation, &tables, &thread, &made.stack, &result), 0);
    return result;
}

/* Behind the wrapper's system call. */
static enum unwind_result observe(enum evidence evidence, const struct sleep_place *asked)
{
    return observe_at(code_at(WRAPPER + 4), evidence, asked);
}

/* A stop shows the link register once, and the kernel's record of its switches each time. */
static void test_the_link_register_of_a_sleeper(void **state)
{
    (void)state;
    struct request request;
    begin();
    assert_int_equal(observe(EVIDENCE_ASLEEP, NULL), UNWIND_ASKED);
    assert_true(channel_next_request(channel, &request));
    assert_int_equal(request.kind, REQUEST_FRAME_POINTER);
    set_register(&made, X19, 0);
    set_register(&made, X29, word_at(33));
    set_register(&made, X30, code_at(FIRST + 4));
    assert_int_equal(observe(EVIDENCE_STOPPED, &request.asleep), UNWIND_DONE);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(WRAPPER + 4), code_at(FIRST + 3));
    forget_register(&made, X19);
    forget_register(&made, X29);
    forget_register(&made, X30);
    assert_false(channel_next_request(channel, &request));
    assert_int_equal(observe(EVIDENCE_ASLEEP, NULL), UNWIND_DONE);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_REGISTER);
    assert_true(channel_next_request(channel, &request));
    assert_int_equal(request.kind, REQUEST_REGISTERS);
    set_register(&made, X30, code_at(FIRST + 4));
    assert_int_equal(observe(EVIDENCE_ASLEEP, NULL), UNWIND_DONE);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(WRAPPER + 4), code_at(FIRST + 3));
    assert_false(channel_next_request(channel, &request));
    end_step();
}

enum { ASMCGOCALL, CGOCALL, IN_C, GOEXIT, COUNT };

static const struct made_function functions[COUNT] = {
    [ASMCGOCALL] = {.name = "runtime.asmcgocall", .frame_bytes = 16, .sets_stack_pointer = true},
    [CGOCALL] = {.name = "runtime.cgocall", .frame_bytes = 32},
    [IN_C] = {.name = "sleep", .frame_bytes = 32},
    [GOEXIT] = {.name = "runtime.goexit"},
};

/* A thread of Go that sleeps in C, with nothing on its stack but what its goroutine is, which is in
 * this process's memory. */
static void begin_c(struct made_go *go, const uint64_t *goroutine)
{
    static const uint32_t push_link[] = {[ASMCGOCALL] = 0xf81f0ffeu, /* str x30, [sp, #-16]! */
                                         [CGOCALL] = 0xf81e0ffeu,    /* str x30, [sp, #-32]! */
                                         [IN_C] = 0xf81e0ffeu};
    begin_module(&made);
    end_module(&made);
    make_go_code(go, functions, COUNT);
    for (unsigned i = 0; i < sizeof push_link / sizeof *push_link; i++)
        put_go32(go, go_code_at(i, 0), push_link[i]);
    put_go_indirect_call(go, ASMCGOCALL, 0x28);
    put_go_call(go, CGOCALL, 0x20, ASMCGOCALL);
    made.mappings[0] = (struct mapping){.start = MADE_BIAS + MADE_GO_CODE,
                                        .end = MADE_BIAS + go_code_at(COUNT, 0),
                                        .module = &go->module,
                                        .bias = MADE_BIAS,
                                        .has_bias = true};
    made.words[0] = MADE_BIAS + go_code_at(ASMCGOCALL, 0x28);
    made.words[4] = (uintptr_t)goroutine;
    made.words[5] = 64;
    begin_step();
}

/* The goroutine's stack is the rest of the thread's. */
static void test_the_end_of_a_goroutines_stack_is_read(void **state)
{
    (void)state;
    static const uint64_t only_read[2] = {1, 1};
    uint64_t goroutine[2] = {word_at(0), word_at(40)};
    uint64_t in_c = MADE_BIAS + go_code_at(IN_C, 0x20);
    struct made_go go;
    begin_c(&go, goroutine);
    program.maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    made.words[32] = MADE_BIAS + go_code_at(CGOCALL, 0x20);
    made.words[34] = MADE_BIAS + go_code_at(GOEXIT, 4);
    made.snapshot.other_word = (struct other_word){(uintptr_t)&goroutine[1], 0}; /* of another */
    assert_int_equal(observe_at(in_c, EVIDENCE_ASLEEP, NULL), UNWIND_DONE);
    ASSERT_STACK(&made.stack, STACK_WHOLE, in_c, MADE_BIAS + go_code_at(ASMCGOCALL, 0x27),
                 MADE_BIAS + go_code_at(CGOCALL, 0x1f), MADE_BIAS + go_code_at(GOEXIT, 3));
    /* What can't be read is asked for once; and a thread has one goroutine. */
    made.words[4] = 8;
    assert_int_equal(observe_at(in_c, EVIDENCE_ASLEEP, NULL), UNWIND_DONE);
    assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    /* A goroutine is never in what a file has. */
    made.words[4] = (uintptr_t)only_read;
    assert_int_equal(observe_at(in_c, EVIDENCE_ASLEEP, NULL), UNWIND_DONE);
    assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    assert_int_equal(made.snapshot.other_word.address, 0);
    made.words[4] = (uintptr_t)goroutine;
    made.words[34] = MADE_BIAS + go_code_at(ASMCGOCALL, 0x28);
    made.words[38] = (uintptr_t)&goroutine[1];
    assert_int_equal(observe_at(in_c, EVIDENCE_ASLEEP, NULL), UNWIND_DONE);
    assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    close(program.maps_fd);
    program.maps_fd = -1;
    stack_areas_free(&tables.maps.areas);
    end_step();
    made_go_free(&go);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_link_register_of_a_sleeper),
        cmocka_unit_test(test_the_end_of_a_goroutines_stack_is_read),
    };
    return cmocka_run_group_tests_name("unwind_step", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
