#include "base/bell.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void bell_ring(struct bell *bell)
{
    int saved_errno = errno;
    atomic_fetch_add(&bell->rings, 1);
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
    errno = saved_errno;
}

void bell_wait(struct bell *bell, uint32_t heard, uint64_t until_ns)
{
    const struct timespec until = timespec_of_ns(until_ns);
    /* With a bit set, the time is that of the clock, and not from now on. */
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, heard,
            until_ns == UINT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}
