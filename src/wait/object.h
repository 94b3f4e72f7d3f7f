/* The C++ object that a lock may be part of.
 *
 * An object of a class with virtual functions begins with a pointer to the class's vtable (Itanium
 * C++ ABI, 2.4). What lies before a lock may be a member of the same object, or of something else.
 */
#ifndef FGPROF_WAIT_OBJECT_H
#define FGPROF_WAIT_OBJECT_H

#include "wait/lock.h"

#define OBJECT_POINTERS_MAX 16

/* The words that may be such a pointer, nearest first; whether they are is for the caller to find
 * out. `lock` is what lock_of made of the other arguments. Returns how many. */
size_t object_pointers(const struct lock *lock, const struct lock_site *site,
                       const struct call_target *target, const struct call_memory *memory,
                       uint64_t ret_pointers[OBJECT_POINTERS_MAX]);

#endif
