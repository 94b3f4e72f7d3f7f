/* What a system call waits for, as far as its arguments show, and the memory that shows the rest.
 *
 * Memory is only worth reading while the thread waits, but its meaning is known only later, when
 * the stack is symbolized. So the arguments alone decide which memory is read. */
#ifndef FGPROF_OBSERVE_CALL_H
#define FGPROF_OBSERVE_CALL_H

#include "proc/memory.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum call_kind {
    CALL_OTHER,
    CALL_FUTEX,
    CALL_FILE,       /* on the descriptor `fd` */
    CALL_EPOLL,      /* on the descriptors of the epoll descriptor `fd` */
    CALL_POLL,       /* on `count` entries: struct pollfd at `address` */
    CALL_SELECT,     /* on descriptors below `count`, in three bitmaps at `sets` */
    CALL_SLEEP,      /* for the struct timespec at `address` */
    CALL_PROCESS,    /* for a child, see `process` */
    CALL_SIGNAL,     /* for a signal */
    CALL_SEMAPHORES, /* for the System V semaphores with the id `fd` */
    CALL_MESSAGES,   /* for the System V message queue with the id `fd` */
};

/* What a CALL_FILE waits for. */
enum file_use {
    FILE_USE_OTHER,
    FILE_USE_READ,
    FILE_USE_WRITE,
    FILE_USE_FLOCK,      /* a lock of flock(2) */
    FILE_USE_POSIX_LOCK, /* one of fcntl(2), owned by a process */
    FILE_USE_OFD_LOCK,   /* one of fcntl(2), owned by an open file description */
};

struct call_target {
    enum call_kind kind;
    enum file_use use;
    uint64_t address;
    uint64_t sets[3];
    int fd; /* CALL_PROCESS: a descriptor of the child (pidfd_open(2)), or -1 */
    uint64_t count;
    int32_t process; /* the child's id in the caller's PID namespace; -1: any of several children */
    uint32_t value;  /* a futex: the value of its word when the wait began */
    bool has_timeout; /* a futex: the wait ends by itself */
    bool is_pi;       /* a futex: its word holds the owner's thread id */
};

/* `number` is this architecture's; a negative number gives CALL_OTHER. */
struct call_target call_target_of(long number, const uint64_t arguments[6]);

/* Whether the program can't notice that a thread was stopped while it slept in this system call:
 * the kernel restarts the call with the rest of its time. False if that is not certain. */
bool call_survives_stop(long number);

#define CALL_RANGES_MAX 3
#define CALL_SET_WORDS 16 /* of a bitmap that are read: the size of glibc's fd_set */
#define CALL_POLLED_MAX 48
#define CALL_LINK_BYTES 384
#define FUTEX_WORDS_BEFORE 40
#define FUTEX_WORDS (FUTEX_WORDS_BEFORE + 16)

/* The memory that was read for a call. Starts zeroed. */
struct call_memory {
    union {
        uint32_t words[FUTEX_WORDS]; /* the futex is words[FUTEX_WORDS_BEFORE] */
        struct pollfd polled[CALL_POLLED_MAX];
        uint64_t sets[3][CALL_SET_WORDS];
        struct timespec length;
        char link[CALL_LINK_BYTES]; /* call_read_link: the descriptor's file, such as "pipe:[123]";
                                       "": not known */
    };
    uint16_t got[CALL_RANGES_MAX]; /* bytes of each range of call_ranges */
};

/* Sets the ranges of memory to read into `memory`. Returns how many there are; call_note_read notes
 * how much of them could be read. */
unsigned call_ranges(const struct call_target *target, struct call_memory *memory,
                     struct memory_range ret_ranges[CALL_RANGES_MAX]);
void call_note_read(struct call_memory *memory, const struct memory_range *ranges, unsigned count);

/* Notes the memory of a CALL_FUTEX that was read elsewhere: FUTEX_WORDS words, of which only those
 * from the futex on are known unless `has_before`. Returns false if the call has no such memory. */
bool call_note_futex(const struct call_target *target, const void *words, bool has_before,
                     struct call_memory *memory);

/* How many words directly before the futex of a CALL_FUTEX were read. */
size_t call_futex_words_before(const struct call_target *target, const struct call_memory *memory);

struct call_reading {
    const struct call_target *target;
    struct call_memory *memory;
};

/* Reads the memory of many calls of the process of thread `tid`, with few system calls. Returns 0
 * or a negative errno, like memory_read_many. */
int call_read_many(pid_t tid, const struct call_reading *readings, size_t count);

/* A descriptor that is polled, and for what. */
struct polled {
    int fd; /* -1: not known */
    enum file_use use;
};

/* How many descriptors a CALL_POLL or CALL_SELECT waits on, and the first of them. Entries with a
 * negative descriptor are ignored (poll(2)), because programs remove entries from their list that
 * way. Entries that were not read are counted. */
uint64_t call_polled(const struct call_target *target, const struct call_memory *memory,
                     struct polled *ret_first);

/* After the memory of a CALL_POLL or CALL_SELECT was read: sets the number of descriptors. A call
 * on a single descriptor becomes a CALL_FILE. */
void call_note_polled(struct call_target *target, const struct call_memory *memory);

/* Reads which file the call's only descriptor refers to, below the open directory /proc/PID,
 * instead of other memory. The file itself is not touched. A long path ends in "...". */
void call_read_link(const struct call_target *target, int proc_fd, struct call_memory *memory);

/* The requested length of a CALL_SLEEP; 0: not known. */
uint64_t call_sleep_ns(const struct call_target *target, const struct call_memory *memory);

#endif
