#include "observe/call.h"
#include "base/clock.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD /* glibc 2.36 */
#define P_PIDFD 3
#endif

#define READINGS_AT_ONCE 256
#define PAGE_BYTES 4096u          /* the smallest page size */
#define FUTEX_LOCK_WORDS_BEFORE 4 /* of a lock whose futex is not its first word */
#define SLEEP_MAX_S 1000000000    /* longer counts as forever, and would not fit */

/* futex(2): address, operation, value, timeout. FUTEX_CMD_MASK removes flags such as "private". */
static struct call_target futex_target(const uint64_t arguments[6])
{
    struct call_target target = {
        .kind = CALL_FUTEX,
        .address = arguments[0],
        .value = (uint32_t)arguments[2],
        .has_timeout = arguments[3] != 0,
    };
    switch (arguments[1] & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        target.is_pi = true;
        return target;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        return target;
    default: /* does not wait for that word */
        return (struct call_target){0};
    }
}

/* With an absolute time, the length of the sleep is not known. */
static struct call_target sleep_target(const uint64_t arguments[6])
{
    return (struct call_target){
        .kind = CALL_SLEEP,
        .address = arguments[1] & TIMER_ABSTIME ? 0 : arguments[2],
    };
}

static struct call_target file_target(const uint64_t arguments[6], enum file_use use)
{
    return (struct call_target){.kind = CALL_FILE, .use = use, .fd = (int)arguments[0]};
}

static enum file_use use_of_fcntl(int command)
{
    return command == F_SETLKW       ? FILE_USE_POSIX_LOCK
           : command == F_OFD_SETLKW ? FILE_USE_OFD_LOCK
                                     : FILE_USE_OTHER;
}

static struct call_target select_target(const uint64_t arguments[6])
{
    int32_t limit = (int32_t)arguments[0];
    return (struct call_target){
        .kind = CALL_SELECT,
        .count = limit < 0 ? 0 : (uint64_t)limit,
        .sets = {arguments[1], arguments[2], arguments[3]},
    };
}

/* An id of 0 or less means the children of a process group, or all children (wait4(2)). */
static struct call_target wait4_target(const uint64_t arguments[6])
{
    int32_t id = (int32_t)arguments[0];
    return (struct call_target){.kind = CALL_PROCESS, .process = id > 0 ? id : -1, .fd = -1};
}

static struct call_target waitid_target(const uint64_t arguments[6])
{
    int id = (int)arguments[1];
    return (struct call_target){
        .kind = CALL_PROCESS,
        .process = arguments[0] == P_PID && id > 0 ? id : -1,
        .fd = arguments[0] == P_PIDFD ? id : -1,
    };
}

static struct call_target number_target(const uint64_t arguments[6], enum call_kind kind)
{
    return (struct call_target){.kind = kind, .fd = (int)arguments[0]};
}

/* Calls on a file that may sleep. Newer architectures lack some of the calls. */
static struct call_target file_target_of(long number, const uint64_t arguments[6])
{
    switch (number) {
    case SYS_accept:
    case SYS_accept4:
    case SYS_getdents64:
    case SYS_mq_timedreceive:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmmsg:
    case SYS_recvmsg:
    case SYS_splice:
    case SYS_tee:
        return file_target(arguments, FILE_USE_READ);
    case SYS_mq_timedsend:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_sendmmsg:
    case SYS_sendmsg:
    case SYS_sendto:
    case SYS_vmsplice:
    case SYS_write:
    case SYS_writev:
        return file_target(arguments, FILE_USE_WRITE);
    case SYS_close:
    case SYS_connect:
    case SYS_copy_file_range:
    case SYS_fallocate:
    case SYS_fdatasync:
    case SYS_fsync:
    case SYS_ftruncate:
    case SYS_io_uring_enter:
    case SYS_ioctl:
    case SYS_sync_file_range:
    case SYS_syncfs:
        return file_target(arguments, FILE_USE_OTHER);
    case SYS_fcntl:
        return file_target(arguments, use_of_fcntl((int)arguments[1]));
    case SYS_flock:
        return file_target(arguments, FILE_USE_FLOCK);
    default:
        return (struct call_target){0};
    }
}

struct call_target call_target_of(long number, const uint64_t arguments[6])
{
    switch (number) {
    case SYS_futex:
        return futex_target(arguments);
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
    case SYS_epoll_pwait:
        return number_target(arguments, CALL_EPOLL);
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
        return (struct call_target){
            .kind = CALL_POLL, .address = arguments[0], .count = (uint32_t)arguments[1]};
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
        return select_target(arguments);
    case SYS_nanosleep:
        return (struct call_target){.kind = CALL_SLEEP, .address = arguments[0]};
    case SYS_clock_nanosleep:
        return sleep_target(arguments);
    case SYS_wait4:
        return wait4_target(arguments);
    case SYS_waitid:
        return waitid_target(arguments);
#ifdef SYS_pause
    case SYS_pause:
#endif
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
        return (struct call_target){.kind = CALL_SIGNAL};
    case SYS_semop:
    case SYS_semtimedop:
        return number_target(arguments, CALL_SEMAPHORES);
    case SYS_msgrcv:
    case SYS_msgsnd:
        return number_target(arguments, CALL_MESSAGES);
    default:
        return file_target_of(number, arguments);
    }
}

/* Calls that were tested on x86-64 to restart cleanly after a stop without a signal, in code that
 * all architectures share; signal(7) lists those that do not. */
bool call_survives_stop(long number)
{
    switch (number) {
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_futex:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_restart_syscall:
        return true;
    default:
        return false;
    }
}

/* How many bytes before the futex to read: those that may belong to the lock, and more before them
 * only on the same page. An unmapped page would make the read of the lock's own bytes fail too, and
 * cost one more system call. */
static size_t futex_bytes_before(uint64_t address)
{
    size_t own = FUTEX_LOCK_WORDS_BEFORE * sizeof(uint32_t);
    size_t more = FUTEX_WORDS_BEFORE * sizeof(uint32_t) - own;
    size_t on_page = (address - own) % PAGE_BYTES;
    return own + (on_page < more ? on_page : more);
}

static unsigned futex_ranges(const struct call_target *target, struct call_memory *memory,
                             struct memory_range *ret_ranges)
{
    size_t before = futex_bytes_before(target->address);
    if (target->address % sizeof *memory->words || target->address < before)
        return 0;
    ret_ranges[0] = (struct memory_range){.address = target->address,
                                          .buffer = &memory->words[FUTEX_WORDS_BEFORE]};
    ret_ranges[0].bytes = (FUTEX_WORDS - FUTEX_WORDS_BEFORE) * sizeof *memory->words;
    ret_ranges[1] = (struct memory_range){
        .address = target->address - before,
        .buffer = &memory->words[FUTEX_WORDS_BEFORE - before / sizeof *memory->words],
        .bytes = before};
    return 2;
}

bool call_note_futex(const struct call_target *target, const void *words, bool has_before,
                     struct call_memory *memory)
{
    struct memory_range ranges[CALL_RANGES_MAX];
    *memory = (struct call_memory){0};
    if (target->kind != CALL_FUTEX || futex_ranges(target, memory, ranges) != 2)
        return false;
    memcpy(memory->words, words, sizeof memory->words);
    memory->got[0] = (uint16_t)ranges[0].bytes;
    memory->got[1] = has_before ? (uint16_t)ranges[1].bytes : 0;
    return true;
}

size_t call_futex_words_before(const struct call_target *target, const struct call_memory *memory)
{
    /* If fewer bytes could be read, those next to the futex are missing. */
    size_t bytes = futex_bytes_before(target->address);
    return memory->got[1] == bytes ? bytes / sizeof *memory->words : 0;
}

static unsigned set_ranges(const struct call_target *target, struct call_memory *memory,
                           struct memory_range *ret_ranges)
{
    uint64_t words = (target->count + 63) / 64;
    size_t bytes = (words < CALL_SET_WORDS ? (size_t)words : CALL_SET_WORDS) * sizeof(uint64_t);
    for (unsigned i = 0; i < 3; i++)
        ret_ranges[i] = (struct memory_range){.address = target->sets[i],
                                              .buffer = memory->sets[i],
                                              .bytes = target->sets[i] ? bytes : 0};
    return 3;
}

unsigned call_ranges(const struct call_target *target, struct call_memory *memory,
                     struct memory_range ret_ranges[CALL_RANGES_MAX])
{
    struct memory_range one = {.address = target->address, .buffer = memory};
    *memory = (struct call_memory){0};
    switch (target->kind) {
    case CALL_FUTEX:
        return futex_ranges(target, memory, ret_ranges);
    case CALL_SELECT:
        return set_ranges(target, memory, ret_ranges);
    case CALL_POLL:
        one.bytes = target->count < CALL_POLLED_MAX ? target->count : CALL_POLLED_MAX;
        one.bytes *= sizeof *memory->polled;
        break;
    case CALL_SLEEP:
        one.bytes = target->address ? sizeof memory->length : 0;
        break;
    default:
        break;
    }
    ret_ranges[0] = one;
    return one.bytes != 0;
}

void call_note_read(struct call_memory *memory, const struct memory_range *ranges, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        memory->got[i] = (uint16_t)ranges[i].got;
}

static int read_some(pid_t tid, const struct call_reading *readings, size_t count)
{
    struct memory_range ranges[READINGS_AT_ONCE * CALL_RANGES_MAX];
    unsigned counts[READINGS_AT_ONCE];
    size_t range_count = 0, done = 0;
    for (size_t i = 0; i < count; i++) {
        counts[i] = call_ranges(readings[i].target, readings[i].memory, &ranges[range_count]);
        range_count += counts[i];
    }
    int err = memory_read_many(tid, NULL, ranges, range_count);
    for (size_t i = 0; i < count; i++) {
        call_note_read(readings[i].memory, &ranges[done], counts[i]);
        done += counts[i];
    }
    return err;
}

int call_read_many(pid_t tid, const struct call_reading *readings, size_t count)
{
    int err = 0;
    for (size_t done = 0, some; done < count && !err; done += some) {
        some = count - done < READINGS_AT_ONCE ? count - done : READINGS_AT_ONCE;
        err = read_some(tid, &readings[done], some);
    }
    return err;
}

/* The word of one of the bitmaps; 0 if it was not read. */
static uint64_t set_word(const struct call_memory *memory, unsigned set, unsigned word)
{
    return (word + 1) * sizeof(uint64_t) <= memory->got[set] ? memory->sets[set][word] : 0;
}

static uint64_t count_selected(const struct call_target *target, const struct call_memory *memory,
                               struct polled *ret_first)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < CALL_SET_WORDS && i * 64 < target->count; i++) {
        uint64_t to_read = set_word(memory, 0, i), to_write = set_word(memory, 1, i);
        uint64_t word = to_read | to_write | set_word(memory, 2, i);
        if (target->count - i * 64 < 64)
            word &= (1ull << (target->count - i * 64)) - 1;
        uint64_t first = word & -word;
        if (word && !count)
            *ret_first = (struct polled){
                .fd = (int)(i * 64) + __builtin_ctzll(word),
                .use = to_read & first    ? FILE_USE_READ
                       : to_write & first ? FILE_USE_WRITE
                                          : FILE_USE_OTHER,
            };
        count += (uint64_t)__builtin_popcountll(word);
    }
    return count;
}

uint64_t call_polled(const struct call_target *target, const struct call_memory *memory,
                     struct polled *ret_first)
{
    *ret_first = (struct polled){.fd = -1};
    if (target->kind == CALL_SELECT)
        return count_selected(target, memory, ret_first);
    uint64_t count = target->count;
    for (size_t i = memory->got[0] / sizeof *memory->polled; i-- > 0;) {
        const struct pollfd *entry = &memory->polled[i];
        if (entry->fd < 0)
            count--;
        else
            *ret_first = (struct polled){
                .fd = entry->fd,
                .use = entry->events & POLLIN    ? FILE_USE_READ
                       : entry->events & POLLOUT ? FILE_USE_WRITE
                                                 : FILE_USE_OTHER,
            };
    }
    return count;
}

void call_note_polled(struct call_target *target, const struct call_memory *memory)
{
    struct polled first;
    uint64_t count = call_polled(target, memory, &first);
    if (count == 1 && first.fd >= 0)
        *target =
            (struct call_target){.kind = CALL_FILE, .count = 1, .fd = first.fd, .use = first.use};
    else
        target->count = count;
}

void call_read_link(const struct call_target *target, int proc_fd, struct call_memory *memory)
{
    static const char more[] = "...";
    char path[32];
    snprintf(path, sizeof path, "fd/%d", target->fd);
    ssize_t length =
        target->fd < 0 ? -1 : readlinkat(proc_fd, path, memory->link, sizeof memory->link);
    if (length == (ssize_t)sizeof memory->link)
        memcpy(memory->link + sizeof memory->link - sizeof more, more, sizeof more);
    else
        memory->link[length < 0 ? 0 : length] = '\0';
}

uint64_t call_sleep_ns(const struct call_target *target, const struct call_memory *memory)
{
    const struct timespec *length = &memory->length;
    if (target->kind != CALL_SLEEP || memory->got[0] != sizeof *length || length->tv_sec < 0 ||
        length->tv_sec >= SLEEP_MAX_S || length->tv_nsec < 0 || length->tv_nsec >= NS_PER_S)
        return 0;
    return (uint64_t)length->tv_sec * NS_PER_S + (uint64_t)length->tv_nsec;
}
