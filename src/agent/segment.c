#include "agent/segment.h"
#include "agent/objects.h"
#include "agent/pages.h"
#include "agent/process.h"
#include "base/file_limit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* since Linux 6.3, which warns without it */
#endif

#define SEGMENT_BYTES ((size_t)AGENT_HEADER_BYTES + AGENT_RING_BYTES)
/* Programs may rely on the lowest free numbers, so the descriptor is not one of these. It is low
 * enough that the kernel's table of descriptors needs no more than 1024 rows. */
#define LOWEST_FD 960
#define FIRST_READER_MS_MAX 500
#define READER_MS_MAX 100

static struct process idle;
struct process *process = &idle;

/* The mapped segment; a child of fork keeps it until it makes its own. */
static struct {
    struct agent_header *header;
    int fd;
    dev_t device;
    ino_t inode;
} mapped;

static bool has_children; /* see struct segment_start */

static int make_memfd(void)
{
    if (file_limit_bytes() < SEGMENT_BYTES)
        return -1;
    int low = (int)syscall(SYS_memfd_create, AGENT_MEMFD,
                           MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (low < 0)
        low = (int)syscall(SYS_memfd_create, AGENT_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (low < 0)
        return -1;
    int fd = fcntl(low, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (fd < 0)
        fd = low; /* the program may not open that many */
    else
        close(low);
    /* Neither side need fear that the other cuts it short. */
    if (!ftruncate(fd, (off_t)SEGMENT_BYTES) &&
        !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return fd;
    close(fd);
    return -1;
}

/* Maps a new memfd, at `place` unless that is NULL. */
static bool map_memfd(void *place)
{
    struct stat status;
    int fd = make_memfd();
    if (fd < 0)
        return false;
    long address = syscall(SYS_mmap, place, SEGMENT_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | (place ? MAP_FIXED : 0), fd, 0);
    if (address == -1 || fstat(fd, &status)) {
        close(fd);
        return false;
    }
    mapped.header = (struct agent_header *)address;
    mapped.fd = fd;
    mapped.device = status.st_dev;
    mapped.inode = status.st_ino;
    return true;
}

static void fill_header(const struct agent_header *as, uint32_t wanted)
{
    struct agent_header *header = mapped.header;
    header->version = AGENT_VERSION;
    header->header_bytes = AGENT_HEADER_BYTES;
    header->ring_bytes = AGENT_RING_BYTES;
    header->pid = (uint32_t)getpid();
    memcpy(header->release, as->release, sizeof header->release);
    memcpy(header->allocator, as->allocator, sizeof header->allocator);
    header->code_start = as->code_start;
    header->code_limit = as->code_limit;
    atomic_store(&header->rate, as->rate);
    atomic_store(&header->wanted, wanted);
    /* Last: by this the reader knows that the rest is there. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, AGENT_MAGIC, sizeof header->magic);
}

bool segment_open(const struct segment_start *start)
{
    struct agent_header as = {.release = FGPROF_VERSION,
                              .code_start = start->code_start,
                              .code_limit = start->code_limit,
                              .rate = start->rate};
    has_children = start->has_children;
    struct process *made = pages_new(4096);
    if (!made || !objects_init() || !map_memfd(NULL))
        return false;
    process = made;
    fill_header(&as, start->wanted);
    atomic_store_explicit(&process->header, mapped.header, memory_order_release);
    return true;
}

void segment_describe(const char *allocator)
{
    struct agent_header *header = atomic_load(&process->header);
    if (header)
        strncpy(header->allocator, allocator, sizeof header->allocator - 1);
}

void segment_await_reader(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct agent_header *header = atomic_load(&process->header);
    if (!header || !atomic_load(&header->wanted))
        return;
    /* One that has not come yet does so some milliseconds after the start. */
    unsigned ms_max = atomic_load(&header->epoch) ? READER_MS_MAX : FIRST_READER_MS_MAX;
    atomic_store(&header->is_ending, 1);
    for (unsigned ms = 0; ms < ms_max && !atomic_load(&header->may_end); ms++)
        nanosleep(&pause, NULL);
}

void segment_renew(void)
{
    struct agent_header as;
    struct stat status;
    if (!mapped.header)
        return;
    memcpy(&as, mapped.header, sizeof as);
    if (!fstat(mapped.fd, &status) && status.st_dev == mapped.device &&
        status.st_ino == mapped.inode)
        close(mapped.fd);
    if (map_memfd(mapped.header)) {
        fill_header(&as, has_children ? atomic_load(&as.wanted) : 0);
        atomic_store_explicit(&process->header, mapped.header, memory_order_release);
        return;
    }
    /* A sample that fork interrupted must not go to the parent's ring. */
    syscall(SYS_mmap, mapped.header, SEGMENT_BYTES, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mapped.header = NULL;
}
