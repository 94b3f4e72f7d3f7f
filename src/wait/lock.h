/* What lock a futex belongs to, and which thread holds it.
 *
 * A futex is only a word. It counts as part of a lock only if the thread's own stack says so, and
 * an owner is believed only if the lock's other words agree. */
#ifndef FGPROF_WAIT_LOCK_H
#define FGPROF_WAIT_LOCK_H

#include "observe/call.h"
#include "wait/resource.h"

#define LOCK_FRAMES_MAX 8 /* innermost ones, including inlined ones, that indicate a lock */

struct lock_frame {
    const char *function; /* its symbol's name, not demangled */
    const char *file;     /* the path of the file that it lies in; "": none */
};

/* What a stack shows of the lock that its thread waits for. */
struct lock_site {
    enum resource_kind kind; /* RESOURCE_FUTEX: not known */
    bool is_glibc;           /* it is a lock of glibc, so its words can be read */
    bool is_threads_own;     /* the futex belongs to the waiting thread, not to the lock */
};

/* Whether a file is, by its name, one of glibc's that have its locks. */
bool lock_is_glibc_file(const char *path);

/* `frames` are the innermost ones, leaf first. */
struct lock_site lock_site_of(const struct lock_frame *frames, size_t frame_count);

struct lock {
    enum resource_kind kind;
    uint64_t address; /* of the lock, if its place around the futex is known; else of the futex */
    uint32_t owner;   /* a thread id within the process's PID namespace: the thread that holds the
                         lock, or whose exit is awaited; 0: not known. The caller must check that
                         there is such a thread. */
    uint32_t readers; /* how many threads hold a read-write lock */
    bool is_shared;   /* shared between processes: the owner may be in another process */
};

/* `target` is a CALL_FUTEX, and `memory` what was read for it. */
struct lock lock_of(const struct lock_site *site, const struct call_target *target,
                    const struct call_memory *memory);

/* The C++ object that may contain a lock.
 *
 * An object of a class with virtual functions begins with a pointer to the class's vtable (Itanium
 * C++ ABI, 2.4). What precedes a lock may be a member of the same object, or of another one. */
#define OBJECT_POINTERS_MAX 16

/* The words that may be such a pointer, nearest first; the caller must find out whether they are.
 * `lock` is what lock_of made of the other arguments. Returns how many there are. */
size_t object_pointers(const struct lock *lock, const struct lock_site *site,
                       const struct call_target *target, const struct call_memory *memory,
                       uint64_t ret_pointers[OBJECT_POINTERS_MAX]);

#endif
