/* The offset of a module's TLS block from the thread pointer (ELF Handling For Thread-Local
 * Storage, Ulrich Drepper, section 3). The build compiles one of x86_64/tls_offset.c and
 * aarch64/tls_offset.c. */
#ifndef FGPROF_LABEL_TLS_OFFSET_H
#define FGPROF_LABEL_TLS_OFFSET_H

#include "elf/module.h"

/* From the thread pointer to the block of the executable. */
int64_t tls_offset_of_main(const struct tls_segment *segment);

/* The same for a library, from l_tls_offset of its struct link_map. Returns false if its block is
 * at no fixed offset (NO_TLS_OFFSET, FORCED_DYNAMIC_TLS_OFFSET). */
bool tls_offset_of_library(uint64_t l_tls_offset, int64_t *ret_offset);

#endif
