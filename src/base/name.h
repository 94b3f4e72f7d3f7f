/* Makes a target's names safe for an output. */
#ifndef FGPROF_BASE_NAME_H
#define FGPROF_BASE_NAME_H

#include "base/buffer.h"

/* Appends a name, with control characters and bytes that are not UTF-8 as \xHH. The target chooses
 * its names, which could otherwise end a line, control a terminal, or make the output unreadable.
 */
void name_append(struct buffer *buffer, const char *name);

/* The same in at most `columns` columns, at least 8: the middle of a longer name is replaced by
 * "...". A character counts as one column. */
void name_append_short(struct buffer *buffer, const char *name, size_t columns);

#endif
