#include "base/sandbox.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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

/* DEFAULT_OVERFLOWUID of include/linux/highuid.h: the user "nobody" owns nothing. */
#define NOBODY 65534

void sandbox_leave_root(enum sandbox_use use)
{
    if (use != SANDBOX_CONNECTS || geteuid())
        return;
    /* If that is not permitted, or this namespace has no such user, the process stays root, but
     * without capabilities. */
    if (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0)
        (void)!setresuid(NOBODY, NOBODY, NOBODY);
}

/* A limit that is already lower stays. The hard limits need no change, because the sandbox does not
 * permit setrlimit(2). */
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
        {RLIMIT_NPROC, use == SANDBOX_READS ? 0 : RLIM_INFINITY},
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

/* What libcurl, TLS and the resolver of names call, too. */
static const unsigned allowed_to_connect[] = {
#ifdef SYS_open /* newer architectures lack some */
    SYS_access,       SYS_readlink,     SYS_stat,          SYS_lstat,
    SYS_getdents,     SYS_epoll_create, SYS_epoll_wait,    SYS_select,
    SYS_time,         SYS_alarm,
#endif
    SYS_socket,       SYS_connect,      SYS_bind,          SYS_sendmmsg,
    SYS_recvmmsg,     SYS_newfstatat,   SYS_statx,         SYS_faccessat,
    SYS_readlinkat,   SYS_getdents64,   SYS_ioctl,         SYS_uname,
    SYS_getuid,       SYS_geteuid,      SYS_getgid,        SYS_getegid,
    SYS_epoll_ctl,    SYS_epoll_pwait,  SYS_epoll_create1, SYS_pselect6,
    SYS_rt_sigaction, SYS_sigaltstack,  SYS_gettimeofday,  SYS_sched_getaffinity,
    SYS_readv,        SYS_fadvise64,    SYS_getcwd,        SYS_getppid,
};

#define FILTER_MAX 512 /* more than twice as much as is used */
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

/* Permits creating and naming threads, but not processes. The flags of clone3(2) are in memory,
 * which a filter can't read; glibc falls back to clone(2). */
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

/* Opening a file is allowed unless it is to be written; `flags` is the number of that argument. */
static void allow_reading(struct filter *filter, unsigned call, unsigned flags)
{
    if_equal(filter, call, 4);
    load(filter, ARGUMENT(flags));
    if_any(filter, O_ACCMODE | O_CREAT | O_TRUNC);
    leave(filter, SECCOMP_RET_ERRNO | EACCES);
    leave(filter, SECCOMP_RET_ALLOW);
}

/* Libraries are loaded late, such as those of nsswitch.conf(5). */
static void allow_connections(struct filter *filter)
{
    allow(filter, allowed_to_connect, COUNT_OF(allowed_to_connect));
    allow(filter, allowed_without_code, COUNT_OF(allowed_without_code));
#ifdef SYS_open
    allow_reading(filter, SYS_open, 1);
#endif
    allow_reading(filter, SYS_openat, 2);
}

/* See seccomp(2). The numbers of calls mean something else in another architecture. */
static int limit_calls(enum sandbox_use use)
{
    struct filter filter = {.count = 0};
    unsigned otherwise =
        use == SANDBOX_READS ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS;
    load(&filter, offsetof(struct seccomp_data, arch));
    add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sandbox_audit_arch, 1, 0));
    leave(&filter, SECCOMP_RET_KILL_PROCESS);
    load(&filter, offsetof(struct seccomp_data, nr));
    allow(&filter, allowed, COUNT_OF(allowed));
    if (use != SANDBOX_READS) {
        allow(&filter, allowed_to_serve, COUNT_OF(allowed_to_serve));
        allow_threads(&filter);
    }
    if (use == SANDBOX_CONNECTS)
        allow_connections(&filter);
    /* fstat(3) is this call with an empty path. With any other path it only reveals whether a file
     * exists. */
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
