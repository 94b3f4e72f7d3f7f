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
    return syscall(SYS_rt_sigprocmask, no_such_way, address, NULL, sizeof(uint64_t)) == 0 ||
           errno != EFAULT;
}

static bool are_readable(uint64_t start, uint64_t limit)
{
    const uint64_t nowhere = 8;
    if (is_readable(nowhere))
        return false; /* this kernel looks at the arguments in another order */
    for (uint64_t page = start & ~(uint64_t)(PAGE_BYTES - 1); page < limit; page += PAGE_BYTES) {
        if (!is_readable(page))
            return false;
    }
    return true;
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

/* Whether the thread is on the stack that it was started with: then everything between `sp` and the
 * stack's end can be read. If it is on another stack, as coroutines and signal handlers may be,
 * there is an unreadable gap in between, unless a program puts stacks next to each other. The
 * result is kept: a stack's pages stay readable as long as its thread runs. */
static bool is_on_own_stack(uint64_t sp)
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

void capture_measure(struct capture *capture)
{
    uint64_t sp = capture->registers[SP_AT];
    uint64_t bytes = AGENT_STACK_BYTES_MAX;
    capture->stack = sp;
    capture->is_certain = is_on_own_stack(sp);
    if (capture->is_certain && this_thread.stack_limit - sp < bytes)
        bytes = this_thread.stack_limit - sp;
    capture->stack_bytes = (uint32_t)bytes;
    capture->is_cut = !capture->is_certain || this_thread.stack_limit - sp > bytes;
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
    if (capture->is_certain) {
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
    return (uint32_t)(bytes & ~(size_t)7);
}
