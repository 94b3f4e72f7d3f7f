/* Follows all ways from an instruction to the returns of its function (Arm Architecture Reference
 * Manual for A-profile, C4.1, "A64 instruction set encoding").
 *
 * Of the registers, only the stack pointer, the frame pointer and the link register matter: how
 * they are moved, stored and loaded by the few instructions that compilers use for that. Any other
 * instruction that writes one makes it unknown. All ways that return must agree. */
#include "unwind/code/code_return.h"
#include "unwind/aarch64/instruction.h"
#include "unwind/code/last_call.h"
#include "unwind/signal_frame.h"

#include <stdlib.h>
#include <string.h>

#define OFFSET_MAX (1 << 20)
#define INSTRUCTIONS_MAX 2048u
#define SEEN_SLOTS 4096u /* a power of two, more than the instructions */
#define WAYS_MAX 64
#define STORED_MAX 8

enum { FRAME_POINTER = 29, LINK = 30, STACK_POINTER = 31 };

static const struct code_value unknown = {.kind = CODE_VALUE_UNKNOWN};

/* Where the frame pointer or the link register was stored on the way, and what it was. */
struct stored {
    struct code_value at, value;
};

struct way {
    uint64_t address;
    unsigned call; /* the number of the system call that comes next; 0: not known */
    struct code_value sp, frame_pointer, link;
    struct stored stored[STORED_MAX];
    unsigned stored_count;
};

struct search {
    struct module *module;
    unsigned instructions_left;
    struct way ways[WAYS_MAX]; /* still to be followed */
    size_t way_count;
    struct seen {
        uint64_t address_plus_1;
        struct code_value sp;
    } seen[SEEN_SLOTS];
    struct code_return found;
    bool has_found, has_contradiction;
};

static bool is_same(const struct code_value *left, const struct code_value *right)
{
    return left->kind == right->kind && left->register_number == right->register_number &&
           left->offset == right->offset && left->then_offset == right->then_offset;
}

static struct code_value register_value(uint8_t number)
{
    return (struct code_value){.kind = CODE_VALUE_REGISTER, .register_number = number};
}

/* `value` + `offset`; unknown if that has no form. */
static struct code_value sum(struct code_value value, int64_t offset)
{
    int64_t whole = value.offset + offset;
    if (value.kind != CODE_VALUE_REGISTER || whole > OFFSET_MAX || whole < -OFFSET_MAX)
        return unknown;
    value.offset = (int32_t)whole;
    return value;
}

/* The way's own value of a register; NULL for those that do not matter. */
static struct code_value *value_of(struct way *way, unsigned number)
{
    return number == STACK_POINTER   ? &way->sp
           : number == FRAME_POINTER ? &way->frame_pointer
           : number == LINK          ? &way->link
                                     : NULL;
}

static void forget(struct way *way, unsigned number)
{
    if (number == FRAME_POINTER || number == LINK)
        *value_of(way, number) = unknown;
}

/* A register is stored at an address, or loaded from it. */
static void move(struct way *way, bool is_load, unsigned number, struct code_value at)
{
    struct code_value *value = number == STACK_POINTER ? NULL : value_of(way, number);
    struct stored *stored = way->stored;
    while (stored < way->stored + way->stored_count && !is_same(&stored->at, &at))
        stored++;
    bool is_found = stored < way->stored + way->stored_count;
    if (!is_load) {
        /* What else is stored there replaces it. */
        if (is_found)
            stored->value = value ? *value : unknown;
        else if (value && at.kind == CODE_VALUE_REGISTER && way->stored_count < STORED_MAX)
            way->stored[way->stored_count++] = (struct stored){at, *value};
        return;
    }
    if (!value)
        return;
    if (is_found) {
        *value = stored->value;
        return;
    }
    *value = at;
    if (at.kind == CODE_VALUE_REGISTER)
        value->kind = CODE_VALUE_MEMORY;
}

/* Where the address is: at base + offset, or at the base; whether the base becomes base + offset.
 */
enum addressing { WITH_OFFSET, BASE_ADVANCED_AFTER, BASE_ADVANCED_BEFORE };

struct access {
    bool is_load, is_general;
    enum addressing addressing;
    unsigned base, count, registers[2], bytes;
    int64_t offset;
};

/* Loads and stores of registers or pairs, with an offset in the instruction. */
static bool read_access(uint32_t instruction, struct access *access)
{
    *access = (struct access){
        .is_load = field(instruction, 22, 1),
        .is_general = !field(instruction, 26, 1),
        .base = field(instruction, 5, 5),
        .count = 1,
        .registers = {field(instruction, 0, 5), field(instruction, 10, 5)},
    };
    unsigned size = field(instruction, 30, 2);
    if ((instruction & 0x3a000000u) == 0x28000000u) {
        static const enum addressing kinds[] = {WITH_OFFSET, BASE_ADVANCED_AFTER, WITH_OFFSET,
                                                BASE_ADVANCED_BEFORE};
        access->count = 2;
        access->addressing = kinds[field(instruction, 23, 2)];
        access->bytes = access->is_general ? (size == 2 ? 8 : 4) : 4u << size;
        access->offset = signed_field(instruction, 15, 7) * access->bytes;
        return true;
    }
    /* A vector register of 128 bits has size 0 and the upper bit of the operation. */
    bool is_wide = !access->is_general && field(instruction, 23, 1);
    access->bytes = is_wide ? 16 : 1u << size;
    access->is_load = field(instruction, 22, 2) != 0 && !(is_wide && !field(instruction, 22, 1));
    if ((instruction & 0x3b000000u) == 0x39000000u) {
        access->addressing = WITH_OFFSET;
        access->offset = (int64_t)field(instruction, 10, 12) * access->bytes;
        return true;
    }
    if ((instruction & 0x3b200000u) != 0x38000000u || field(instruction, 10, 2) == 2)
        return false;
    access->addressing = (enum addressing[]){WITH_OFFSET, BASE_ADVANCED_AFTER, WITH_OFFSET,
                                             BASE_ADVANCED_BEFORE}[field(instruction, 10, 2)];
    access->offset = signed_field(instruction, 12, 9);
    return true;
}

/* Loads and stores without an offset in the instruction. */
static void follow_other_access(struct way *way, uint32_t instruction)
{
    unsigned target = field(instruction, 0, 5);
    bool is_vector = field(instruction, 26, 1);
    bool is_literal = (instruction & 0x3b000000u) == 0x18000000u;
    bool is_single = (instruction & 0x3b200c00u) == 0x38200800u ||      /* by a register's offset */
                     (instruction & 0x3b200c00u) == 0x38000800u;        /* unprivileged */
    bool may_write_base = (instruction & 0xbe800000u) == 0x0c800000u || /* of vectors in a row */
                          (instruction & 0xff200400u) == 0xd9200400u;   /* of memory tags */
    if (may_write_base && field(instruction, 5, 5) == STACK_POINTER)
        way->sp = unknown;
    if (is_vector)
        return;
    if (is_literal || is_single) {
        if (is_literal || field(instruction, 22, 2))
            forget(way, target);
        return;
    }
    /* Exclusive and atomic: of a pair at most, and with a result. */
    forget(way, target);
    forget(way, field(instruction, 10, 5));
    forget(way, field(instruction, 16, 5));
}

static void follow_access(struct way *way, uint32_t instruction)
{
    struct access access;
    if (!read_access(instruction, &access)) {
        follow_other_access(way, instruction);
        return;
    }
    struct code_value *base = value_of(way, access.base);
    struct code_value at =
        base ? sum(*base, access.addressing == BASE_ADVANCED_AFTER ? 0 : access.offset) : unknown;
    struct code_value new_base = base ? sum(*base, access.offset) : unknown;
    for (unsigned i = 0; access.is_general && i < access.count; i++) {
        if (access.bytes == 8)
            move(way, access.is_load, access.registers[i], sum(at, 8 * (int64_t)i));
        else if (access.is_load)
            forget(way, access.registers[i]);
    }
    if (base && (access.addressing != WITH_OFFSET))
        *base = new_base;
}

/* Additions to the stack pointer and the frame pointer; other results are unknown. */
static void follow_arithmetic(struct way *way, uint32_t instruction)
{
    unsigned target = field(instruction, 0, 5), source = field(instruction, 5, 5);
    bool is_64_bit = field(instruction, 31, 1), sets_flags = field(instruction, 29, 1);
    bool is_add_immediate = (instruction & 0x1f800000u) == 0x11000000u;
    bool is_extended = (instruction & 0x1f200000u) == 0x0b200000u;
    bool is_logical_immediate = (instruction & 0x1f800000u) == 0x12000000u;
    struct code_value *from = value_of(way, source);
    if (is_add_immediate && !sets_flags) {
        int64_t amount = (int64_t)field(instruction, 10, 12)
                         << (field(instruction, 22, 1) ? 12 : 0);
        struct code_value *to = value_of(way, target);
        struct code_value result =
            from && is_64_bit ? sum(*from, field(instruction, 30, 1) ? -amount : amount) : unknown;
        if (to)
            *to = result;
        return;
    }
    if (target != STACK_POINTER)
        forget(way, target);
    else if ((is_extended && !sets_flags) ||
             (is_logical_immediate && field(instruction, 29, 2) != 3))
        way->sp = unknown;
}

static void add_way(struct search *search, const struct way *way, uint64_t address)
{
    if (search->way_count == WAYS_MAX)
        return;
    search->ways[search->way_count] = *way;
    search->ways[search->way_count++].address = address;
}

/* A path has reached a return. */
static void note_return(struct search *search, const struct way *way)
{
    struct code_return found = {
        .sp = way->sp, .frame_pointer = way->frame_pointer, .return_address = way->link};
    if (found.sp.kind != CODE_VALUE_REGISTER || found.return_address.kind == CODE_VALUE_UNKNOWN) {
        search->has_contradiction = true;
        return;
    }
    if (!search->has_found)
        search->found = found;
    else if (!is_same(&search->found.sp, &found.sp) ||
             !is_same(&search->found.return_address, &found.return_address))
        search->has_contradiction = true;
    else if (!is_same(&search->found.frame_pointer, &found.frame_pointer))
        search->found.frame_pointer = unknown;
    search->has_found = true;
}

/* Whether a call does not return to what follows it. Between functions there is padding, and some
 * begin with a mark. */
static bool is_last_call(struct module *module, uint64_t address)
{
    uint32_t next;
    return call_is_known_last(module, address) ||
           !module_read(module, address, &next, sizeof next) || next == 0xd503201fu || /* nop */
           begins_function(next);
}

/* exit, exit_group and rt_sigreturn do not return. */
static bool call_returns(unsigned call)
{
    return call != 93 && call != 94 && call != 139;
}

/* Follows what sets x8, which has the number of a system call: mov w8, #number, and others. */
static void follow_call_number(struct way *way, uint32_t instruction)
{
    if ((instruction & 0x7fe0001fu) == 0x52800008u)
        way->call = field(instruction, 5, 16);
    else if (field(instruction, 0, 5) == 8)
        way->call = 0;
}

/* br, blr, ret, and those that check a signature. Returns whether the way goes on. */
static bool branch_by_register(struct search *search, struct way *way, uint32_t instruction)
{
    unsigned operation = field(instruction, 21, 2), number = field(instruction, 5, 5);
    if (operation == 1) {
        way->link = unknown;
        return !is_last_call(search->module, way->address);
    }
    bool is_signed_return = (instruction & 0xfffffbffu) == 0xd65f0bffu;
    /* A jump by x16 or x17 leaves for another function, as that of a linkage stub (AAPCS64, 6.1.1);
     * one by another register may be a table's. */
    if ((operation == 2 && (number == LINK || is_signed_return)) ||
        (operation == 0 && (number == 16 || number == 17)))
        note_return(search, way);
    return false;
}

/* Branches and what else leaves the order of instructions. The way's address is the next one's.
 * Returns whether the way goes on there. */
static bool branch(struct search *search, struct way *way, uint32_t instruction)
{
    uint64_t target;
    if ((instruction & 0xfe000000u) == 0xd6000000u)
        return branch_by_register(search, way, instruction);
    if ((instruction & 0xfc000000u) == 0x94000000u) { /* bl */
        way->link = unknown;
        return !is_last_call(search->module, way->address);
    }
    if ((instruction & 0xffe0001fu) == 0xd4000001u) /* svc */
        return call_returns(way->call);
    if (branch_target(instruction, way->address - INSTRUCTION_BYTES, &target)) {
        add_way(search, way, target);
        return !is_unconditional_branch(instruction);
    }
    return !is_trap(instruction);
}

/* Notes that a way came by here; returns false if one did before. */
static bool note_seen(struct search *search, const struct way *way)
{
    size_t at = (size_t)((way->address * 0x9e3779b97f4a7c15u) >> 32) & (SEEN_SLOTS - 1);
    while (search->seen[at].address_plus_1 && search->seen[at].address_plus_1 != way->address + 1)
        at = (at + 1) & (SEEN_SLOTS - 1);
    struct seen *seen = &search->seen[at];
    if (!seen->address_plus_1) {
        *seen = (struct seen){way->address + 1, way->sp};
        return true;
    }
    if (way->sp.kind != CODE_VALUE_UNKNOWN && seen->sp.kind != CODE_VALUE_UNKNOWN &&
        !is_same(&way->sp, &seen->sp))
        search->has_contradiction = true;
    return false;
}

static void follow_way(struct search *search, struct way *way)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    uint32_t instruction;
    bool goes_on = true;
    while (goes_on && !search->has_contradiction && search->instructions_left &&
           note_seen(search, way) &&
           module_read(search->module, way->address, &instruction, sizeof instruction)) {
        search->instructions_left--;
        /* The kernel's return from a handler, and what is no instruction (udf). */
        if (instruction < 0x10000 ||
            (module_read(search->module, way->address, code, sizeof code) &&
             signal_return_is_at(code)))
            return;
        way->address += INSTRUCTION_BYTES;
        follow_call_number(way, instruction);
        unsigned group = field(instruction, 25, 4);
        if ((group & 0xe) == 0xa)
            goes_on = branch(search, way, instruction);
        else if ((group & 0x5) == 0x4)
            follow_access(way, instruction);
        else if ((group & 0xe) == 0x8 || (group & 0x7) == 0x5)
            follow_arithmetic(way, instruction);
        else if ((instruction & 0xff20f81fu) ==
                 0x0420501fu) /* addvl, addpl: by the length of vectors */
            way->sp = unknown;
    }
}

bool code_return_find(struct module *module, uint64_t address, bool is_after_call,
                      struct code_return *ret_return)
{
    if (is_after_call && is_last_call(module, address))
        return false;
    struct search *search = calloc(1, sizeof *search);
    if (!search)
        return false;
    search->module = module;
    search->instructions_left = INSTRUCTIONS_MAX;
    struct way way = {
        .address = address,
        .sp = register_value(STACK_POINTER),
        .frame_pointer = register_value(FRAME_POINTER),
        .link = is_after_call ? unknown : register_value(LINK),
    };
    add_way(search, &way, address);
    while (search->way_count && search->instructions_left && !search->has_contradiction) {
        way = search->ways[--search->way_count];
        follow_way(search, &way);
    }
    bool is_certain = search->has_found && !search->has_contradiction;
    if (is_certain)
        *ret_return = search->found;
    free(search);
    return is_certain;
}
