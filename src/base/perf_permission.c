#include "base/perf_permission.h"
#include "base/procfs_file.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The inode of the initial user namespace (PROC_USER_INIT_INO, include/linux/proc_ns.h). */
#define INITIAL_USER_NAMESPACE 0xEFFFFFFDu

enum needed {
    NEEDS_ADMIN,
    NEEDS_PERFMON,
    NEEDS_PERFMON_OR_ADMIN,
    NEEDS_MORE_THAN_PERFMON,
    NEEDS_BPF,
    NEEDS_BPF_AND_PERFMON,
    NEEDS_NOTHING,
};

static const char *text_of(const struct process_rights *rights, enum needed needed)
{
#define IN_EITHER_NAMESPACE(text)                                                                  \
    {                                                                                              \
        text, text " in the initial user namespace"                                                \
    }
    static const char *const texts[NEEDS_NOTHING][2] = {
        [NEEDS_ADMIN] = IN_EITHER_NAMESPACE("CAP_SYS_ADMIN"),
        [NEEDS_PERFMON] = IN_EITHER_NAMESPACE("CAP_PERFMON"),
        [NEEDS_PERFMON_OR_ADMIN] =
            IN_EITHER_NAMESPACE("CAP_PERFMON (if that is not enough, CAP_SYS_ADMIN)"),
        [NEEDS_MORE_THAN_PERFMON] =
            IN_EITHER_NAMESPACE("CAP_SYS_ADMIN (CAP_PERFMON is not enough on this kernel)"),
        [NEEDS_BPF] = IN_EITHER_NAMESPACE("CAP_BPF"),
        [NEEDS_BPF_AND_PERFMON] = IN_EITHER_NAMESPACE("CAP_BPF and CAP_PERFMON"),
    };
    return needed == NEEDS_NOTHING ? NULL : texts[needed][rights->is_in_namespace];
}

static bool has(const struct process_rights *rights, unsigned capability)
{
    return !rights->is_in_namespace && rights->capabilities >> capability & 1;
}

/* CAP_PERFMON and CAP_BPF came with Linux 5.8. */
static bool has_only_admin(const struct process_rights *rights)
{
    return kernel_version_is_before(rights->kernel, 5, 8);
}

/* Debian and Ubuntu patch many of their kernels: a perf_event_paranoid of 3 or more requires
 * CAP_SYS_ADMIN. Elsewhere 3 is the same as 2. */
const char *perf_permission_needed(const struct process_rights *rights, int error)
{
    bool is_closed = error == EACCES && rights->paranoid > 2;
    enum needed needed;
    if (has(rights, CAP_SYS_ADMIN))
        needed = NEEDS_NOTHING;
    else if (has_only_admin(rights))
        needed = NEEDS_ADMIN;
    else if (has(rights, CAP_PERFMON))
        needed = is_closed ? NEEDS_MORE_THAN_PERFMON : NEEDS_NOTHING;
    else
        needed = is_closed ? NEEDS_PERFMON_OR_ADMIN : NEEDS_PERFMON;
    return text_of(rights, needed);
}

int perf_permission_paranoid(const struct process_rights *rights)
{
    return has(rights, CAP_PERFMON) && !has_only_admin(rights) ? 2 : 1;
}

const char *bpf_permission_needed(const struct process_rights *rights)
{
    bool lacks_bpf = !has(rights, CAP_BPF), lacks_perfmon = !has(rights, CAP_PERFMON);
    enum needed needed;
    if (has(rights, CAP_SYS_ADMIN))
        needed = NEEDS_NOTHING;
    else if (has_only_admin(rights))
        needed = NEEDS_ADMIN;
    else if (lacks_bpf)
        needed = lacks_perfmon ? NEEDS_BPF_AND_PERFMON : NEEDS_BPF;
    else
        needed = lacks_perfmon ? NEEDS_PERFMON : NEEDS_NOTHING;
    return text_of(rights, needed);
}

struct process_rights process_rights_read(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    struct stat namespace;
    syscall(SYS_capget, &header, sets); /* else it has none */
    return (struct process_rights){
        .kernel = kernel_version_read(),
        .paranoid = procfs_number("/proc/sys/kernel/perf_event_paranoid", 0),
        .capabilities = sets[0].effective | (uint64_t)sets[1].effective << 32,
        .is_in_namespace = stat("/proc/self/ns/user", &namespace) == 0 &&
                           namespace.st_ino != INITIAL_USER_NAMESPACE,
    };
}
