#include "base/kernel_version.h"

#include <limits.h>
#include <stdio.h>
#include <sys/utsname.h>

struct kernel_version kernel_version_read(void)
{
    struct utsname name;
    struct kernel_version version;
    if (uname(&name) || sscanf(name.release, "%u.%u", &version.major, &version.minor) != 2)
        return (struct kernel_version){UINT_MAX, 0};
    return version;
}
