#include "unwind/aarch64/values.h"
#include "unwind/aarch64/instruction.h"

#define OFFSET_MAX (1 << 20)
#define WORD_BYTES 8

#define HAS_ANY(forms, instruction) has_any(forms, sizeof(forms) / sizeof *(forms), instruction)

static bool has_any(const struct form *forms, size_t count, uint32_t instruction)
{
    for (size_t i = 0; i < count; i++) {
        if (has_form(instruction, forms[i]))
            return true;
    }
    return false;
}

bool value_is_same(const struct code_value *left, const struct code_value *right)
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
        return unknown_value;
    value.offset = (int32_t)whole;
    return value;
}

struct values values_begin(void)
{
    return (struct values){
        .sp = register_value(STACK_POINTER),
        .frame_pointer = register_value(FRAME_POINTER),
        .link = register_value(LINK),
    };
}

/* The value of a register; NULL for those that do not matter. */
static struct code_value *value_of(struct values *values, unsigned number)
{
    return number == STACK_POINTER   ? &values->sp
           : number == FRAME_POINTER ? &values->frame_pointer
           : number == LINK          ? &values->link
                                     : NULL;
}

/* For instructions to which number 31 is no register. */
static void forget(struct values *values, unsigned number)
{
    if (number == FRAME_POINTER || number == LINK)
        *value_of(values, number) = unknown_value;
}

static struct stored *find_stored(struct values *values, struct code_value at)
{
    for (unsigned i = 0; i < values->stored_count; i++) {
        if (value_is_same(&values->stored[i].at, &at))
            return &values->stored[i];
    }
    return NULL;
}

/* What was stored in these bytes is no longer there. */
static void overwrite(struct values *values, struct code_value at, unsigned bytes)
{
    for (unsigned i = 0; i < values->stored_count; i++) {
        struct stored *stored = &values->stored[i];
        int32_t distance = stored->at.offset - at.offset;
        if (stored->at.kind == at.kind && stored->at.register_number == at.register_number &&
            stored->at.then_offset == at.then_offset && distance > -WORD_BYTES &&
            distance < (int32_t)bytes)
            stored->value = unknown_value;
    }
}

static void store(struct values *values, unsigned number, struct code_value at)
{
    /* As the value to store, that number is zero. */
    const struct code_value *value = number == STACK_POINTER ? NULL : value_of(values, number);
    struct stored *stored = find_stored(values, at);
    if (!value)
        return;
    if (stored)
        stored->value = *value;
    else if (at.kind == CODE_VALUE_REGISTER && values->stored_count < STORED_MAX)
        values->stored[values->stored_count++] = (struct stored){at, *value};
}

static void load(struct values *values, unsigned number, struct code_value at)
{
    struct code_value *value = number == STACK_POINTER ? NULL : value_of(values, number);
    const struct stored *stored = find_stored(values, at);
    if (!value)
        return;
    *value = stored ? stored->value : at;
    if (!stored && at.kind == CODE_VALUE_REGISTER)
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
        bool is_tagged = access->is_general && size == 1 && !access->is_load; /* stgp */
        access->count = 2;
        access->addressing = kinds[field(instruction, 23, 2)];
        access->bytes = access->is_general ? (size == 2 || is_tagged ? 8 : 4) : 4u << size;
        access->offset = signed_field(instruction, 15, 7) * (is_tagged ? 16 : access->bytes);
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

/* Other loads and stores that may advance their base register (bits 5 to 9). */
static const struct form advances_base[] = {
    {0xbe800000u, 0x0c800000u}, /* of vectors in a row */
    {0xff200400u, 0xd9200400u}, /* of memory tags */
    {0xff200c00u, 0xf8200c00u}, /* ldraa, ldrab */
    {0xbf20fc00u, 0x99000800u}, /* stilp, ldiapp, stlr, ldapr */
};

static void follow_other_access(struct values *values, uint32_t instruction)
{
    unsigned target = field(instruction, 0, 5), base = field(instruction, 5, 5);
    unsigned result = field(instruction, 16, 5);
    bool is_vector = field(instruction, 26, 1);
    bool is_literal = (instruction & 0x3b000000u) == 0x18000000u;
    bool is_single = (instruction & 0x3b200c00u) == 0x38200800u ||    /* by a register's offset */
                     (instruction & 0x3b200c00u) == 0x38000800u;      /* unprivileged */
    bool is_memory_copy = (instruction & 0xfb200c00u) == 0x19000400u; /* cpy, set */
    bool is_pair_swap = (instruction & 0xbfa07c00u) == 0x08207c00u;   /* casp */
    bool is_row_load = (instruction & 0xfffffc00u) == 0xf83fd000u;    /* ld64b */
    if (value_of(values, base) && HAS_ANY(advances_base, instruction))
        *value_of(values, base) = unknown_value;
    if (is_memory_copy)
        forget(values, base);
    else if (is_vector)
        return;
    if (is_literal || is_single) {
        if (is_literal || field(instruction, 22, 2))
            forget(values, target);
        return;
    }
    /* Exclusive and atomic: of a pair at most, and with a result. Copies and fills: each of their
     * registers is advanced. */
    forget(values, target);
    forget(values, field(instruction, 10, 5));
    forget(values, result);
    if (is_pair_swap)
        forget(values, result + 1);
    if (is_row_load)
        forget(values, target + 7);
}

static void follow_access(struct values *values, uint32_t instruction)
{
    struct access access;
    if (!read_access(instruction, &access)) {
        follow_other_access(values, instruction);
        return;
    }
    struct code_value *base = value_of(values, access.base);
    struct code_value at =
        base ? sum(*base, access.addressing == BASE_ADVANCED_AFTER ? 0 : access.offset)
             : unknown_value;
    struct code_value new_base = base ? sum(*base, access.offset) : unknown_value;
    if (!access.is_load)
        overwrite(values, at, access.count * access.bytes);
    for (unsigned i = 0; access.is_general && i < access.count; i++) {
        struct code_value place = sum(at, (int64_t)i * WORD_BYTES);
        if (access.bytes != WORD_BYTES && access.is_load)
            forget(values, access.registers[i]);
        else if (access.bytes == WORD_BYTES && access.is_load)
            load(values, access.registers[i], place);
        else if (access.bytes == WORD_BYTES)
            store(values, access.registers[i], place);
    }
    if (base && (access.addressing != WITH_OFFSET))
        *base = new_base;
}

/* Additions to the stack pointer and the frame pointer; other results are unknown. */
static void follow_arithmetic(struct values *values, uint32_t instruction)
{
    unsigned target = field(instruction, 0, 5), source = field(instruction, 5, 5);
    bool is_64_bit = field(instruction, 31, 1), sets_flags = field(instruction, 29, 1);
    bool is_add_immediate = (instruction & 0x1f800000u) == 0x11000000u;
    struct code_value *from = value_of(values, source);
    if (is_add_immediate && !sets_flags) {
        int64_t amount = (int64_t)field(instruction, 10, 12)
                         << (field(instruction, 22, 1) ? 12 : 0);
        struct code_value *to = value_of(values, target);
        struct code_value result = from && is_64_bit
                                       ? sum(*from, field(instruction, 30, 1) ? -amount : amount)
                                       : unknown_value;
        if (to)
            *to = result;
        return;
    }
    forget(values, target);
}

/* Other instructions whose result goes to the register in bits 0 to 4, if 31 is the stack pointer
 * there. */
static const struct form may_write_sp[] = {
    {0x3f200000u, 0x0b200000u}, /* add, sub of an extended register */
    {0x5f800000u, 0x12000000u}, /* and, orr of a number */
    {0x7f800000u, 0x52000000u}, /* eor of a number */
    {0xbfc00000u, 0x91800000u}, /* addg, subg */
    {0xffe0fc00u, 0x9ac01000u}, /* irg */
    {0xbfe0e000u, 0x9a002000u}, /* addpt, subpt */
    {0xffa0f000u, 0x04205000u}, /* addvl, addpl, addsvl, addspl */
};

/* Of vectors, predicates and the system, but with a result in a general register (bits 0 to 4). */
static const struct form writes_general[] = {
    {0xffa00000u, 0xd5200000u}, /* mrs, sysl */
    {0xbfe0ec00u, 0x0e002c00u}, /* umov, smov */
    {0x7f22fc00u, 0x1e200000u}, /* fcvt* */
    {0x7f220000u, 0x1e000000u}, /* fcvt* to fixed point */
    {0x7f27fc00u, 0x1e260000u}, /* fmov, fjcvtzs */
    {0xff20f000u, 0x04205000u}, /* addvl, rdvl and the like */
    {0xff20e000u, 0x0420e000u}, /* of a count of elements */
    {0xff20c000u, 0x25208000u}, /* of a count of active elements */
    {0xff2ee000u, 0x0520a000u}, /* lasta, lastb, clasta, clastb */
    {0xffff0000u, 0xc04c0000u}, /* movt */
};

void values_follow(struct values *values, uint32_t instruction)
{
    unsigned group = field(instruction, 25, 4), target = field(instruction, 0, 5);
    if (is_call(instruction))
        values->link = unknown_value;
    else if ((group & 0x5) == 0x4)
        follow_access(values, instruction);
    else if ((group & 0xe) == 0x8 || (group & 0x7) == 0x5)
        follow_arithmetic(values, instruction);
    else if (HAS_ANY(writes_general, instruction))
        forget(values, target);
    if (target == STACK_POINTER && HAS_ANY(may_write_sp, instruction))
        values->sp = unknown_value;
}
