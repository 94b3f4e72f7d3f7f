/* Linkage stubs, as linkers write them (System V psABI for AMD64, 5.2; binutils' bfd/elfxx-x86.c,
 * lld's ELF/Arch/X86_64.cpp, mold's elf/arch-x86-64.cc). An entry jumps through its slot. If that
 * is not bound yet, the entry pushes a number (mold: puts it in r11) and goes on to the first
 * entry, which pushes (mold: both) and jumps to the dynamic linker. */
#include "unwind/code/code_frame.h"

#include <string.h>

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, mov_r11[] = {0x41, 0xbb},
                     push_r11[] = {0x41, 0x53}, push_number[] = {0x68},
                     push_global[] = {0xff, 0x35}, jump_through[] = {0xff, 0x25}, jump[] = {0xe9},
                     bnd[] = {0xf2};

#define MOV_R11_BYTES 6
#define PUSH_NUMBER_BYTES 5
#define PUSH_GLOBAL_BYTES 6

#define BEGINS_WITH(code, opcode) (memcmp(code, opcode, sizeof(opcode)) == 0)

/* Whether a stub continues from here to its end. */
static bool is_stub(const uint8_t *code)
{
    if (BEGINS_WITH(code, endbr64))
        code += sizeof endbr64;
    if (BEGINS_WITH(code, mov_r11))
        code += MOV_R11_BYTES;
    if (BEGINS_WITH(code, push_r11))
        code += sizeof push_r11;
    if (BEGINS_WITH(code, push_global))
        code += PUSH_GLOBAL_BYTES;
    bool has_number = BEGINS_WITH(code, push_number);
    if (has_number)
        code += PUSH_NUMBER_BYTES;
    else
        has_number = BEGINS_WITH(code - PUSH_NUMBER_BYTES, push_number);
    if (BEGINS_WITH(code, bnd))
        code += sizeof bnd;
    return BEGINS_WITH(code, jump_through) || (has_number && BEGINS_WITH(code, jump));
}

/* How many words the stub has pushed before this. */
static int32_t pushed_before(const uint8_t *code)
{
    if (BEGINS_WITH(code - PUSH_GLOBAL_BYTES, push_global))
        return 2;
    if (BEGINS_WITH(code, push_global) || BEGINS_WITH(code - PUSH_NUMBER_BYTES, push_number))
        return 1;
    return 0;
}

struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    const uint8_t *here = code + CODE_STUB_BYTES_BEFORE;
    if (!is_stub(here))
        return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
    return (struct code_frame){.kind = CODE_FRAME_BY_SP, .return_address = 8 * pushed_before(here)};
}
