#include "symbol/dwarf/line_program.h"
#include "symbol/dwarf/ranges.h"
#include "base/array.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

void line_header_read(struct line_header *header, struct bytes *bytes)
{
    header->minimum_bytes = (unsigned)bytes_unsigned(bytes, 1);
    if (header->version >= 4)
        bytes_skip(bytes, 1); /* operations of an instruction: both architectures have one */
    bytes_skip(bytes, 1);     /* whether a row is a statement by default */
    header->line_base = (int)bytes_signed(bytes, 1);
    header->line_range = (unsigned)bytes_unsigned(bytes, 1);
    header->opcode_base = (unsigned)bytes_unsigned(bytes, 1);
    for (unsigned i = 1; i < header->opcode_base; i++)
        header->operand_counts[i] = (uint8_t)bytes_unsigned(bytes, 1);
}

struct machine {
    struct lines *lines;
    const struct line_header *header;
    uint64_t address, line, file;
    size_t first_row; /* of the sequence */
    bool is_unsorted; /* the rows of it */
};

static void restart(struct machine *machine)
{
    machine->address = 0;
    machine->line = machine->file = 1;
    machine->first_row = machine->lines->row_count;
    machine->is_unsorted = false;
}

static int emit(struct machine *machine)
{
    struct lines *lines = machine->lines;
    size_t count = lines->row_count;
    if (count > machine->first_row) {
        struct line_row *last = &lines->rows[count - 1];
        if (last->address > machine->address)
            machine->is_unsorted = true;
        /* Of rows for the same address the last one holds. */
        if (last->address == machine->address)
            count--;
    }
    if (array_reserve((void **)&lines->rows, &lines->row_capacity, count + 1, sizeof *lines->rows))
        return -ENOMEM;
    lines->rows[count] = (struct line_row){
        .address = machine->address,
        .file = machine->file > UINT32_MAX ? UINT32_MAX : (uint32_t)machine->file,
        .line = machine->line > UINT32_MAX ? 0 : (uint32_t)machine->line,
    };
    lines->row_count = count + 1;
    return 0;
}

/* A sequence whose addresses do not ascend breaks the rule (6.2.5): it is not believed. */
static int end_sequence(struct machine *machine)
{
    struct lines *lines = machine->lines;
    size_t first = machine->first_row, count = lines->row_count - first;
    while (count && lines->rows[first + count - 1].address >= machine->address)
        count--; /* covers nothing */
    if (machine->is_unsorted || (count && is_discarded(lines->rows[first].address)))
        count = 0;
    lines->row_count = first + count;
    if (!count)
        return 0;
    if (array_reserve((void **)&lines->sequences, &lines->sequence_capacity,
                      lines->sequence_count + 1, sizeof *lines->sequences))
        return -ENOMEM;
    lines->sequences[lines->sequence_count++] =
        (struct line_sequence){lines->rows[first].address, machine->address, first, count};
    return 0;
}

static int run_extended(struct machine *machine, struct bytes *bytes)
{
    uint64_t length = bytes_uleb(bytes);
    if (!length || length > bytes_left(bytes)) {
        bytes->failed |= length > 0;
        return 0;
    }
    struct bytes operands = {bytes->at, bytes->at + length, false};
    bytes_skip(bytes, length);
    int err = 0;
    switch (bytes_unsigned(&operands, 1)) {
    case DW_LNE_end_sequence:
        err = end_sequence(machine);
        restart(machine);
        break;
    case DW_LNE_set_address:
        machine->address = length <= 9 ? bytes_unsigned(&operands, (unsigned)length - 1) : 0;
        break;
    }
    return err;
}

static int run_standard(struct machine *machine, unsigned opcode, struct bytes *bytes)
{
    const struct line_header *header = machine->header;
    switch (opcode) {
    case DW_LNS_copy:
        return emit(machine);
    case DW_LNS_advance_pc:
        machine->address += bytes_uleb(bytes) * header->minimum_bytes;
        return 0;
    case DW_LNS_advance_line:
        machine->line += (uint64_t)bytes_sleb(bytes);
        return 0;
    case DW_LNS_set_file:
        machine->file = bytes_uleb(bytes);
        return 0;
    case DW_LNS_const_add_pc:
        if (header->line_range)
            machine->address +=
                (255u - header->opcode_base) / header->line_range * (uint64_t)header->minimum_bytes;
        return 0;
    case DW_LNS_fixed_advance_pc:
        machine->address += bytes_unsigned(bytes, 2);
        return 0;
    default:
        for (unsigned i = 0; i < header->operand_counts[opcode]; i++)
            bytes_uleb(bytes);
        return 0;
    }
}

static int run_special(struct machine *machine, unsigned opcode)
{
    const struct line_header *header = machine->header;
    unsigned adjusted = opcode - header->opcode_base;
    if (!header->line_range)
        return 0;
    machine->address += (uint64_t)(adjusted / header->line_range) * header->minimum_bytes;
    machine->line += (uint64_t)(header->line_base + (int)(adjusted % header->line_range));
    return emit(machine);
}

static int compare(const void *a, const void *b)
{
    const struct line_sequence *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->first_row < right->first_row) - (left->first_row > right->first_row);
}

int line_program_run(struct lines *lines, const struct line_header *header, struct bytes program)
{
    struct machine machine = {.lines = lines, .header = header};
    int err = 0;
    restart(&machine);
    while (!err && bytes_left(&program) && !program.failed) {
        unsigned opcode = (unsigned)bytes_unsigned(&program, 1);
        if (opcode >= header->opcode_base)
            err = run_special(&machine, opcode);
        else if (opcode)
            err = run_standard(&machine, opcode, &program);
        else
            err = run_extended(&machine, &program);
    }
    /* Rows behind the last end are of no sequence. */
    lines->row_count = machine.first_row;
    if (lines->sequence_count)
        qsort(lines->sequences, lines->sequence_count, sizeof *lines->sequences, compare);
    return err;
}
