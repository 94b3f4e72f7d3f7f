/* Takes a fuzzer's input apart: numbers from its start, and the rest. If it is too short, numbers
 * are 0. */
#ifndef FGPROF_TESTS_INPUT_H
#define FGPROF_TESTS_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Called by libFuzzer with each input, or by replay.c with each file of the corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
    const uint8_t *at;
    size_t bytes;
};

/* A number of `bytes` bytes, at most 8. */
static inline uint64_t take_number(struct input *input, size_t bytes)
{
    uint64_t value = 0;
    size_t there = bytes < input->bytes ? bytes : input->bytes;
    if (there)
        memcpy(&value, input->at, there);
    input->at += there;
    input->bytes -= there;
    return value;
}

/* The first bytes, as many as there are up to `bytes`. */
static inline struct input take_part(struct input *input, size_t bytes)
{
    struct input part = {input->at, bytes < input->bytes ? bytes : input->bytes};
    input->at += part.bytes;
    input->bytes -= part.bytes;
    return part;
}

/* A copy in memory of its own, followed by `more` zero bytes, so that a sanitizer detects reads
 * beyond it. */
static inline void *copy_of(struct input input, size_t more)
{
    unsigned char *copy = calloc(1, input.bytes + more + !(input.bytes + more));
    if (!copy)
        abort();
    if (input.bytes)
        memcpy(copy, input.at, input.bytes);
    return copy;
}

/* Asserts what must hold for any input. */
static inline void must(_Bool holds)
{
    if (!holds)
        abort();
}

#endif
