/* Finds what code refers to. The build compiles one of x86_64/reference.c and
 * aarch64/reference.c. */
#ifndef FGPROF_RUNTIME_GO_REFERENCE_H
#define FGPROF_RUNTIME_GO_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In how many ways bytes of code can be an operand that refers to data. */
#define REFERENCE_WAYS 3

/* The address of the data to which `code`, which lies at `address`, refers if it is an operand of
 * this form. Only what is at that address can show whether it is one. Returns false if it can't be
 * one. */
bool reference_may_be_at(const uint8_t *code, size_t code_bytes, uint64_t address, unsigned way,
                         uint64_t *ret_data);

#endif
