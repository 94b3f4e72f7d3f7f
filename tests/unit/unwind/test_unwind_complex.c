/* Code whose call frame information no rule can say: such a stack goes to libunwind, all of it. */
#include "unit.h"

#ifdef __x86_64__

#include "own_stack.h"
#include "unwind/walk.h"

#include <errno.h>
#include <libunwind.h>

#define FRAMES_MAX 512

struct take {
    struct snapshot snapshot;
    uint64_t calls[2]; /* in the function below, and in its caller */
};

typedef void take_function(struct take *take);

/* All call `function`. Two say with a detour where their CFA is, rsp + 16: dup, drop. One of these
 * also says that rbx is in a register far beyond the last. */
void call_plainly(struct take *take, take_function *function);
void call_with_detour(struct take *take, take_function *function);
void call_with_far_register(struct take *take, take_function *function);
extern const char plain_call_end[], detour_call_end[];

__asm__(".text\n"
        ".type call_plainly, @function\n"
        "call_plainly:\n"
        ".cfi_startproc\n"
        "sub $8, %rsp\n"
        ".cfi_def_cfa_offset 16\n"
        "call *%rsi\n"
        "plain_call_end:\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_plainly, . - call_plainly\n"
        ".type call_with_detour, @function\n"
        "call_with_detour:\n"
        ".cfi_startproc\n"
        "sub $8, %rsp\n"
        ".cfi_escape 0x0f, 4, 0x77, 16, 0x12, 0x13\n"
        "call *%rsi\n"
        "detour_call_end:\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa 7, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_with_detour, . - call_with_detour\n"
        ".type call_with_far_register, @function\n"
        "call_with_far_register:\n"
        ".cfi_startproc\n"
        "sub $8, %rsp\n"
        ".cfi_escape 0x0f, 4, 0x77, 16, 0x12, 0x13\n"
        ".cfi_escape 0x09, 3, 0xff, 0xff, 0xff, 0xff, 0x7f\n"
        "call *%rsi\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa 7, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_with_far_register, . - call_with_far_register\n");

__attribute__((noinline)) static void take_leaf(struct take *take)
{
    ucontext_t context;
    take->calls[0] = (uintptr_t)__builtin_return_address(0) - 1;
    assert_int_equal(getcontext(&context), 0);
    set_registers(&take->snapshot.registers, &context);
    copy_stack(&take->snapshot);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void take_plainly(struct take *take)
{
    take->calls[1] = (uintptr_t)__builtin_return_address(0) - 1;
    call_plainly(take, take_leaf);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void take_with_detour(struct take *take)
{
    take->calls[1] = (uintptr_t)__builtin_return_address(0) - 1;
    call_with_detour(take, take_leaf);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void take_with_far_register(struct take *take)
{
    call_with_far_register(take, take_leaf);
    __asm__ volatile("" ::: "memory");
}

struct unwound {
    int err;
    struct stack stack;
    struct unwind_hints hints;
};

static struct unwound by_rules(const struct snapshot *snapshot, size_t max_depth)
{
    struct rule_tables tables = {0};
    struct unwound unwound = {0};
    struct walk walk = {self.space,     snapshot,       max_depth,
                        &unwound.stack, &unwound.hints, UINT64_MAX};
    unwound.err = walk_by_rules(&walk, &tables);
    rule_tables_free(&tables);
    return unwound;
}

static struct unwound by_libunwind_in(struct space *space, const struct snapshot *snapshot,
                                      size_t max_depth)
{
    struct libunwind *libunwind;
    struct unwound unwound = {0};
    struct walk walk = {space, snapshot, max_depth, &unwound.stack, &unwound.hints, UINT64_MAX};
    assert_int_equal(libunwind_new(&libunwind), 0);
    unwound.err = walk_by_libunwind(&walk, libunwind);
    libunwind_free(libunwind);
    return unwound;
}

static struct unwound by_libunwind(const struct snapshot *snapshot, size_t max_depth)
{
    return by_libunwind_in(self.space, snapshot, max_depth);
}

static struct unwound by_either(const struct snapshot *snapshot, size_t max_depth)
{
    struct unwound unwound = {0};
    unwound.err = unwind_snapshot(self.unwinder, self.space, snapshot, max_depth, &unwound.stack,
                                  &unwound.hints);
    return unwound;
}

static void assert_whole(const struct take *take, const struct unwound *unwound,
                         const char *call_end)
{
    assert_int_equal(unwound->err, 0);
    assert_int_equal(unwound->stack.cut, STACK_WHOLE);
    assert_true(unwound->stack.depth > 4);
    assert_int_equal(unwound->stack.addresses[0], registers_pc(&take->snapshot.registers));
    assert_int_equal(unwound->stack.addresses[1], (uintptr_t)call_end - 1);
    assert_int_equal(unwound->stack.addresses[1], take->calls[0]);
    assert_int_equal(unwound->stack.addresses[3], take->calls[1]);
}

static void assert_same(const struct unwound *one, const struct unwound *other)
{
    assert_int_equal(one->stack.depth, other->stack.depth);
    assert_memory_equal(one->stack.addresses, other->stack.addresses,
                        one->stack.depth * sizeof *one->stack.addresses);
    assert_int_equal(one->stack.cut, other->stack.cut);
}

/* Of one stack, both ways say the same. */
static void test_by_rules_as_by_libunwind(void **state)
{
    (void)state;
    struct take take = {0};
    take_plainly(&take);
    struct unwound rules = by_rules(&take.snapshot, FRAMES_MAX);
    struct unwound libunwind = by_libunwind(&take.snapshot, FRAMES_MAX);
    assert_whole(&take, &rules, plain_call_end);
    assert_whole(&take, &libunwind, plain_call_end);
    assert_same(&rules, &libunwind);
    free(rules.stack.addresses);
    free(libunwind.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_what_rules_cannot_say_goes_to_libunwind(void **state)
{
    (void)state;
    struct take take = {0};
    take_with_detour(&take);
    struct unwound rules = by_rules(&take.snapshot, FRAMES_MAX);
    assert_int_equal(rules.err, -ENOTSUP);
    struct unwound either = by_either(&take.snapshot, FRAMES_MAX);
    struct unwound libunwind = by_libunwind(&take.snapshot, FRAMES_MAX);
    /* All of the stack, from its leaf on, and nothing of what rules had said of it. */
    assert_whole(&take, &either, detour_call_end);
    assert_same(&either, &libunwind);
    assert_int_equal(either.hints.stack_bytes_used, libunwind.hints.stack_bytes_used);
    assert_false(either.hints.needs_more_stack);
    free(rules.stack.addresses);
    free(either.stack.addresses);
    free(libunwind.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* libunwind would take its number as an index, far outside its own memory. */
static void test_a_register_that_does_not_exist(void **state)
{
    (void)state;
    struct take take = {0};
    take_with_far_register(&take);
    struct unwound unwound = by_either(&take.snapshot, FRAMES_MAX);
    assert_int_equal(unwound.err, 0);
    /* Nor does it guess. */
    assert_int_equal(unwound.stack.cut, STACK_CUT_NO_UNWIND_INFO);
    assert_int_equal(unwound.stack.depth, 2);
    assert_int_equal(unwound.stack.addresses[0], registers_pc(&take.snapshot.registers));
    assert_int_equal(unwound.stack.addresses[1], take.calls[0]);
    free(unwound.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* A stack pointer may lie in the unwind tables, and the process have written to its copy of them:
 * they are read from the file, as that is what was checked. */
static void test_a_stack_in_the_unwind_tables(void **state)
{
    (void)state;
    struct take take = {0};
    take_with_detour(&take);
    struct unwound before = by_libunwind(&take.snapshot, FRAMES_MAX);
    const struct mapping *mapping = space_find(self.space, registers_pc(&take.snapshot.registers));
    struct stack_copy *stack = &take.snapshot.other_stack;
    stack->address = mapping->module->unwind_table.header_address + mapping->bias;
    stack->bytes = stack->capacity = 1u << 20;
    stack->memory = calloc(1, stack->bytes);
    assert_non_null(stack->memory);
    memset(stack->memory, 0xff, stack->bytes);
    struct unwound unwound = by_libunwind(&take.snapshot, FRAMES_MAX);
    assert_whole(&take, &unwound, detour_call_end);
    assert_same(&unwound, &before);
    free(before.stack.addresses);
    free(unwound.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* Where a file is written to once an entry was checked; 0: nowhere. */
static uint64_t overwritten, overwritten_end;
static unsigned words_read;

bool __real_module_read(struct module *module, uint64_t address, void *buffer, size_t bytes);
bool __wrap_module_read(struct module *module, uint64_t address, void *buffer, size_t bytes);

bool __wrap_module_read(struct module *module, uint64_t address, void *buffer, size_t bytes)
{
    bool is_read = __real_module_read(module, address, buffer, bytes);
    if (bytes == sizeof(unw_word_t) && address >= overwritten && address < overwritten_end) {
        memset(buffer, 0x96, bytes); /* DW_OP_nop; nothing that call frame information has */
        words_read++;
    }
    return is_read;
}

/* libunwind, which reads words, gets what was checked. */
static void test_a_file_that_is_written_to(void **state)
{
    (void)state;
    static struct cfi_entry entry;
    struct take take = {0};
    take_with_detour(&take);
    struct unwound before = by_libunwind(&take.snapshot, FRAMES_MAX);
    const struct mapping *mapping = space_find(self.space, take.calls[0]);
    assert_true(cfi_find_in_table(mapping->module, take.calls[0] - mapping->bias, &entry));
    assert_true(entry.own.bytes > sizeof(unw_word_t));
    overwritten = entry.own.position;
    overwritten_end = entry.own.position + entry.own.bytes;
    struct unwound unwound = by_libunwind(&take.snapshot, FRAMES_MAX);
    overwritten = overwritten_end = 0;
    assert_int_equal(words_read, 0);
    assert_whole(&take, &unwound, detour_call_end);
    assert_same(&unwound, &before);
    free(before.stack.addresses);
    free(unwound.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* The frame's address and the one before it are in two files: which of them libunwind knows the
 * frame by is not known. */
static void test_an_address_between_two_files(void **state)
{
    (void)state;
    struct take take = {0};
    struct space space = *self.space;
    take_plainly(&take);
    uint64_t pc = registers_pc(&take.snapshot.registers);
    size_t at = (size_t)(space_find(self.space, pc) - self.space->mappings);
    space.mappings = calloc(space.mapping_count + 1, sizeof *space.mappings);
    assert_non_null(space.mappings);
    for (size_t i = 0; i <= space.mapping_count; i++)
        space.mappings[i] = self.space->mappings[i > at ? i - 1 : i];
    space.mapping_count++;
    space.mappings[at].end = space.mappings[at + 1].start = pc;
    space.last = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct unwound unwound = by_libunwind_in(&space, &take.snapshot, FRAMES_MAX);
        assert_int_equal(unwound.err, 0);
        assert_int_equal(unwound.stack.cut, i ? STACK_CUT_NO_UNWIND_INFO : STACK_WHOLE);
        assert_true(i ? unwound.stack.depth == 1 : unwound.stack.depth > 4);
        free(unwound.stack.addresses);
        space.mappings[at].bias += 0x1000; /* now they are not parts of one */
    }
    free(space.mappings);
    snapshot_clear(&take.snapshot);
}

/* Not where the stack ends before: at the depth that was asked for, or where its copy does. */
static void test_what_is_not_reached_is_not_complex(void **state)
{
    (void)state;
    struct take take = {0};
    take_with_detour(&take);
    struct unwound cut = by_rules(&take.snapshot, 1);
    assert_int_equal(cut.err, 0);
    assert_int_equal(cut.stack.cut, STACK_CUT_AT_MAX_DEPTH);
    free(cut.stack.addresses);
    cut = by_either(&take.snapshot, 2);
    assert_int_equal(cut.err, 0);
    assert_int_equal(cut.stack.depth, 2);
    assert_int_equal(cut.stack.cut, STACK_CUT_AT_MAX_DEPTH);
    free(cut.stack.addresses);
    take.snapshot.stack.bytes = 8;
    cut = by_rules(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.err, 0);
    assert_int_equal(cut.stack.cut, STACK_CUT_UNREADABLE);
    assert_true(cut.hints.needs_more_stack);
    free(cut.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* What could not be read without privileges is not read with them. */
static void test_a_module_that_was_not_read(void **state)
{
    (void)state;
    struct take take = {0};
    take_plainly(&take);
    struct module *module = space_find(self.space, registers_pc(&take.snapshot.registers))->module;
    module->unread = "its reader crashed";
    struct unwound unwound = by_libunwind(&take.snapshot, FRAMES_MAX);
    module->unread = NULL;
    assert_int_equal(unwound.err, 0);
    assert_int_equal(unwound.stack.cut, STACK_CUT_UNREAD);
    assert_int_equal(unwound.stack.depth, 1);
    free(unwound.stack.addresses);
    snapshot_clear(&take.snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_rules_as_by_libunwind),
        cmocka_unit_test(test_what_rules_cannot_say_goes_to_libunwind),
        cmocka_unit_test(test_a_register_that_does_not_exist),
        cmocka_unit_test(test_a_stack_in_the_unwind_tables),
        cmocka_unit_test(test_a_file_that_is_written_to),
        cmocka_unit_test(test_an_address_between_two_files),
        cmocka_unit_test(test_what_is_not_reached_is_not_complex),
        cmocka_unit_test(test_a_module_that_was_not_read),
    };
    return cmocka_run_group_tests_name("unwind_complex", tests, set_up_group, tear_down_group);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
