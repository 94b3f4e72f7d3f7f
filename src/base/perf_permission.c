#include "base/perf_permission.h"
#include "base/procfs_file.h"

#include <stdio.h>
#include <sys/utsname.h>

/* CAP_PERFMON came with Linux 5.8. Debian and Ubuntu know a value of 3 or more, with which only
 * CAP_SYS_ADMIN helps; elsewhere that is the same as 2. */
const char *perf_permission_needed_on(unsigned major, unsigned minor, long paranoid)
{
    if (major < 5 || (major == 5 && minor < 8))
        return "CAP_SYS_ADMIN";
    return paranoid > 2 ? "CAP_PERFMON (on Debian's and Ubuntu's kernels CAP_SYS_ADMIN)"
                        : "CAP_PERFMON";
}

const char *perf_permission_needed(void)
{
    struct utsname name;
    unsigned major, minor;
    if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        major = 5, minor = 8;
    return perf_permission_needed_on(major, minor,
                                     procfs_number("/proc/sys/kernel/perf_event_paranoid", 0));
}
