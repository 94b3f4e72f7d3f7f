/* Call frame information built by hand, and the modules, address spaces and stacks around it. */
#ifndef FGPROF_TESTS_MAKE_CFI_H
#define FGPROF_TESTS_MAKE_CFI_H

#include "unit.h"
#include "elf/elf_file.h"
#include "unwind/cfi/cfi.h"
#include "elf/dwarf.h"

/* A module of one segment: code first, then its sections. */
#define MADE_ADDRESS 0x200000u
#define MADE_CODE_BYTES 0x4000u
#define MADE_EH_FRAME (MADE_ADDRESS + MADE_CODE_BYTES)
#define MADE_SECTION_BYTES 0x18000u /* large enough for an entry of CFI_ENTRY_BYTES_MAX */

/* Registers that have a role, by their DWARF numbers. RA is the one whose row says where the caller
 * goes on; BASE is one that functions preserve. Those that are named by their number have no role.
 */
#ifdef __aarch64__
enum { BASE = 19, FP = 29, LR = 30, RA = LR, SP = 31, PC = 32 };
#else
enum { BASE = 3, FP = 6, SP = 7, RA = 16, PC = 16 };
#endif
enum { R5 = 5, R9 = 9, R10 = 10 };

#define BREG(number) (DW_OP_breg0 + (number))

/* What a signal handler returns to: the call of rt_sigreturn, which begins at byte
 * MADE_SIGNAL_CALL. On x86-64 its entry begins a byte early, as glibc's; on AArch64 it does not, as
 * that of the kernel's vDSO up to 5.7. */
#ifdef __aarch64__
enum { MADE_SIGNAL_CALL = 4, MADE_SIGNAL_ENTRY_EARLY = 0 };
static const uint8_t made_signal_return[] = {0x68, 0x11, 0x80, 0xd2,  /* mov x8, #139 */
                                             0x01, 0x00, 0x00, 0xd4}; /* svc #0 */
#else
enum { MADE_SIGNAL_CALL = 7, MADE_SIGNAL_ENTRY_EARLY = 1 };
static const uint8_t made_signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, /* mov $15,%rax */
                                             0x0f, 0x05};                     /* syscall */
#endif

/* A list of bytes, and how many they are, as two arguments. */
#define BYTES(...)                                                                                 \
    (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[])                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A section under construction. */
struct made_section {
    bool is_debug_frame;
    size_t length;
    uint8_t bytes[MADE_SECTION_BYTES];
};

static inline void put_bytes(struct made_section *section, const void *bytes, size_t count)
{
    assert_true(count <= sizeof section->bytes - section->length);
    if (count)
        memcpy(section->bytes + section->length, bytes, count);
    section->length += count;
}

static inline void put_number(struct made_section *section, uint64_t value, size_t bytes)
{
    put_bytes(section, &value, bytes);
}

static inline void put_uleb(struct made_section *section, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        put_number(section, (value & 0x7f) | 0x80, 1);
    put_number(section, value, 1);
}

static inline void put_sleb(struct made_section *section, int64_t value)
{
    for (; value < -0x40 || value > 0x3f; value >>= 7)
        put_number(section, ((uint64_t)value & 0x7f) | 0x80, 1);
    put_number(section, (uint64_t)value & 0x7f, 1);
}

/* The position of the next byte, as struct cfi_source counts it. */
static inline uint64_t made_position(const struct made_section *section)
{
    return section->length + (section->is_debug_frame ? 0 : MADE_EH_FRAME);
}

/* How a CIE and its FDEs are written. */
struct made_form {
    uint8_t version;
    bool has_64_bits;
    const char *letters; /* the augmentation string */
    uint8_t pointer_encoding;
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t return_register;
};

/* As compilers write them in each section. (On AArch64 the code factor is 4: here, rows may begin
 * at any byte.) */
static const struct made_form made_eh_form = {1, false, "zR", 0x1b, 1, -8, RA};
static const struct made_form made_signal_form = {1, false, "zRS", 0x1b, 1, -8, RA};
static const struct made_form made_debug_form = {4, false, "", 0, 1, -8, RA};

/* Reserves space for the length, which end_entry fills in; returns the argument for that. */
static inline size_t begin_entry(struct made_section *section, bool has_64_bits)
{
    if (has_64_bits)
        put_number(section, UINT32_MAX, 4);
    put_number(section, 0, has_64_bits ? 8 : 4);
    return section->length;
}

static inline void end_entry(struct made_section *section, size_t begin, bool has_64_bits)
{
    uint64_t length = section->length - begin;
    size_t bytes = has_64_bits ? 8 : 4;
    memcpy(section->bytes + begin - bytes, &length, bytes);
}

static inline void put_augmentation(struct made_section *section, const struct made_form *form)
{
    if (form->letters[0] != 'z')
        return;
    static struct made_section data;
    data.length = 0;
    for (const char *letter = form->letters + 1; *letter; letter++) {
        if (*letter == 'R')
            put_number(&data, form->pointer_encoding, 1);
        if (*letter == 'L')
            put_number(&data, 0x1b, 1);
        if (*letter == 'P')
            put_bytes(&data, BYTES(0x9b, 1, 2, 3, 4)); /* indirect, relative, 32 bits */
    }
    put_uleb(section, data.length);
    put_bytes(section, data.bytes, data.length);
}

/* Appends a CIE. Returns its position. */
static inline uint64_t put_cie(struct made_section *section, const struct made_form *form,
                               const uint8_t *program, size_t bytes)
{
    uint64_t position = made_position(section);
    size_t begin = begin_entry(section, form->has_64_bits);
    if (section->is_debug_frame)
        put_number(section, UINT64_MAX, form->has_64_bits ? 8 : 4);
    else
        put_number(section, 0, 4);
    put_number(section, form->version, 1);
    put_bytes(section, form->letters, strlen(form->letters) + 1);
    if (form->version == 4)
        put_bytes(section, BYTES(8, 0)); /* sizes of an address and of a segment selector */
    put_uleb(section, form->code_factor);
    put_sleb(section, form->data_factor);
    if (form->version == 1)
        put_number(section, form->return_register, 1);
    else
        put_uleb(section, form->return_register);
    put_augmentation(section, form);
    put_bytes(section, program, bytes);
    end_entry(section, begin, form->has_64_bits);
    return position;
}

static inline void put_pointer(struct made_section *section, uint8_t encoding, uint64_t value)
{
    static const uint8_t sizes[16] = {
        [0] = 8, [2] = 2, [3] = 4, [4] = 8, [0xa] = 2, [0xb] = 4, [0xc] = 8};
    assert_true(sizes[encoding & 0xf]);
    if ((encoding & 0x70) == 0x10)
        value -= made_position(section);
    put_number(section, value, sizes[encoding & 0xf]);
}

/* Appends an FDE of the CIE at `cie`, for the code from `start` on. Returns its position. */
static inline uint64_t put_fde(struct made_section *section, const struct made_form *form,
                               uint64_t cie, uint64_t start, uint64_t code_bytes,
                               const uint8_t *program, size_t bytes)
{
    uint64_t position = made_position(section);
    uint8_t encoding = strchr(form->letters, 'R') ? form->pointer_encoding : 0;
    size_t begin = begin_entry(section, form->has_64_bits);
    if (section->is_debug_frame)
        put_number(section, cie, form->has_64_bits ? 8 : 4);
    else
        put_number(section, made_position(section) - cie, 4);
    put_pointer(section, encoding, start);
    put_pointer(section, encoding & 0xf, code_bytes);
    if (form->letters[0] == 'z' && strchr(form->letters, 'L')) {
        put_uleb(section, 4);
        put_number(section, 0x01020304, 4); /* exception data */
    } else if (form->letters[0] == 'z') {
        put_uleb(section, 0);
    }
    put_bytes(section, program, bytes);
    end_entry(section, begin, form->has_64_bits);
    return position;
}

/* CFA = sp + 8, return address at CFA - 8: nothing else is on the stack. So it is at the first
 * instruction of a function on x86-64. */
#define MADE_ENTRY_ROW DW_CFA_def_cfa, SP, 8, DW_CFA_offset | RA, 1

/* Fills code with instructions that do nothing. */
static inline void put_nops(uint8_t *code, size_t bytes)
{
#ifdef __aarch64__
    static const uint8_t nop[] = {0x1f, 0x20, 0x03, 0xd5};
#else
    static const uint8_t nop[] = {0x90};
#endif
    for (size_t i = 0; i < bytes; i++)
        code[i] = nop[i % sizeof nop];
}

/* Makes a module of MADE_CODE_BYTES bytes of code, which are nops if `code` is NULL, and its
 * sections, which may be NULL. */
static inline void make_module(struct module *module, const uint8_t *code,
                               const struct made_section *eh_frame,
                               const struct made_section *debug_frame)
{
    size_t eh_bytes = eh_frame ? eh_frame->length : 0;
    size_t debug_bytes = debug_frame ? debug_frame->length : 0;
    /* The file continues behind the sections. */
    size_t bytes = MADE_CODE_BYTES + eh_bytes + debug_bytes + 64;
    unsigned char *memory = calloc(1, bytes);
    *module = (struct module){.is_readable = true};
    module->segments = calloc(1, sizeof *module->segments);
    assert_true(memory && module->segments);
    put_nops(memory, MADE_CODE_BYTES);
    if (code)
        memcpy(memory, code, MADE_CODE_BYTES);
    if (eh_bytes)
        memcpy(memory + MADE_CODE_BYTES, eh_frame->bytes, eh_bytes);
    if (debug_bytes)
        memcpy(memory + MADE_CODE_BYTES + eh_bytes, debug_frame->bytes, debug_bytes);
    image_open_memory(&module->image, memory, bytes);
    module->segment_count = 1;
    /* .debug_frame is not loaded. */
    module->segments[0] = (struct segment){
        .file_bytes = MADE_CODE_BYTES + eh_bytes,
        .address = MADE_ADDRESS,
        .memory_bytes = MADE_CODE_BYTES + eh_bytes,
        .executable = true,
    };
    module->eh_frame = (struct cfi_section){
        .address = MADE_EH_FRAME, .offset = MADE_CODE_BYTES, .bytes = eh_bytes};
    module->debug_frame =
        (struct cfi_section){.offset = MADE_CODE_BYTES + eh_bytes, .bytes = debug_bytes};
}

static inline void made_module_free(struct module *module)
{
    module_clear(module);
}

/* An entry for a function from `start` to `end`, whose programs may be anywhere in memory. */
static inline struct cfi_entry *made_entry(uint64_t start, uint64_t end, const uint8_t *common,
                                           size_t common_bytes, const uint8_t *own,
                                           size_t own_bytes)
{
    static struct cfi_entry entry; /* large */
    entry.start = start;
    entry.end = end;
    entry.code_factor = 1;
    entry.data_factor = -8;
    entry.return_register = RA;
    entry.pointer_encoding = 0;
    entry.has_augmentation = entry.is_signal_frame = false;
    entry.common_program = (struct bytes){common, common + common_bytes, false};
    entry.program = (struct bytes){own, own + own_bytes, false};
    return &entry;
}

#endif
