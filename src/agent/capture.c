#include "agent/capture.h"
#include "agent/this_thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_BYTES 4096u /* of the smallest page that there is */
/* A deeper stack is not tried page by page, but copied by the kernel each time. */
#define DEPTH_MAX (8u << 20)
/* What a thread's own stack has at least below its pthread_t in glibc: PTHREAD_STACK_MIN, 16 KiB,
 * less glibc's struct pthread and its alignment. */
#define OWN_BYTES (8u << 10)

#if defined(__x86_64__)
#define SP_AT 2u /* in AGENT_REGISTERS */
#elif defined(__aarch64__)
#define SP_AT 11u
#endif

/* Where the main thread began. Only glibc has it, in its dynamic linker. */
extern void *__libc_stack_end __attribute__((weak));

/* The end of the thread's stack if it is on the stack that it was started with. */
static uint64_t find_stack_end(void)
{
    if (this_thread_tid() != (uint32_t)getpid())
        return (uint64_t)(uintptr_t)pthread_self(); /* both glibc and musl put it there */
    if (&__libc_stack_end)
        return (uint64_t)(uintptr_t)__libc_stack_end;
    return getauxval(AT_RANDOM); /* the kernel puts these bytes above the program's arguments */
}

/* Copies as much as can be read, without a fault, and returns how much that is. */
static size_t copy_by_kernel(void *buffer, uint64_t address, size_t bytes)
{
    const struct iovec to = {.iov_base = buffer, .iov_len = bytes};
    const struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    ssize_t copied = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    return copied > 0 ? (size_t)copied : 0;
}

/* Whether the word can be read. The kernel reads it, and then refuses the rest of the call. */
static bool is_readable(uint64_t address)
{
    const long no_such_way = -1;
    return syscall(SYS_rt_sigprocmask, no_such_way, address, NULL, sizeof(uint64_t)) &&
           errno == EINVAL;
}

/* Some kernels look at the arguments in another order, and refuse the call before they read. It is
 * tried once, because a fault takes longer than copying a stack. */
static bool is_told_of_faults(void)
{
    static _Atomic int known; /* 1: yes, 2: no */
    const uint64_t nowhere = 8;
    if (!known)
        known = is_readable(nowhere) ? 2 : 1;
    return known == 1;
}

bool capture_read_word(uint64_t address, uint64_t *ret_word)
{
    if (is_told_of_faults() && !is_readable(address))
        return false;
    *ret_word = *(const volatile uint64_t *)(uintptr_t)address;
    return true;
}

/* Tries each page from `start` to `limit`, except the first, which the thread is on. */
static bool are_readable(uint64_t start, uint64_t limit)
{
    uint64_t page = (start | (PAGE_BYTES - 1)) + 1;
    while (page < limit && is_told_of_faults() && is_readable(page))
        page += PAGE_BYTES;
    return page >= limit;
}

static void remember(uint64_t start, uint64_t limit)
{
    /* A signal handler must not see one stack's start with another's end. */
    this_thread.stack_start = UINT64_MAX;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    this_thread.stack_limit = limit;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    this_thread.stack_start = start;
}

/* Whether everything between `sp` and the end of the thread's own stack was readable when it was
 * tried. Coroutines and signal handlers usually run on stacks with an unreadable gap in between.
 * The result is kept, because trying a deep stack takes long. */
static bool is_joined_to_own_stack(uint64_t sp)
{
    uint64_t end = this_thread.stack_limit ? this_thread.stack_limit : find_stack_end();
    uint64_t tried = this_thread.stack_limit ? this_thread.stack_start : end;
    if (sp >= end || end - sp > DEPTH_MAX)
        return false;
    if (sp >= tried)
        return true;
    if (!are_readable(sp, tried))
        return false;
    remember(sp, end);
    return true;
}

/* From where on the memory can only be the thread's own stack, which stays readable as long as the
 * thread runs. Below that may be another stack, because a program may put stacks next to each
 * other, and may unmap any but the one that is in use. */
static uint64_t find_own_start(void)
{
    uint64_t end = this_thread.stack_limit;
    if (end != (uint64_t)(uintptr_t)pthread_self())
        return this_thread.stack_start; /* the kernel keeps a gap below the main thread's stack */
    return &__libc_stack_end ? end - OWN_BYTES : end;
}

/* Whether the part of a joined stack that is going to be copied is still readable. */
static bool is_still_readable(uint64_t sp, size_t bytes)
{
    uint64_t own_start = find_own_start(), limit = sp + bytes;
    return are_readable(sp, limit < own_start ? limit : own_start);
}

void capture_measure(struct capture *capture)
{
    uint64_t sp = capture->registers[SP_AT];
    uint64_t bytes = AGENT_STACK_BYTES_MAX;
    capture->stack = sp;
    capture->is_joined = is_joined_to_own_stack(sp);
    if (capture->is_joined && this_thread.stack_limit - sp < bytes)
        bytes = this_thread.stack_limit - sp;
    capture->stack_bytes = (uint32_t)bytes;
    capture->is_cut = !capture->is_joined || this_thread.stack_limit - sp > bytes;
}

/* No function of libc: sanitizers would complain of the frames that it steps over. */
__attribute__((no_sanitize("address", "thread"))) static void copy(void *buffer, uint64_t address,
                                                                   size_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(buffer), "+S"(address), "+c"(bytes) : : "memory");
#else
    unsigned char *to = buffer;
    const uint64_t *words = (const uint64_t *)(uintptr_t)address;
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        uint64_t word = words[i];
        __asm__ volatile("" : "+r"(word)); /* or the compiler makes a memcpy of the loop */
        memcpy(to + i * sizeof word, &word, sizeof word);
    }
#endif
}

uint32_t capture_copy(const struct capture *capture, void *buffer, bool *ret_is_cut)
{
    char *stack = (char *)buffer + sizeof capture->registers;
    size_t bytes = capture->stack_bytes;
    memcpy(buffer, capture->registers, sizeof capture->registers);
    *ret_is_cut = capture->is_cut;
    /* Tried this late, because the caller may have waited for a lock since it measured. */
    if (capture->is_joined && is_still_readable(capture->stack, bytes)) {
        copy(stack, capture->stack, bytes);
        return (uint32_t)bytes;
    }
    bytes = copy_by_kernel(stack, capture->stack, bytes);
    if (!bytes) {
        /* Some containers refuse it. The thread's own page is readable. */
        bytes = PAGE_BYTES - capture->stack % PAGE_BYTES;
        bytes = bytes < capture->stack_bytes ? bytes : capture->stack_bytes;
        copy(stack, capture->stack, bytes);
    }
    bytes &= ~(size_t)7;
    *ret_is_cut = capture->is_cut || bytes < capture->stack_bytes;
    return (uint32_t)bytes;
}
