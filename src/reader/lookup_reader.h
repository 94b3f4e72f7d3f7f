/* Looks things up in a process without privileges: see unwind/lookup.h and elf/query.h.
 *
 * If that process crashes, hangs or takes too much memory over a module, nothing more is looked up
 * in that module, and its `unread` gives the reason: its stacks are cut there. Another process
 * continues with the other modules. If no process can be started, stacks are cut, too, until one
 * can: nothing is looked up with privileges. */
#ifndef FGPROF_READER_LOOKUP_READER_H
#define FGPROF_READER_LOOKUP_READER_H

#include "unwind/lookup.h"

struct lookup_reader;

/* A process that takes this long for one question is killed, because all unwinding waits for it.
 * Reading the symbol table of the largest programs takes some tenths of a second, and many times
 * that on an overloaded machine. */
#define LOOKUP_LIMIT_MS 10000

/* Call this before any file of a target is opened. Returns 0, even if no process can be started, or
 * -ENOMEM. */
int lookup_reader_new(unsigned limit_ms, struct lookup_reader **ret_reader);
void lookup_reader_free(struct lookup_reader *reader);

/* Belongs to the reader. One thread at a time may ask. */
struct lookups *lookup_reader_lookups(struct lookup_reader *reader);

#endif
