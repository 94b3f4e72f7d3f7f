/* How Go's functions are called (cmd/compile/abi-internal.md). The build compiles one of
 * x86_64/abi.c and aarch64/abi.c. */
#ifndef FGPROF_RUNTIME_GO_ABI_H
#define FGPROF_RUNTIME_GO_ABI_H

/* The register, by its DWARF number, that has the address of the current struct g while Go's code
 * runs. C and some assembly functions use it for other purposes. */
extern const unsigned go_current_register;

#endif
