#include "base/bell.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The bell is rung for this many messages, or for one of this age. */
#define UNRUNG_MAX 64
#define UNRUNG_NS 100000000

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
    /* FUTEX_WAIT_BITSET takes an absolute time (futex(2)). */
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, heard,
            until_ns == UINT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

void lazy_bell_ring(struct lazy_bell *lazy)
{
    if (!lazy->unrung)
        return;
    lazy->unrung = 0;
    lazy->is_hurried = false;
    lazy->rung_ns = monotonic_ns();
    bell_ring(lazy->bell);
}

bool lazy_bell_ring_if_due(struct lazy_bell *lazy, uint64_t now_ns)
{
    bool is_due =
        lazy->is_hurried || lazy->unrung >= UNRUNG_MAX || now_ns >= lazy->rung_ns + UNRUNG_NS;
    if (!lazy->unrung || !is_due)
        return false;
    lazy_bell_ring(lazy);
    return true;
}
