/* Recognises calls and jumps in machine code. The build compiles one of x86_64/calls.c
 * and aarch64/calls.c. */
#ifndef FGPROF_UNWIND_CODE_CALLS_H
#define FGPROF_UNWIND_CODE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum call_form {
    CALL_NONE,     /* no call ends here */
    CALL_DIRECT,   /* with its target in the instruction */
    CALL_INDIRECT, /* through a register or memory */
};

#define CALL_BYTES_MAX 7 /* the longest call that is recognised */

/* Whether the bytes before `return_address` are a call. *ret_target is set for a direct call. */
enum call_form call_before(const uint8_t before[CALL_BYTES_MAX], uint64_t return_address,
                           uint64_t *ret_target);

#define JUMP_BYTES 6 /* how much of the code is looked at */

/* Whether a direct jump begins here, in a form that can reach other functions. */
bool jump_is_at(const uint8_t code[JUMP_BYTES], uint64_t address, uint64_t *ret_target);

#define SYSTEM_CALL_BYTES_MAX 4

/* The length of the system call instruction just before an address, or 0 if there is none. */
unsigned system_call_before(const uint8_t before[SYSTEM_CALL_BYTES_MAX]);

#define CLONE_BYTES 40 /* how much of the code before a system call is looked at */

/* Whether the system call that ends these bytes is clone or clone3. */
bool system_call_is_clone(const uint8_t before[CLONE_BYTES]);

#define RETURN_BYTES 2

/* Whether the instruction here returns to an address that is on the stack. */
bool return_is_at(const uint8_t code[RETURN_BYTES]);

#define THREAD_END_BYTES 16 /* how much of the code after a call is looked at */

/* Whether the code after a call only ends the thread, or can't be reached. */
bool call_is_last(const uint8_t after[THREAD_END_BYTES]);

#define CONTEXT_END_BYTES 8

/* Whether this is the code of glibc to which the function of a makecontext(3) context returns. */
bool call_is_context_end(const uint8_t code[CONTEXT_END_BYTES]);

#endif
