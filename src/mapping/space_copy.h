/* Copies of address spaces, for another thread to read while the spaces change. */
#ifndef FGPROF_MAPPING_SPACE_COPY_H
#define FGPROF_MAPPING_SPACE_COPY_H

#include "mapping/spaces.h"

/* Copies the spaces with what is known of generated code so far. The modules are not copied, and
 * must outlive the copy. Returns 0 or -ENOMEM. */
int spaces_copy(const struct spaces *spaces, struct spaces *ret_copy);
void spaces_copy_free(struct spaces *copy);

#endif
