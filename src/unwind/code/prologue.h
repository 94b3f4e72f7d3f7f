/* How a function's frame lies below its frame pointer, read from its machine code. The build
 * compiles one of x86_64/prologue.c and aarch64/prologue.c. */
#ifndef FGPROF_UNWIND_CODE_PROLOGUE_H
#define FGPROF_UNWIND_CODE_PROLOGUE_H

#include <stddef.h>
#include <stdint.h>

#define PROLOGUE_CODE_BYTES_MAX 1024 /* how much of a function's code is read */
#define PROLOGUE_CANDIDATES_MAX 4

/* How far below the frame pointer the stack pointer may be at the end of `code`, which begins with
 * the function, if that has set a frame pointer. Fills in up to PROLOGUE_CANDIDATES_MAX distances
 * in bytes, the likeliest first, and returns how many; 0 if nothing is known. */
size_t prologue_frame_bytes(const uint8_t *code, size_t code_bytes,
                            uint64_t ret_candidates[PROLOGUE_CANDIDATES_MAX]);

#endif
