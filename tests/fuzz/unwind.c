/* Whole stacks: the input is registers, a stack, and the ELF file of the module that contains all
 * the code. */
#include "open_module.h"
#include "mapping/modules.h"
#include "unwind/frame_pointer.h"
#include "unwind/walk.h"

#define BIAS 0x555500000000u
#define STACK 0x7ffd00000000u
#define DEPTH_MAX 64

/* A number that represents an address: in the module, in the stack, or anywhere. */
static uint64_t take_address(struct input *input)
{
    uint64_t kind = take_number(input, 1), number = take_number(input, 4);
    return kind == 'c' ? BIAS + number : kind == 's' ? STACK + number : number << (kind & 31);
}

static void take_registers(struct input *input, struct registers *registers)
{
    uint64_t count = take_number(input, 1) % (architecture.register_count + 1u);
    *registers = (struct registers){.known = take_number(input, 8)};
    for (uint64_t i = 0; i < count; i++)
        registers->values[i] = take_address(input);
    registers->values[architecture.pc] = take_address(input);
    registers->values[architecture.sp] = take_address(input);
    registers->values[architecture.frame_pointer] = take_address(input);
}

static void take_stack(struct input *input, struct stack_copy *copy)
{
    size_t words = take_number(input, 1), extra_bytes = take_number(input, 1) & 7;
    copy->address = STACK;
    copy->bytes = copy->capacity = words * 8 + extra_bytes;
    copy->memory = copy_of((struct input){0}, copy->bytes);
    copy->end = STACK + copy->bytes + (take_number(input, 1) & 0xf0);
    copy->end_is_known = take_number(input, 1) & 1;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = take_address(input);
        memcpy(copy->memory + i * sizeof word, &word, sizeof word);
    }
}

static void check(const struct stack *stack, const struct registers *registers)
{
    must(stack->depth >= 1 && stack->depth <= DEPTH_MAX && stack->cut < STACK_CUT_COUNT);
    must(stack->addresses[0] == registers_pc(registers));
}

static void unwind(struct space *space, struct snapshot *snapshot)
{
    struct rule_tables rules = {0};
    struct stack stack = {0}, scratch = {0};
    struct unwind_hints hints;
    must(unwind_snapshot(&rules, space, snapshot, DEPTH_MAX, &stack, &hints) == 0);
    check(&stack, &snapshot->registers);
    if (stack.cut == STACK_CUT_NO_REGISTER)
        frame_pointer_find(&rules, space, snapshot, DEPTH_MAX, &hints, 0, &scratch);
    rule_tables_free(&rules);
    free(stack.addresses);
    free(scratch.addresses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    struct modules modules = {0};
    struct snapshot snapshot = {0};
    take_registers(&input, &snapshot.registers);
    take_stack(&input, &snapshot.stack);
    struct module *module = open_module(&modules, input);
    struct mapping mapping = {
        .start = BIAS,
        .end = BIAS + ((uint64_t)1 << 32),
        .module = module,
        .bias = BIAS,
        .has_bias = module->is_readable,
    };
    struct space space = {.mappings = &mapping, .mapping_count = 1};
    unwind(&space, &snapshot);
    free(snapshot.stack.memory);
    modules_free(&modules);
    return 0;
}
