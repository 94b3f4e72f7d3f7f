#include "cli/privileges.h"
#include "base/memlock.h"
#include "base/procfs_file.h"
#include "cli/record/trigger.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) ((uint64_t)1 << (capability))
#define NEW_TASK_EVENT "events/task/task_newtask/id"

/* Needed for stacks and memory of other users' processes, and for files deleted under them; for
 * samples by the kernel, and the locked memory for them; for the kernel's own symbols; and to run
 * immediately at a tick. */
#define SAMPLING                                                                                   \
    (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE) |                \
     BIT(CAP_PERFMON) | BIT(CAP_BPF) | BIT(CAP_IPC_LOCK) | BIT(CAP_SYSLOG) | BIT(CAP_SYS_NICE))
/* Writing in other users' directories, and replacing their files in shared ones. */
#define WRITING (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER))

/* What Linux before 5.9 has no capability for, and what it asks for where others would do. */
static bool needs_admin(const struct cli_options *options)
{
    if (options->has_kernel_stacks || options->kind == FGPROF_KIND_GROWTH)
        return true; /* /proc/PID/stack, and the frames of /proc/PID/pagemap */
    if (procfs_number("/proc/sys/kernel/cap_last_cap", 0) < CAP_CHECKPOINT_RESTORE)
        return true;
    if (procfs_number("/proc/sys/kernel/perf_event_paranoid", 0) > 2)
        return true; /* Debian's kernels, and others with that patch */
    /* Where tracefs is not mounted, only CAP_SYS_ADMIN opens it. */
    return access("/sys/kernel/tracing/" NEW_TASK_EVENT, R_OK) &&
           access("/sys/kernel/debug/tracing/" NEW_TASK_EVENT, R_OK);
}

static bool has_commands(const struct cli_options *options)
{
    return triggers_have(options->triggers, options->trigger_count, 1u << CONDITION_COMMAND);
}

static int get(struct __user_cap_data_struct *sets)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, sets) ? -errno : 0;
}

/* Adds no capability that this process lacks. Of the permitted ones, `effective` are in effect. */
static int keep(uint64_t permitted, uint64_t effective)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    int err = get(sets);
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3 && !err; i++) {
        sets[i].permitted &= (uint32_t)(permitted >> 32 * i);
        sets[i].effective = sets[i].permitted & (uint32_t)(effective >> 32 * i);
    }
    return err || !syscall(SYS_capset, &header, sets) ? err : -errno;
}

/* Whether files can be created in `path`, or in the part of it that exists, without privileges to
 * write. */
static bool is_writable(const char *path)
{
    char *part = strdup(path);
    int failed = -1;
    while (part && *part && (failed = faccessat(AT_FDCWD, part, W_OK, AT_EACCESS)) &&
           errno == ENOENT) {
        char *slash = strrchr(part, '/');
        if (!slash) {
            failed = faccessat(AT_FDCWD, ".", W_OK, AT_EACCESS);
            break;
        }
        slash[slash == part] = '\0';
    }
    free(part);
    return !failed;
}

/* Where a Unix socket is made, and removed at the end. */
static bool is_writable_around(const char *path)
{
    const char *name = basename(path);
    char *directory = name == path ? strdup(".") : strndup(path, (size_t)(name - path));
    bool can = directory && is_writable(directory);
    free(directory);
    return can;
}

/* Whether the directory in the first of these variables that is set is writable; true if none is
 * set. */
static bool is_place_writable(const char *const *variables)
{
    const char *place = NULL;
    for (; *variables && !place; variables++)
        place = getenv(*variables);
    return !place || is_writable(place);
}

static bool all_writable(const struct cli_options *options)
{
    /* push/spool.c, and debuginfod_find_debuginfo(3) */
    static const char *const spool[] = {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME", NULL};
    static const char *const cache[] = {"DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME", "HOME", NULL};
    bool can = strcmp(options->output, "-") == 0 || is_writable(options->output);
    if (options->listen && strncmp(options->listen, "unix:", 5) == 0)
        can = can && is_writable_around(options->listen + 5);
    if (options->push.spool)
        can = can && is_writable(options->push.spool);
    else if (options->push.target_count)
        can = can && is_place_writable(spool);
    return can && (!options->debuginfod_limit_ns || is_place_writable(cache));
}

static bool complain(int err)
{
    return !err || say("can't give up privileges: %s", strerror(-err));
}

static uint64_t needed(const struct cli_options *options)
{
    uint64_t capabilities = SAMPLING;
    if (needs_admin(options))
        capabilities |= BIT(CAP_SYS_ADMIN);
    if (has_commands(options))
        capabilities |= BIT(CAP_KILL); /* of a command that takes too long and is another user's */
    return capabilities;
}

bool privileges_limit(const struct cli_options *options)
{
    memlock_raise(); /* CAP_SYS_RESOURCE is given up, too */
    uint64_t capabilities = needed(options) | WRITING;
    if (options->command == COMMAND_SERVE)
        capabilities |= BIT(CAP_NET_BIND_SERVICE);
    if (options->push.target_count) /* what pushes becomes another user: base/sandbox.c */
        capabilities |= BIT(CAP_SETUID) | BIT(CAP_SETGID);
    /* Commands of triggers are root's as they would be in a shell: they may use sudo. */
    if (!has_commands(options) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return complain(-errno);
    return complain(keep(capabilities, capabilities));
}

bool privileges_limit_to_sampling(const struct cli_options *options)
{
    uint64_t capabilities = needed(options), with_writing = capabilities | WRITING;
    int err = keep(with_writing, capabilities);
    if (!err && !all_writable(options))
        capabilities = with_writing;
    return complain(err ? err : keep(capabilities, capabilities));
}
