#include "cli/refusal.h"
#include "base/perf_permission.h"

#include <errno.h>
#include <stdio.h>

static char remedy[256];

static const char *remedy_of_perf_permission(int error)
{
    const struct process_rights rights = process_rights_read();
    const char *needed = perf_permission_needed(&rights, error);
    if (error == EACCES && needed)
        snprintf(remedy, sizeof remedy,
                 "; %s would help, or: sudo sysctl kernel.perf_event_paranoid=%d", needed,
                 perf_permission_paranoid(&rights));
    else if (error == EACCES)
        return "; a security module refuses it, although the capability is there";
    else if (needed)
        snprintf(remedy, sizeof remedy,
                 "; a seccomp filter or security module refuses it: a container needs %s, or a "
                 "seccomp profile that permits perf_event_open",
                 needed);
    else
        return "; a seccomp filter or security module refuses it, although the capability is "
               "there: a container needs a seccomp profile that permits perf_event_open";
    return remedy;
}

const char *refusal_remedy(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return remedy_of_perf_permission(error);
    case ENOBUFS:
        return "; a higher limit on locked memory (ulimit -l) would help";
    case EMFILE:
        return "; a higher limit on open files (ulimit -n) would help";
    case ENFILE:
        return "; a higher system-wide limit on open files (fs.file-max) would help";
    default:
        return "";
    }
}

const char *refusal_bpf_remedy(int error)
{
    if (error == EACCES)
        return ""; /* the kernel can't prove that a program is harmless */
    if (error != EPERM)
        return refusal_remedy(error);
    const struct process_rights rights = process_rights_read();
    const char *needed = bpf_permission_needed(&rights);
    if (needed) {
        snprintf(remedy, sizeof remedy, "; %s would help", needed);
        return remedy;
    }
    if (kernel_version_is_before(rights.kernel, 5, 11)) /* see base/memlock.h */
        return refusal_remedy(ENOBUFS);
    return "; a seccomp filter or security module refuses it, although the capabilities are there: "
           "a container needs a seccomp profile that permits bpf";
}

const char *refusal_record_remedy(int error)
{
    return error == ENOTSUP ? "; Linux 5.15 or later (on aarch64 5.18) with BTF would help"
                            : refusal_bpf_remedy(error);
}

const char *refusal_log_advice(const struct cli_options *options, int record_refusal)
{
    bool can_be_verbose = options->command == COMMAND_ATTACH || options->command == COMMAND_RUN;
    bool is_clear = record_refusal == EPERM || record_refusal == ENOTSUP;
    return can_be_verbose && !options->is_verbose && !is_clear
               ? "; --verbose writes the kernel's log to a file"
               : "";
}
