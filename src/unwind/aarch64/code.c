/* Of what x86_64/ reads from code, only the first stub is done here. The return address is in a
 * register until a function calls another, and the compiler chooses the frame pointer's place in
 * the frame. */
#include "unwind/code/code_frame.h"
#include "unwind/code/prologue.h"

#include <string.h>

struct code_frame code_frame_at(const uint8_t *code, size_t code_bytes, size_t at)
{
    (void)code, (void)code_bytes, (void)at;
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}

/* The first stub, which calls the dynamic linker when a function is first called, pushes two words:
 *     stp x16, x30, [sp, #-16]!; adrp x16, GOT; ldr x17, [x16, ...]; add x16, x16, ...; br x17
 * (ELF for the Arm 64-bit Architecture, "Procedure Linkage Table"; ld's PLT0). */
struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    enum { STEPS = 5 };
    static const struct {
        uint32_t mask, bits;
    } steps[STEPS] = {{0xffffffffu, 0xa9bf7bf0u},
                      {0x9f00001fu, 0x90000010u},
                      {0xffc003ffu, 0xf9400211u},
                      {0xffc003ffu, 0x91000210u},
                      {0xffffffffu, 0xd61f0220u}};
    for (size_t here = 1; here < STEPS; here++) {
        size_t fitting = 0;
        for (size_t i = 0; i < STEPS; i++) {
            uint32_t word;
            memcpy(&word, code + CODE_STUB_BYTES_BEFORE + 4 * i - 4 * here, sizeof word);
            fitting += (word & steps[i].mask) == steps[i].bits;
        }
        if (fitting == STEPS)
            return (struct code_frame){.kind = CODE_FRAME_BY_SP, .return_address = 8};
    }
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}

size_t prologue_frame_bytes(const uint8_t *code, size_t code_bytes,
                            uint64_t ret_candidates[PROLOGUE_CANDIDATES_MAX])
{
    (void)code, (void)code_bytes, (void)ret_candidates;
    return 0;
}
