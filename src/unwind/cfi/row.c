/* Runs the programs of call frame information up to the row of an address. */
#include "unwind/cfi/cfi.h"
#include "elf/dwarf.h"

/* Compilers nest them one deep. */
#define REMEMBERED_MAX 8

struct machine {
    const struct cfi_entry *entry;
    struct cfi_row row;
    struct cfi_row initial; /* after the CIE's program: DW_CFA_restore goes back to it */
    struct cfi_row remembered[REMEMBERED_MAX];
    unsigned remembered_count;
    uint64_t location;           /* the address that the row is for */
    struct cfi_register ignored; /* for registers that are not followed here: vector registers,
                                    flags */
};

static struct cfi_register *register_at(struct machine *machine, uint64_t number)
{
    return number < REGISTERS_MAX ? &machine->row.registers[number] : &machine->ignored;
}

static void set(struct machine *machine, uint64_t number, enum cfi_kind kind, int64_t offset)
{
    *register_at(machine, number) = (struct cfi_register){.kind = kind, .offset = offset};
}

/* Multiplies unsigned numbers, because damaged programs cause overflows, which would be undefined
 * for signed ones. */
static int64_t factored(const struct machine *machine, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)machine->entry->data_factor);
}

static void restore(struct machine *machine, uint64_t number)
{
    if (number < REGISTERS_MAX)
        machine->row.registers[number] = machine->initial.registers[number];
}

static void advance(struct machine *machine, uint64_t delta)
{
    machine->location += delta * machine->entry->code_factor;
}

static struct bytes read_block(struct bytes *program)
{
    uint64_t length = bytes_uleb(program);
    struct bytes block = {program->at, program->at, false};
    bytes_skip(program, length);
    block.end = program->at;
    return block;
}

static void set_expression(struct machine *machine, struct bytes *program, enum cfi_kind kind)
{
    uint64_t number = bytes_uleb(program);
    *register_at(machine, number) =
        (struct cfi_register){.kind = kind, .expression = read_block(program)};
}

/* The instructions that say where the CFA is. Returns false for any other. */
static bool run_cfa_instruction(struct machine *machine, uint8_t code, struct bytes *program)
{
    struct cfi_row *row = &machine->row;
    switch (code) {
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
        row->cfa_is_expression = false;
        row->cfa_register = bytes_uleb(program);
        row->cfa_offset = code == DW_CFA_def_cfa ? (int64_t)bytes_uleb(program)
                                                 : factored(machine, (uint64_t)bytes_sleb(program));
        return true;
    case DW_CFA_def_cfa_register:
        row->cfa_register = bytes_uleb(program);
        return true;
    case DW_CFA_def_cfa_offset:
        row->cfa_offset = (int64_t)bytes_uleb(program);
        return true;
    case DW_CFA_def_cfa_offset_sf:
        row->cfa_offset = factored(machine, (uint64_t)bytes_sleb(program));
        return true;
    case DW_CFA_def_cfa_expression:
        row->cfa_is_expression = true;
        row->cfa_expression = read_block(program);
        return true;
    default:
        return false;
    }
}

/* The instructions that say where a register is. Returns false for any other. */
static bool run_register_instruction(struct machine *machine, uint8_t code, struct bytes *program)
{
    uint64_t number;
    switch (code) {
    case DW_CFA_offset_extended:
    case DW_CFA_val_offset:
        number = bytes_uleb(program);
        set(machine, number, code == DW_CFA_val_offset ? CFI_IS_OFFSET : CFI_AT_OFFSET,
            factored(machine, bytes_uleb(program)));
        return true;
    case DW_CFA_offset_extended_sf:
    case DW_CFA_val_offset_sf:
        number = bytes_uleb(program);
        set(machine, number, code == DW_CFA_val_offset_sf ? CFI_IS_OFFSET : CFI_AT_OFFSET,
            factored(machine, (uint64_t)bytes_sleb(program)));
        return true;
    case DW_CFA_GNU_negative_offset_extended:
        number = bytes_uleb(program);
        set(machine, number, CFI_AT_OFFSET, factored(machine, 0 - bytes_uleb(program)));
        return true;
    case DW_CFA_restore_extended:
        restore(machine, bytes_uleb(program));
        return true;
    case DW_CFA_undefined:
        set(machine, bytes_uleb(program), CFI_UNDEFINED, 0);
        return true;
    case DW_CFA_same_value:
        set(machine, bytes_uleb(program), CFI_SAME, 0);
        return true;
    case DW_CFA_register:
        number = bytes_uleb(program);
        set(machine, number, CFI_IN_REGISTER, (int64_t)bytes_uleb(program));
        return true;
    case DW_CFA_expression:
        set_expression(machine, program, CFI_AT_EXPRESSION);
        return true;
    case DW_CFA_val_expression:
        set_expression(machine, program, CFI_IS_EXPRESSION);
        return true;
    default:
        return false;
    }
}

/* The other instructions: they move to the next row, or put rows aside. Returns false for unknown
 * ones. */
static bool run_other_instruction(struct machine *machine, uint8_t code, struct bytes *program)
{
    switch (code) {
    /* Whether the return address is signed: the signature is taken off in any case, as all that
     * was saved of it may have one. */
    case DW_CFA_AARCH64_negate_ra_state:
    case DW_CFA_AARCH64_negate_ra_state_with_pc:
    case DW_CFA_nop:
        return true;
    case DW_CFA_advance_loc1:
        advance(machine, bytes_unsigned(program, 1));
        return true;
    case DW_CFA_advance_loc2:
        advance(machine, bytes_unsigned(program, 2));
        return true;
    case DW_CFA_advance_loc4:
        advance(machine, bytes_unsigned(program, 4));
        return true;
    case DW_CFA_remember_state:
        if (machine->remembered_count == REMEMBERED_MAX)
            return false;
        machine->remembered[machine->remembered_count++] = machine->row;
        return true;
    case DW_CFA_restore_state:
        if (!machine->remembered_count)
            return false;
        machine->row = machine->remembered[--machine->remembered_count];
        return true;
    case DW_CFA_GNU_args_size:
        bytes_uleb(program); /* needed for exceptions only */
        return true;
    default:
        return false;
    }
}

/* Runs up to the instruction that moves on to a row after `address`. */
static bool run(struct machine *machine, struct bytes program, uint64_t address)
{
    while (bytes_left(&program) && !program.failed) {
        uint8_t code = (uint8_t)bytes_unsigned(&program, 1);
        uint8_t operand = code & 0x3f;
        switch (code & 0xc0) {
        case DW_CFA_advance_loc:
            advance(machine, operand);
            break;
        case DW_CFA_offset:
            set(machine, operand, CFI_AT_OFFSET, factored(machine, bytes_uleb(&program)));
            continue;
        case DW_CFA_restore:
            restore(machine, operand);
            continue;
        default:
            if (run_cfa_instruction(machine, code, &program) ||
                run_register_instruction(machine, code, &program))
                continue;
            if (!run_other_instruction(machine, code, &program))
                return false;
        }
        if (machine->location > address)
            return true;
    }
    return !program.failed;
}

bool cfi_find_row(const struct cfi_entry *entry, uint64_t address, struct cfi_row *ret_row)
{
    struct machine machine;
    /* The rest is written before it is read. */
    memset(&machine.row, 0, sizeof machine.row);
    machine.entry = entry;
    machine.remembered_count = 0;
    machine.location = entry->start;
    machine.initial = machine.row;
    if (!run(&machine, entry->common_program, UINT64_MAX))
        return false;
    machine.initial = machine.row;
    machine.location = entry->start;
    if (!run(&machine, entry->program, address))
        return false;
    *ret_row = machine.row;
    return true;
}
