#include "base/sandbox.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

static int limit_resources(uint64_t memory_bytes_max, uint64_t cpu_seconds_max)
{
    const struct {
        int resource;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CORE, 0},
        {RLIMIT_FSIZE, 0},
        {RLIMIT_NPROC, 0},
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

#define FILTER_MAX (16 + 2 * COUNT_OF(allowed) + 4 * COUNT_OF(allowed_without_code))
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

/* See seccomp(2). The numbers of calls mean something else in another architecture. */
static int limit_calls(void)
{
    struct filter filter = {.count = 0};
    load(&filter, offsetof(struct seccomp_data, arch));
    add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sandbox_audit_arch, 1, 0));
    leave(&filter, SECCOMP_RET_KILL_PROCESS);
    load(&filter, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT_OF(allowed); i++) {
        if_equal(&filter, allowed[i], 1);
        leave(&filter, SECCOMP_RET_ALLOW);
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
    leave(&filter, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {filter.count, filter.items};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

int sandbox_enter(uint64_t memory_bytes_max, uint64_t cpu_seconds_max)
{
    int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
    if (!err)
        err = drop_capabilities();
    if (!err)
        err = limit_resources(memory_bytes_max, cpu_seconds_max);
    return err || !HAS_LIMITS ? err : limit_calls();
}
