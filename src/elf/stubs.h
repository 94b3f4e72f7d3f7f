/* The stubs through which a module calls functions of other modules (its PLT). They have no
 * symbols. Each jumps to the address in a slot of the global offset table, and the slot's
 * relocation has the name. */
#ifndef FGPROF_ELF_STUBS_H
#define FGPROF_ELF_STUBS_H

#include "elf/module.h"

/* The stub that holds `address`; the stubs are read at first use. NULL if there is none, or memory
 * is short. */
const struct stub *stubs_find(struct module *module, uint64_t address);

void stubs_free(struct stubs *stubs);

/* ---- By architecture: the build compiles one of x86_64/stub.c and aarch64/stub.c ---- */

#define STUB_BYTES 16 /* of a stub's code, at most */

/* Finds the slot that a stub at `address` takes its target from. Returns false for other code. */
bool stub_slot(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_slot);

/* Whether a relocation of this type sets a slot to a symbol's address, or to what a resolver
 * returns. */
bool stub_is_relocated_to_symbol(uint32_t type);
bool stub_is_relocated_to_resolved(uint32_t type);

#endif
