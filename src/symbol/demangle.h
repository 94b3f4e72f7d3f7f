#ifndef FGPROF_SYMBOL_DEMANGLE_H
#define FGPROF_SYMBOL_DEMANGLE_H

/* The source name of a linker symbol of C++, Rust or D, without its parameters; NULL where it is no
 * such symbol. The caller frees it. */
char *demangle(const char *symbol);

#endif
