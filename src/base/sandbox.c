#include "base/sandbox.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* It needs terabytes of address space, and more calls. */
#define HAS_LIMITS 0
#else
#define HAS_LIMITS 1
#endif

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capset, &header, none) ? -errno : 0;
}

/* A limit that is lower stays. The hard limits need no change: whoever calls setrlimit(2) in the
 * sandbox is killed. */
static int lower_limit(int resource, rlim_t most)
{
    struct rlimit limit;
    if (getrlimit((enum __rlimit_resource)resource, &limit))
        return -errno;
    if (limit.rlim_cur > most)
        limit.rlim_cur = most;
    return setrlimit((enum __rlimit_resource)resource, &limit) ? -errno : 0;
}

/* The kernel counts threads as processes. */
static int limit_resources(enum sandbox_use use, uint64_t memory_bytes_max,
                           uint64_t cpu_seconds_max)
{
    const struct {
        int resource;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, 0},
        {RLIMIT_NPROC, use == SANDBOX_SERVES ? RLIM_INFINITY : 0},
        {RLIMIT_CPU, cpu_seconds_max},
        {RLIMIT_AS, HAS_LIMITS ? memory_bytes_max : RLIM_INFINITY},
    };
    int err = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits && !err; i++)
        err = lower_limit(limits[i].resource, limits[i].most);
    return err;
}

/* What libelf, zlib and malloc call, and what sends and receives. */
static const unsigned allowed[] = {
    SYS_pread64,        SYS_read,    SYS_lseek,         SYS_fstat,           SYS_fcntl,
    SYS_close,          SYS_recvmsg, SYS_sendmsg,       SYS_sendto,          SYS_munmap,
    SYS_mremap,         SYS_madvise, SYS_brk,           SYS_futex,           SYS_getrandom,
    SYS_sysinfo,        SYS_exit,    SYS_exit_group,    SYS_restart_syscall, SYS_rt_sigreturn,
    SYS_rt_sigprocmask, SYS_write,   SYS_clock_gettime,
};
/* With these, memory could become code. Their third argument is what may be done with it. */
static const unsigned allowed_without_code[] = {SYS_mmap, SYS_mprotect};

/* What libmicrohttpd and threads call, too. */
static const unsigned allowed_to_serve[] = {
#ifdef SYS_poll /* newer architectures lack some */
    SYS_poll,
#endif
#ifdef SYS_accept
    SYS_accept,
#endif
    SYS_ppoll,       SYS_accept4,         SYS_recvfrom,   SYS_sendfile,        SYS_socketpair,
    SYS_shutdown,    SYS_getsockopt,      SYS_setsockopt, SYS_getsockname,     SYS_getpeername,
    SYS_eventfd2,    SYS_pipe2,           SYS_writev,     SYS_gettid,          SYS_getpid,
    SYS_sched_yield, SYS_clock_nanosleep, SYS_nanosleep,  SYS_set_robust_list, SYS_rseq,
};

#define FILTER_MAX                                                                                 \
    (32 + 2 * COUNT_OF(allowed) + 4 * COUNT_OF(allowed_without_code) +                             \
     2 * COUNT_OF(allowed_to_serve))
#define ARGUMENT(number) (unsigned)(offsetof(struct seccomp_data, args) + 8 * (number))

struct filter {
    struct sock_filter items[FILTER_MAX];
    unsigned short count;
};

static void add(struct filter *filter, struct sock_filter item)
{
    filter->items[filter->count++] = item;
}

static void load(struct filter *filter, unsigned offset)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void leave(struct filter *filter, unsigned verdict)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

/* The next `count` instructions are for this value only. */
static void if_equal(struct filter *filter, unsigned value, unsigned char count)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
}

/* The next instruction is for values with one of these bits only. */
static void if_any(struct filter *filter, unsigned bits)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
}

static void allow(struct filter *filter, const unsigned *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if_equal(filter, calls[i], 1);
        leave(filter, SECCOMP_RET_ALLOW);
    }
}

/* Threads are made and get names, but no processes. clone3(2) has its flags in memory, which can't
 * be looked at: glibc does without it. */
static void allow_threads(struct filter *filter)
{
    if_equal(filter, SYS_clone, 3);
    load(filter, ARGUMENT(0));
    if_any(filter, CLONE_THREAD);
    leave(filter, SECCOMP_RET_ALLOW);
    load(filter, offsetof(struct seccomp_data, nr));
    if_equal(filter, SYS_prctl, 3);
    load(filter, ARGUMENT(0));
    if_equal(filter, PR_SET_NAME, 1);
    leave(filter, SECCOMP_RET_ALLOW);
    load(filter, offsetof(struct seccomp_data, nr));
}

/* See seccomp(2). The numbers of calls mean something else in another architecture. */
static int limit_calls(enum sandbox_use use)
{
    struct filter filter = {.count = 0};
    unsigned otherwise =
        use == SANDBOX_SERVES ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_KILL_PROCESS;
    load(&filter, offsetof(struct seccomp_data, arch));
    add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sandbox_audit_arch, 1, 0));
    leave(&filter, SECCOMP_RET_KILL_PROCESS);
    load(&filter, offsetof(struct seccomp_data, nr));
    allow(&filter, allowed, COUNT_OF(allowed));
    if (use == SANDBOX_SERVES) {
        allow(&filter, allowed_to_serve, COUNT_OF(allowed_to_serve));
        allow_threads(&filter);
    }
    /* fstat(3) is this call with an empty path. With another path it says only that a file is
     * there. */
    if_equal(&filter, SYS_newfstatat, 3);
    load(&filter, ARGUMENT(3));
    if_equal(&filter, AT_EMPTY_PATH, 1);
    leave(&filter, SECCOMP_RET_ALLOW);
    load(&filter, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT_OF(allowed_without_code); i++) {
        if_equal(&filter, allowed_without_code[i], 4);
        load(&filter, ARGUMENT(2));
        if_any(&filter, PROT_EXEC);
        leave(&filter, SECCOMP_RET_KILL_PROCESS);
        leave(&filter, SECCOMP_RET_ALLOW);
    }
    leave(&filter, otherwise);
    const struct sock_fprog program = {filter.count, filter.items};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

int sandbox_enter(enum sandbox_use use, uint64_t memory_bytes_max, uint64_t cpu_seconds_max)
{
    int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
    if (!err)
        err = drop_capabilities();
    if (!err)
        err = limit_resources(use, memory_bytes_max, cpu_seconds_max);
    return err || !HAS_LIMITS ? err : limit_calls(use);
}
