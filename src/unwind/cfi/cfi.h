/* Call frame information: what a module says, for each instruction of a function, of where the
 * function's caller is (DWARF 5, 6.4; .eh_frame: LSB Core 5.0, 10.6).
 *
 * It consists of entries: an FDE for each function, and CIEs with what several FDEs share. Both
 * have a small program that makes a table with a row for each stretch of code: how the frame's
 * address (CFA) is computed there, and where the caller's value of each register is. */
#ifndef FGPROF_UNWIND_CFI_CFI_H
#define FGPROF_UNWIND_CFI_CFI_H

#include "base/bytes.h"
#include "elf/module.h"
#include "observe/registers.h"

/* Longer entries are ignored. The longest FDE of Debian 12's programs has 20 KB, in cc1plus. A CIE
 * has about 30 bytes, and is read again for each FDE. */
#define CFI_ENTRY_BYTES_MAX (64u << 10)
#define CFI_CIE_BYTES_MAX 1024u

/* Where the entries are read from. Positions in .eh_frame are addresses of the module; positions in
 * .debug_frame are offsets from the section's start. */
struct cfi_source {
    struct module *module;
    bool is_debug_frame;
};

/* A function's FDE with its CIE. The programs point into `buffers`. */
struct cfi_entry {
    uint64_t start, end; /* the function's code, in addresses of the module */
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t return_register; /* DWARF number */
    uint8_t pointer_encoding; /* DW_EH_PE_* */
    bool has_augmentation;    /* the FDE has data of its own, after its length */
    bool is_signal_frame;     /* its caller did not call: a signal handler interrupted it */
    struct bytes common_program, program;
    struct {
        uint8_t common[CFI_CIE_BYTES_MAX], own[CFI_ENTRY_BYTES_MAX];
    } buffers;
};

/* What the head of an entry says. */
struct cfi_head {
    uint64_t next;         /* the position after the entry */
    uint64_t body;         /* the position after the head */
    uint64_t body_bytes;   /* how long the body is */
    uint64_t cie_position; /* for an FDE */
    bool is_cie;
};

/* Reads the head at `position`. Returns false at the end, or if it can't be one. */
bool cfi_read_head(const struct cfi_source *source, uint64_t position, struct cfi_head *ret_head);

/* Reads the FDE at `position`, and its CIE, into *ret_entry, which is large. Returns false if they
 * are damaged or of an unknown form. */
bool cfi_read_entry(const struct cfi_source *source, uint64_t position,
                    struct cfi_entry *ret_entry);

/* How the caller's value of a register is found. */
enum cfi_kind {
    CFI_SAME,          /* it is unchanged */
    CFI_UNDEFINED,     /* it is lost; for the return address: there is no caller */
    CFI_AT_OFFSET,     /* in memory at CFA + offset */
    CFI_IS_OFFSET,     /* it is CFA + offset */
    CFI_IN_REGISTER,   /* in another register */
    CFI_AT_EXPRESSION, /* in memory, where the expression says */
    CFI_IS_EXPRESSION, /* what the expression says */
};

struct cfi_register {
    enum cfi_kind kind;
    int64_t offset;          /* for CFI_IN_REGISTER, the register's number */
    struct bytes expression; /* DWARF operations */
};

struct cfi_row {
    bool cfa_is_expression;
    uint64_t cfa_register;
    int64_t cfa_offset;
    struct bytes cfa_expression;
    struct cfi_register registers[REGISTERS_MAX];
};

/* Finds the row for `address`, which must lie in the entry's function. Returns false if the
 * programs are damaged, or use what is not known. */
bool cfi_find_row(const struct cfi_entry *entry, uint64_t address, struct cfi_row *ret_row);

/* ---- Finding the FDE of an address ---- */

/* Reads the entry that holds `address`, from .eh_frame or else .debug_frame. The linker's table
 * (.eh_frame_hdr) shows where it is, or else one that is made here at first use by reading all
 * entries. Returns 0, -ENOENT if there is none that can be used, or -ENOMEM. */
int cfi_find(struct module *module, uint64_t address, struct cfi_entry *ret_entry);

#endif
