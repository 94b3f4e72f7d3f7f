/* Reads recordings that were kept (kept/write.c describes the format). They are foreign data: their
 * contents are checked, and memory is allocated only for what is in the file. */
#ifndef FGPROF_KEPT_READ_H
#define FGPROF_KEPT_READ_H

#include "profile/profile.h"

/* The format's version, from the first bytes. Returns 0 or -EILSEQ. */
int kept_version(const uint8_t *data, size_t bytes, uint32_t *ret_version);

/* The profile in these bytes, which are no longer compressed. Nothing can be added to it. Errors as
 * in fgprof_profile_read. */
int kept_parse(const uint8_t *data, size_t bytes, struct fgprof_profile **ret_profile);

#endif
