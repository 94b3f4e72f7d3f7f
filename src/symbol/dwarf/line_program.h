/* Runs the program that a line table is (DWARF 5, 6.2.5). */
#ifndef FGPROF_SYMBOL_DWARF_LINE_PROGRAM_H
#define FGPROF_SYMBOL_DWARF_LINE_PROGRAM_H

#include "symbol/dwarf/lines.h"

struct line_header {
    unsigned version;
    unsigned minimum_bytes; /* of an instruction */
    int line_base;
    unsigned line_range;
    unsigned opcode_base;
    uint8_t operand_counts[256]; /* of the standard opcodes */
};

/* Reads what stands before the names. */
void line_header_read(struct line_header *header, struct bytes *bytes);

/* Adds rows and sequences. Returns 0 or -ENOMEM. */
int line_program_run(struct lines *lines, const struct line_header *header, struct bytes program);

#endif
