/* Makes a target's names safe for an output. */
#ifndef FGPROF_BASE_NAME_H
#define FGPROF_BASE_NAME_H

#include "base/buffer.h"

/* Appends a name, with control characters and bytes that are not UTF-8 as \xHH: a name is data of
 * the target and could otherwise end a line, control a terminal, or make the output unreadable. */
void name_append(struct buffer *buffer, const char *name);

/* The same in at most `columns` columns, at least 8: a longer name loses its middle, and has "..."
 * there. A character counts as one column. */
void name_append_short(struct buffer *buffer, const char *name, size_t columns);

#endif
