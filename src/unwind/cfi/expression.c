/* Checks the expressions of call frame information before others evaluate them. */
#include "unwind/cfi/cfi.h"
#include "elf/dwarf.h"

/* Skips the operands of an operation (DWARF 5, 7.7.1). Returns false for one that may not end, that
 * may fault (the least number divided by -1), or that is unknown. */
static bool skip_operands(struct bytes *code, uint8_t operation)
{
    if ((operation >= DW_OP_lit0 && operation <= DW_OP_lit31) ||
        (operation >= DW_OP_reg0 && operation <= DW_OP_reg31))
        return true;
    if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31) {
        bytes_sleb(code);
        return true;
    }
    switch (operation) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_pick:
    case DW_OP_deref_size:
        bytes_skip(code, 1);
        return true;
    case DW_OP_const2u:
    case DW_OP_const2s:
        bytes_skip(code, 2);
        return true;
    case DW_OP_const4u:
    case DW_OP_const4s:
        bytes_skip(code, 4);
        return true;
    case DW_OP_addr:
    case DW_OP_const8u:
    case DW_OP_const8s:
        bytes_skip(code, 8);
        return true;
    case DW_OP_bregx:
        bytes_uleb(code);
        bytes_sleb(code);
        return true;
    case DW_OP_constu:
    case DW_OP_consts:
    case DW_OP_plus_uconst:
    case DW_OP_regx:
        bytes_uleb(code);
        return true;
    case DW_OP_div:
    case DW_OP_skip:
    case DW_OP_bra:
        return false;
    default:
        return operation == DW_OP_deref || operation == DW_OP_nop ||
               (operation >= DW_OP_dup && operation <= DW_OP_rot && operation != DW_OP_xderef) ||
               (operation >= DW_OP_abs && operation <= DW_OP_ne);
    }
}

bool cfi_expression_is_bounded(struct bytes expression)
{
    while (bytes_left(&expression) && !expression.failed) {
        if (!skip_operands(&expression, (uint8_t)bytes_unsigned(&expression, 1)))
            return false;
    }
    return !expression.failed;
}
