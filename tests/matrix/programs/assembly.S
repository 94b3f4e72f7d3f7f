/* Hand-written functions. Unless CFI is defined, call frame information is only in .debug_frame,
 * which a debugger may read from another file. */
#ifndef EH_FRAME
        .cfi_sections .debug_frame
#endif
        .section .note.GNU-stack,"",@progbits
        .text

.macro FUNCTION name
        .p2align 4
        .globl \name
        .type \name,@function
\name:
        .cfi_startproc
.endm

.macro END name
        .cfi_endproc
        .size \name, .-\name
.endm

/* Allocates some stack. */
FUNCTION with_room
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        sub $48, %rsp
        .cfi_adjust_cfa_offset 48
        call stay
        add $48, %rsp
        .cfi_adjust_cfa_offset -48
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
END with_room

FUNCTION with_frame_pointer
        push %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        mov %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub $32, %rsp
        call stay
        leave
        .cfi_def_cfa %rsp, 8
        .cfi_restore %rbp
        ret
END with_frame_pointer

/* Like much of OpenSSL's hand-written code: the CFA is in a callee-saved register. */
FUNCTION with_other_register
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        mov %rsp, %rbx
        .cfi_def_cfa_register %rbx
        sub $200, %rsp
        and $-64, %rsp
        call stay
        mov %rbx, %rsp
        .cfi_def_cfa_register %rsp
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
END with_other_register

/* The same, with the CFA saved on the stack: DW_CFA_def_cfa_expression, DW_OP_breg7 8; DW_OP_deref;
 * DW_OP_plus_uconst 8. */
FUNCTION with_expression
        mov %rsp, %rax
        .cfi_def_cfa_register %rax
        sub $200, %rsp
        and $-64, %rsp
        mov %rax, 8(%rsp)
        .cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x23, 0x08
        call stay
        mov 8(%rsp), %rsp
        .cfi_def_cfa %rsp, 8
        ret
END with_expression

.macro STAY_HERE place, at
        .if \place == \at
        nop
9:      jmp 9b
        .endif
.endm

/* Switches stacks: saves the current one in *%rdi, and continues with the one at %rsi. The saved
 * frames all have the same layout. Stays at one place in it. */
.macro SWITCH name, place
FUNCTION \name
        STAY_HERE \place, 1
        push %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        STAY_HERE \place, 2
        push %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        push %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        mov %rsp, (%rdi)
        STAY_HERE \place, 3
        mov %rsi, %rsp
        STAY_HERE \place, 4
        pop %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        pop %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        STAY_HERE \place, 5
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        pop %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        STAY_HERE \place, 6
        ret
END \name
.endm

        SWITCH switch_to, 0
        SWITCH switch_at_1, 1
        SWITCH switch_at_2, 2
        SWITCH switch_at_3, 3
        SWITCH switch_at_4, 4
        SWITCH switch_at_5, 5
        SWITCH switch_at_6, 6

/* Where a fiber begins: nobody called it. */
        nop
FUNCTION fiber_start
        .cfi_undefined %rip
        mov %r12, %rdi
        call *%rbx
        ud2
END fiber_start
