/* Reads recordings that were kept (the format is told in kept/write.c). They are others' data: what
 * is in them is checked, and nothing is allocated that is not there in the file. */
#ifndef FGPROF_KEPT_READ_H
#define FGPROF_KEPT_READ_H

#include "profile/profile.h"

/* The version of the format, from its first bytes. Returns 0 or -EILSEQ. */
int kept_version(const uint8_t *data, size_t bytes, uint32_t *ret_version);

/* The profile in these bytes, which are not compressed any more. Nothing can be added to it. Errors
 * as of fgprof_profile_read. */
int kept_parse(const uint8_t *data, size_t bytes, struct fgprof_profile **ret_profile);

#endif
