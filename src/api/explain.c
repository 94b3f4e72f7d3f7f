/* Says why a process can't be sampled, and what to do about it. */
#include "fgprof.h"
#include "base/perf_permission.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Writes the name of process `pid`, with control characters replaced, or "?". */
static void name_of(pid_t pid, char name[THREAD_NAME_BYTES])
{
    if (!procfs_process_name(pid, name))
        snprintf(name, THREAD_NAME_BYTES, "?");
    for (char *c = name; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
}

static long status_number(pid_t pid, const char *key)
{
    char path[32], status[4096];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (procfs_read(AT_FDCWD, path, status, sizeof status) <= 0)
        return -1;
    return procfs_status_number(status, key);
}

/* What helps where Yama refuses: see the kernel's Documentation/admin-guide/LSM/Yama.rst. */
static const char *yama_remedy(long scope)
{
    switch (scope) {
    case 1:
        return "; run as root, with CAP_SYS_PTRACE, or start the program with `fgprof-c run`";
    case 2:
        return "; run as root or with CAP_SYS_PTRACE";
    default:
        return ", which forbids it until the next boot";
    }
}

static void explain_permission(pid_t pid, char *buffer, size_t buffer_bytes)
{
    long uid = status_number(pid, "Uid:");
    long scope = procfs_number("/proc/sys/kernel/yama/ptrace_scope", -1);
    if (uid >= 0 && (uid_t)uid != geteuid() && geteuid() != 0) {
        snprintf(buffer, buffer_bytes,
                 "process %d belongs to another user (uid %ld): run as that user, as root, or with "
                 "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
                 pid, uid);
    } else if (scope > 0) {
        snprintf(buffer, buffer_bytes,
                 "not permitted to trace process %d: kernel.yama.ptrace_scope is %ld%s", pid, scope,
                 yama_remedy(scope));
    } else {
        snprintf(
            buffer, buffer_bytes,
            "not permitted to trace process %d: it may have more privileges than the profiler; run "
            "as root with CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)",
            pid);
    }
}

/* /proc is missing, or another PID namespace's. */
static void explain_proc(char *buffer, size_t buffer_bytes)
{
    struct statfs status;
    bool is_mounted = statfs("/proc", &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
    snprintf(buffer, buffer_bytes, "%s",
             is_mounted ? "/proc belongs to another PID namespace, so its process ids mean other "
                          "processes here: mount a new one (unshare --mount-proc)"
                        : "/proc is not mounted: mount it (mount -t proc proc /proc)");
}

void fgprof_explain(pid_t pid, int error, char *buffer, size_t buffer_bytes)
{
    char name[THREAD_NAME_BYTES];
    long other;
    switch (error) {
    case -ESRCH:
        name_of(pid, name);
        if (status_number(pid, "Tgid:") == pid)
            snprintf(
                buffer, buffer_bytes,
                "process %d (%s) is a zombie: it has exited, but its parent has not waited for it",
                pid, name);
        else
            snprintf(buffer, buffer_bytes, "there is no process %d", pid);
        break;
    case -EDEADLK:
        snprintf(buffer, buffer_bytes, "process %d is the profiler itself", pid);
        break;
    case -ENOEXEC:
        name_of(pid, name);
        snprintf(buffer, buffer_bytes,
                 "process %d (%s) is a kernel thread, which has no program to sample", pid, name);
        break;
    case -EINVAL:
        snprintf(buffer, buffer_bytes, "%d is a thread of process %ld: give the id of the process",
                 pid, status_number(pid, "Tgid:"));
        break;
    case -EBUSY:
        other = status_number(pid, "TracerPid:");
        name_of((pid_t)other, name);
        snprintf(buffer, buffer_bytes,
                 "process %d is already traced by process %ld (%s): end that tracer first", pid,
                 other, name);
        break;
    case -ENOTSUP:
        snprintf(buffer, buffer_bytes, "process %d is a 32-bit program, which is not supported",
                 pid);
        break;
    case -EEXIST:
        snprintf(buffer, buffer_bytes, "process %d was given twice: give it once", pid);
        break;
    case -EXDEV:
        explain_proc(buffer, buffer_bytes);
        break;
    case -EPERM:
    case -EACCES:
        explain_permission(pid, buffer, buffer_bytes);
        break;
    default:
        snprintf(buffer, buffer_bytes, "process %d: %s", pid, strerror(-error));
    }
}

/* The first "%s" is the process, a second one our version. */
struct reason {
    int error; /* 0: the list ends */
    const char *text;
};

/* For allocations, which the agent reports. */
static const struct reason about_agent[] = {
    {-ENOENT, "%s has not loaded the agent (needed for heap profiles): start the program with "
              "`fgprof-c run --kind "
              "heap -- CMD`, or use --kind growth, which needs none"},
    {-ENOEXEC,
     "%s is linked statically, so it can't load the agent (needed for heap profiles): use "
     "--kind growth, which needs none"},
    {-EPERM, "%s has more rights than its user, so the dynamic linker ignores LD_PRELOAD, and the "
             "agent can't be loaded: run it as the user whose rights it has, or use "
             "--kind growth"},
    {-EACCES, "not permitted to open the agent's memory in %s: run as its user or as root"},
    {-EBUSY, "another profiler records the allocations of %s: end it first"},
    {-EPROTONOSUPPORT, "the agent in %s is not of this version of fgprof-c (%s): use the "
                       "libfgprof-agent.so that came with it"},
    {-EBADMSG, "the agent's memory in %s is damaged, so its data can't be used"},
    {-EBADF, "%s has closed the agent's file: run as root"},
    {-ELIBACC,
     "libfgprof-agent.so (needed for heap profiles) is neither beside fgprof-c nor in its "
     "library directory: install it"},
    {-ELIBBAD, "libfgprof-agent.so can't be preloaded, as its path has a space or a colon: install "
               "it elsewhere"},
    {0, NULL},
};

/* For custom profiles. */
static const struct reason about_custom[] = {
    {-ENOENT, "%s keeps no profiles itself (fgprof_profiles.h)"},
    {-EPROTONOSUPPORT, "the agent in %s is not of this version of fgprof-c (%s): use the "
                       "libfgprof-agent.so that came with it"},
    {-EBADMSG, "the memory of the agent in %s is damaged, so its profiles can't be read"},
    {0, NULL},
};

/* For page faults, which perf_event_open(2) reports. */
static const struct reason about_growth[] = {
    {-ENOSYS,
     "this kernel has no perf events, which are needed to see where the memory of %s grows"},
    {-ENOENT, "this kernel has no perf event for page faults, which is needed to see where the "
              "memory of %s grows"},
    {-EMFILE, "too many files are open to see where the memory of %s grows: allow more (ulimit "
              "-n)"},
    {-ENFILE, "too many files are open in the whole system to see where the memory of %s grows: "
              "allow more (fs.file-max)"},
    {0, NULL},
};

/* Explains it as the kernel's Documentation/admin-guide/sysctl/kernel.rst describes
 * perf_event_paranoid; with 3 or more, which Debian's kernel supports, nothing is permitted. */
static void explain_refused_faults(const char *process, int error, char *buffer,
                                   size_t buffer_bytes)
{
    const struct process_rights rights = process_rights_read();
    const char *needed = perf_permission_needed(&rights, -error);
    if (!needed)
        snprintf(buffer, buffer_bytes,
                 "not permitted to see the page faults of %s, which show where its memory grows: a "
                 "seccomp filter or security module refuses perf_event_open, although the "
                 "capability is there",
                 process);
    else if (rights.paranoid > 2 && error == -EACCES)
        snprintf(buffer, buffer_bytes,
                 "not permitted to see the page faults of %s, which show where its memory grows: "
                 "run with %s, or with kernel.perf_event_paranoid of at most 2 (it is %ld)",
                 process, needed, rights.paranoid);
    else
        snprintf(buffer, buffer_bytes,
                 "not permitted to see the page faults of %s, which show where its memory grows: "
                 "run as its user or with %s, which a container must have been given",
                 process, needed);
}

static const struct reason *reasons_of(enum fgprof_kind kind)
{
    static const struct reason none = {0, NULL};
    switch (kind) {
    case FGPROF_KIND_HEAP:
    case FGPROF_KIND_ALLOCS:
        return about_agent;
    case FGPROF_KIND_CUSTOM:
        return about_custom;
    case FGPROF_KIND_GROWTH:
        return about_growth;
    default:
        return &none;
    }
}

void fgprof_explain_objects(pid_t pid, enum fgprof_kind kind, int error, char *buffer,
                            size_t buffer_bytes)
{
    char process[THREAD_NAME_BYTES + 32] = "the program";
    bool is_of_heap = kind == FGPROF_KIND_HEAP || kind == FGPROF_KIND_ALLOCS;
    if (is_of_heap && !pid && error == -ENOENT) {
        snprintf(
            buffer, buffer_bytes,
            "the program has not loaded the agent (needed for heap profiles): it may be linked "
            "statically, or be a script that starts another program, for which give "
            "--children");
        return;
    }
    if (pid) {
        char name[THREAD_NAME_BYTES];
        name_of(pid, name);
        snprintf(process, sizeof process, "process %d (%s)", pid, name);
    }
    if (kind == FGPROF_KIND_GROWTH && (error == -EACCES || error == -EPERM)) {
        explain_refused_faults(process, error, buffer, buffer_bytes);
        return;
    }
    const struct reason *reason = reasons_of(kind);
    while (reason->error && reason->error != error)
        reason++;
    if (reason->error)
        snprintf(buffer, buffer_bytes, reason->text, process, fgprof_version());
    else
        snprintf(buffer, buffer_bytes, "%s: %s", process, strerror(-error));
}
