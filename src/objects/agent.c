#include "objects/agent.h"
#include "agent/format.h"
#include "base/clock.h"
#include "base/throttle.h"
#include "objects/agent_stack.h"
#include "proc/maps.h"
#include "proc/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define RING_BYTES_MAX (16u << 20)
/* If a record is incomplete for this long, its thread is gone or was stopped. */
#define PATIENCE_NS 1000000000u
/* A ring that would be full within this time is read again before the next tick. */
#define FILLING_NS 40e6
#define AGENT_NAME_BYTES sizeof(((struct agent_header *)NULL)->allocator)
#define PEAK_EACH_NS 100000000u
#define PEAK_PART_OF_TIME 1000
#define ALIGNMENT 16u /* of records */
/* The most records, or places where a record might begin, that a turn checks: some 0.2 ms. A ring
 * has a million such places, and its program can refill it at any time. */
#define STEPS_MAX 16384u
#define PATH "/memfd:" AGENT_MEMFD
#define LINK PATH " (deleted)"
/* No object is larger, because an address space is smaller. */
#define OBJECT_BYTES_MAX (UINT64_C(1) << 56)

struct agent {
    struct object_source source;
    struct object_options options;
    const struct program *program; /* outlives the source */
    int fd;                        /* locked: one profiler at a time reads the ring */
    struct agent_header *header;
    size_t bytes; /* of the mapping */
    /* Their values when the memory was opened and checked: */
    uint64_t ring_bytes;
    uint64_t code_start, code_limit;
    uint64_t made_lost, gone_lost, threads_lost;
    uint32_t epoch;
    uint64_t read;       /* the position up to which records were taken */
    uint64_t limit;      /* the position up to which records are being taken */
    uint64_t limited_ns; /* when `limit` was set; 0: not yet */
    bool is_taking;      /* records are being taken; false: all up to `limit` were */
    bool is_skipping;    /* the next place is inside a record that is being skipped */
    unsigned steps;      /* how many steps are left in this turn: see STEPS_MAX */
    uint64_t stuck_ns;   /* the next record is incomplete since then; 0: it is not */
    uint64_t skipped;    /* how often records were skipped: never completed, or damaged */
    bool has_let_end;    /* the program was allowed to exit */
    bool is_damaged;     /* the header is invalid: nothing more is read */
    char program_name[AGENT_NAME_BYTES]; /* the base name of its file */
    struct throttle reading_peak;
    uint64_t resident_peak; /* when last read; 0: not known */
};

/* Where the program has the memory mapped. */
struct place {
    uint64_t start, end, inode;
    dev_t device;
    /* The first code from a file, and whether other files have code too: if so, the program was
     * linked dynamically. The kernel maps the dynamic linker before the vDSO (load_elf_binary in
     * its fs/binfmt_elf.c). */
    uint64_t first_inode;
    bool is_dynamic, has_vdso;
};

static int find_place(void *context, const struct maps_entry *entry)
{
    struct place *place = context;
    if (entry->executable && entry->inode) {
        place->is_dynamic |= place->first_inode && entry->inode != place->first_inode;
        place->first_inode = place->first_inode ? place->first_inode : entry->inode;
    }
    place->has_vdso |= strcmp(entry->path, "[vdso]") == 0;
    if (strcmp(entry->path, PATH) != 0 || !entry->deleted || entry->offset)
        return 0;
    place->start = entry->start;
    place->end = entry->end;
    place->inode = entry->inode;
    place->device = makedev(entry->dev_major, entry->dev_minor);
    return 1;
}

/* Opens the link if it leads to the memory. The program can change its target at any time, and
 * opening a device may have side effects, so the target is checked before it is opened. */
static int open_link(int directory_fd, const char *name, const struct place *place)
{
    char path[32];
    struct stat status;
    int path_fd = openat(directory_fd, name, O_PATH | O_CLOEXEC);
    if (path_fd < 0)
        return -errno;
    bool is_it = fstat(path_fd, &status) == 0 && S_ISREG(status.st_mode) &&
                 status.st_ino == place->inode && status.st_dev == place->device;
    snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
    int fd = is_it ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
    int err = !is_it ? -ENOENT : fd < 0 ? -errno : 0;
    close(path_fd);
    return err ? err : fd;
}

/* The program may have the memory under any descriptor. */
static int open_descriptor(int proc_fd, const struct place *place)
{
    DIR *directory = procfs_open_directory(proc_fd, "fd");
    int fd = -ENOENT;
    struct dirent *entry;
    if (!directory)
        return -errno;
    while (fd == -ENOENT && (entry = readdir(directory))) {
        char link[sizeof LINK + 1];
        ssize_t bytes = readlinkat(dirfd(directory), entry->d_name, link, sizeof link);
        if (bytes == (ssize_t)strlen(LINK) && memcmp(link, LINK, strlen(LINK)) == 0)
            fd = open_link(dirfd(directory), entry->d_name, place);
    }
    closedir(directory);
    return fd;
}

/* map_files needs CAP_CHECKPOINT_RESTORE, but works even if the program has closed the
 * descriptor. */
static int open_memory(int proc_fd, const struct place *place)
{
    char name[64];
    snprintf(name, sizeof name, "map_files/%" PRIx64 "-%" PRIx64, place->start, place->end);
    int fd = open_descriptor(proc_fd, place);
    if (fd < 0) {
        int mapped_fd = open_link(proc_fd, name, place);
        fd = mapped_fd >= 0 ? mapped_fd : fd == -ENOENT ? -EBADF : fd;
    }
    return fd;
}

/* The memory must not be able to shrink while it is mapped: a read beyond its end would kill us. So
 * would a read of huge page memory if no huge pages are left. */
static int check_file(int fd, size_t *ret_bytes)
{
    struct stat status;
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstatfs(fd, &system) ||
        system.f_type != TMPFS_MAGIC || fstat(fd, &status) ||
        status.st_size < (off_t)(AGENT_HEADER_BYTES + sizeof(struct agent_record)) ||
        status.st_size > (off_t)(AGENT_HEADER_BYTES + RING_BYTES_MAX))
        return -EBADMSG;
    *ret_bytes = (size_t)status.st_size;
    return 0;
}

static int lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!fcntl(fd, F_OFD_SETLK, &lock))
        return 0;
    return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* The magic is written last: without it, the rest may be missing. */
static int check_header(struct agent *agent)
{
    static const char none[sizeof agent->header->magic] = {0};
    const struct agent_header *header = agent->header;
    pid_t pid = procfs_inner_tid(agent->program->proc_fd, agent->program->process_id);
    uint64_t ring_bytes = header->ring_bytes;
    if (memcmp(header->magic, none, sizeof none) == 0)
        return -ENOENT;
    if (memcmp(header->magic, AGENT_MAGIC, sizeof none) != 0)
        return -EBADMSG;
    if (header->version != AGENT_VERSION)
        return -EPROTONOSUPPORT;
    /* A forked child also has it mapped, but is another process. */
    if (pid && header->pid != (uint32_t)pid)
        return -ENOENT;
    if (header->header_bytes != AGENT_HEADER_BYTES || (ring_bytes & (ring_bytes - 1)) ||
        ring_bytes != agent->bytes - AGENT_HEADER_BYTES)
        return -EBADMSG;
    agent->ring_bytes = ring_bytes;
    agent->code_start = header->code_start;
    agent->code_limit = header->code_limit;
    return 0;
}

uint32_t agent_wants(const struct object_options *options)
{
    uint32_t wants = 0;
    if (options->kinds[OBJECT_ALLOCATION])
        wants |= AGENT_WANTS_HEAP | (options->has_mappings ? AGENT_WANTS_MMAP : 0);
    if (options->kinds[OBJECT_THREAD])
        wants |= AGENT_WANTS_THREADS;
    return wants;
}

/* Only records from now on count. Those that an earlier profiler left are useless: it may have been
 * killed, and the agent continued without room for records. For the order of steps, see format.h.
 */
static void begin_anew(struct agent *agent)
{
    struct agent_header *header = agent->header;
    atomic_store(&header->wanted, 0);
    agent->epoch = atomic_fetch_add(&header->epoch, 1) + 1;
    agent->read = atomic_load(&header->written);
    atomic_store(&header->read, agent->read);
    agent->limit = agent->read;
    atomic_store(&header->wanted, agent_wants(&agent->options));
}

/* If the ring was never read, all its records count: the program was started with the agent turned
 * on. */
static void begin(struct agent *agent)
{
    struct agent_header *header = agent->header;
    uint32_t none = 0;
    atomic_store(&header->rate, agent->options.heap_rate);
    if (atomic_compare_exchange_strong(&header->epoch, &none, 1)) {
        agent->epoch = 1;
        agent->read = atomic_load(&header->read);
        agent->limit = agent->read;
        atomic_store(&header->wanted, agent_wants(&agent->options));
        return;
    }
    agent->made_lost = atomic_load(&header->made_lost);
    agent->gone_lost = atomic_load(&header->gone_lost);
    agent->threads_lost = atomic_load(&header->threads_lost);
    begin_anew(agent);
}

static const struct agent_record *record_at(const struct agent *agent, uint64_t position)
{
    uint64_t offset = position & (agent->ring_bytes - 1);
    return (const void *)((const char *)agent->header + AGENT_HEADER_BYTES + offset);
}

static bool is_complete(const struct agent *agent, uint64_t position)
{
    const struct agent_record *record = record_at(agent, position);
    return atomic_load_explicit(&record->committed, memory_order_acquire) == position + 1;
}

/* How much of the record may be registers and stack. */
static size_t room_for_stack(const struct agent_record *record)
{
    size_t head = sizeof *record + AGENT_REGISTER_COUNT * sizeof *record->registers;
    return record->bytes < head ? 0 : record->bytes - head;
}

/* Copies a record's head, which the program can change at any time, and checks the copy. Padding
 * may only have room for the first fields. */
static bool copy_head(const struct agent *agent, uint64_t position, struct agent_record *ret_record)
{
    uint64_t left = agent->ring_bytes - (position & (agent->ring_bytes - 1));
    *ret_record = (struct agent_record){0};
    memcpy(ret_record, record_at(agent, position),
           left < sizeof *ret_record ? left : sizeof *ret_record);
    size_t least = ret_record->kind == AGENT_PADDING ? ALIGNMENT : sizeof *ret_record;
    return ret_record->bytes >= least && ret_record->bytes % ALIGNMENT == 0 &&
           ret_record->bytes <= left && ret_record->bytes <= agent->limit - position &&
           ret_record->stack_bytes <= room_for_stack(ret_record) &&
           ret_record->stack_bytes <= AGENT_STACK_BYTES_MAX &&
           ret_record->object_bytes <= OBJECT_BYTES_MAX;
}

/* Skips a record that will never be complete, or is damaged, to the next intact one. A record is
 * recognized by its position, which is unique. */
static void skip_record(struct agent *agent)
{
    struct agent_record record;
    agent->skipped += !agent->is_skipping;
    agent->read += agent->is_skipping ? 0 : ALIGNMENT;
    agent->stuck_ns = 0;
    for (; agent->read < agent->limit && agent->steps; agent->steps--, agent->read += ALIGNMENT) {
        if (is_complete(agent, agent->read) && copy_head(agent, agent->read, &record))
            break;
    }
    agent->is_skipping = agent->read < agent->limit && !agent->steps;
    if (agent->read > agent->limit)
        agent->read = agent->limit;
}

/* The next record is incomplete: returns whether to give it up. Its thread is about to complete it,
 * unless it was killed. */
static bool is_stuck(struct agent *agent)
{
    uint64_t now_ns = monotonic_ns();
    if (!agent->stuck_ns)
        agent->stuck_ns = now_ns;
    return now_ns - agent->stuck_ns >= PATIENCE_NS || !program_is_current(agent->program);
}

/* Whether the ring will soon be full, by how much it has received since it was last read. */
static bool is_filling(const struct agent *agent, uint64_t bytes, uint64_t passed_ns)
{
    return (double)bytes * FILLING_NS > (double)agent->ring_bytes * (double)passed_ns;
}

/* Sets where to stop taking records: the program may append more as fast as they are taken. */
static void set_limit(struct agent *agent)
{
    const struct agent_header *header = agent->header;
    uint64_t now_ns = monotonic_ns();
    uint64_t written = atomic_load_explicit(&header->written, memory_order_acquire);
    bool is_possible = written - agent->read <= agent->ring_bytes && written % ALIGNMENT == 0 &&
                       agent->read % ALIGNMENT == 0 && atomic_load(&header->epoch) == agent->epoch;
    if (!is_possible)
        written = agent->read;
    agent->source.is_fast =
        agent->limited_ns && is_filling(agent, written - agent->limit, now_ns - agent->limited_ns);
    agent->limited_ns = now_ns;
    agent->limit = written;
    agent->is_damaged = !is_possible;
}

static void pass(struct agent *agent)
{
    atomic_store_explicit(&agent->header->read, agent->read, memory_order_release);
}

/* Finds the next record. Returns false if there is none, it is not complete yet, or the turn is
 * over. */
static bool next_record(struct agent *agent, struct agent_record *ret_record)
{
    for (; agent->read != agent->limit && agent->steps; agent->steps--) {
        if (agent->is_skipping) {
            skip_record(agent);
        } else if (!is_complete(agent, agent->read)) {
            if (!is_stuck(agent))
                return false;
            skip_record(agent);
        } else if (!copy_head(agent, agent->read, ret_record)) {
            skip_record(agent);
        } else {
            agent->steps--;
            agent->stuck_ns = 0;
            return true;
        }
        pass(agent);
        if (!agent->steps)
            break;
    }
    agent->source.has_more = agent->read != agent->limit;
    return false;
}

/* Fills the snapshot from the next record. */
static void copy_stack(const struct agent *agent, const struct agent_record *head,
                       struct snapshot *snapshot)
{
    const struct agent_record *record = record_at(agent, agent->read);
    uint64_t registers[AGENT_REGISTER_COUNT];
    memcpy(registers, record->registers, sizeof registers);
    memcpy(snapshot->stack.memory, &record->registers[AGENT_REGISTER_COUNT], head->stack_bytes);
    agent_stack_fill(snapshot, registers, head->stack_bytes, head->is_cut);
}

static bool is_wanted(const struct agent *agent, const struct agent_record *record)
{
    switch (record->kind) {
    case AGENT_ALLOCATED:
    case AGENT_FREED:
        return agent->options.kinds[OBJECT_ALLOCATION];
    case AGENT_THREAD:
        return agent->options.kinds[OBJECT_THREAD];
    default: /* padding, or a record of a later agent */
        return false;
    }
}

static struct object_news news_of(const struct agent *agent, const struct agent_record *record)
{
    return (struct object_news){
        .kind = record->kind == AGENT_THREAD ? OBJECT_THREAD : OBJECT_ALLOCATION,
        .change = record->kind == AGENT_FREED ? OBJECT_GONE : OBJECT_MADE,
        .tid = (pid_t)record->tid,
        .at_ns = record->at_ns,
        .key = record->object,
        .bytes = record->kind == AGENT_THREAD ? 0 : record->object_bytes,
        .weight = 1,
        .code_start = agent->code_start,
        .code_limit = agent->code_limit,
    };
}

/* Finds the next useful record, skipping others. */
static bool next_wanted(struct agent *agent, struct agent_record *ret_record)
{
    while (next_record(agent, ret_record)) {
        if (is_wanted(agent, ret_record))
            return true;
        agent->read += ret_record->bytes;
        pass(agent);
    }
    return false;
}

/* Lets the program exit, which waits for us for a moment. */
static void let_end(struct agent *agent)
{
    struct agent_header *header = agent->header;
    if (agent->has_let_end || !atomic_load(&header->is_ending) || agent->read != agent->limit)
        return;
    program_keep_maps(agent->program);
    atomic_store(&header->may_end, 1);
    agent->has_let_end = true;
}

/* Takes the next useful record. Returns false if there is none, or no snapshot for it. */
static bool take(struct agent *agent, struct snapshot_pool *snapshots, struct object_news *ret_news)
{
    static const struct stack_place no_place = {0};
    struct agent_record record;
    struct snapshot *snapshot = NULL;
    if (!next_wanted(agent, &record))
        return false;
    if (record.kind != AGENT_FREED && record.stack_bytes) {
        snapshot = snapshot_pool_take(snapshots, AGENT_STACK_BYTES_MAX, &no_place);
        agent->source.has_more = !snapshot;
        if (!snapshot)
            return false;
        copy_stack(agent, &record, snapshot);
    }
    *ret_news = news_of(agent, &record);
    ret_news->snapshot = snapshot;
    agent->read += record.bytes;
    pass(agent);
    return true;
}

/* Reads the peak while the program runs, because afterwards it is not available. */
static void read_resident_peak(struct agent *agent)
{
    char status[4096];
    uint64_t now_ns = monotonic_ns();
    if (!throttle_allows(&agent->reading_peak, now_ns, PEAK_EACH_NS, PEAK_PART_OF_TIME))
        return;
    if (procfs_read(agent->program->proc_fd, "status", status, sizeof status) > 0) {
        long kib = procfs_status_number(status, "VmHWM:");
        agent->resident_peak = kib > 0 ? (uint64_t)kib << 10 : agent->resident_peak;
    }
    agent->reading_peak = (struct throttle){now_ns, monotonic_ns() - now_ns};
}

/* The agent turns itself off if its ring was full for long, for example because we were stopped:
 * frees in that time are not known. */
static bool has_given_up(const struct agent *agent)
{
    return !agent->is_damaged && agent_wants(&agent->options) &&
           !atomic_load(&agent->header->wanted) &&
           atomic_load(&agent->header->epoch) == agent->epoch;
}

static bool collect(struct object_source *source, struct snapshot_pool *snapshots,
                    struct object_news *ret_news)
{
    struct agent *agent = (struct agent *)source;
    source->has_more = false;
    if (!agent->is_taking && has_given_up(agent)) {
        begin_anew(agent);
        agent->is_taking = true; /* so that this round takes nothing */
        *ret_news = (struct object_news){.kind = OBJECT_ALLOCATION, .change = OBJECT_FORGOTTEN};
        return true;
    }
    if (!agent->is_taking) {
        read_resident_peak(agent);
        set_limit(agent);
    }
    bool has_news = !agent->is_damaged && take(agent, snapshots, ret_news);
    agent->is_taking = has_news || source->has_more;
    if (!has_news)
        agent->steps = STEPS_MAX;
    if (!agent->is_taking)
        let_end(agent);
    return has_news;
}

/* How much one of the program's counters has grown. */
static uint64_t since(const _Atomic uint64_t *counter, uint64_t before)
{
    uint64_t now = atomic_load(counter);
    return now > before ? now - before : 0;
}

/* The name of the file that contains malloc comes from the program, so it is not trusted. */
static bool has_own_allocator(const struct agent *agent)
{
    char allocator[AGENT_NAME_BYTES];
    memcpy(allocator, agent->header->allocator, sizeof allocator);
    allocator[sizeof allocator - 1] = '\0';
    return *allocator && strcmp(allocator, agent->program_name) == 0;
}

static void count(const struct object_source *source,
                  struct object_counts counts[OBJECT_KIND_COUNT])
{
    const struct agent *agent = (const struct agent *)source;
    const struct agent_header *header = agent->header;
    struct object_counts *heap = &counts[OBJECT_ALLOCATION];
    heap->resident_peak = heap->has_source ? 0 : agent->resident_peak;
    heap->allocator_is_own |= has_own_allocator(agent);
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
        bool is_told = agent_tells((enum object_kind)kind) && agent->options.kinds[kind];
        counts[kind].has_source |= is_told && !agent->is_damaged;
        if (is_told && agent->is_damaged)
            counts[kind].refusal = EBADMSG;
    }
    heap->rate = agent->options.heap_rate;
    heap->made_lost += since(&header->made_lost, agent->made_lost) + agent->skipped;
    heap->gone_lost += since(&header->gone_lost, agent->gone_lost);
    counts[OBJECT_THREAD].made_lost += since(&header->threads_lost, agent->threads_lost);
}

static void close_agent(struct object_source *source)
{
    struct agent *agent = (struct agent *)source;
    if (agent->header) {
        atomic_store(&agent->header->wanted, 0);
        munmap(agent->header, agent->bytes);
    }
    close(agent->fd);
    free(agent);
}

/* Like the agent's copy, cut if it is too long. */
static void read_program_name(struct agent *agent)
{
    char path[PATH_MAX];
    ssize_t bytes = readlinkat(agent->program->proc_fd, "exe", path, sizeof path - 1);
    path[bytes < 0 ? 0 : bytes] = '\0';
    snprintf(agent->program_name, sizeof agent->program_name, "%.*s", (int)AGENT_NAME_BYTES - 1,
             basename(path));
}

static int open_agent(struct agent *agent)
{
    int err = check_file(agent->fd, &agent->bytes);
    if (!err)
        err = lock(agent->fd);
    if (err)
        return err;
    void *memory = mmap(NULL, agent->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, agent->fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    agent->header = memory;
    return check_header(agent);
}

bool agent_tells(enum object_kind kind)
{
    return kind == OBJECT_ALLOCATION || kind == OBJECT_THREAD;
}

/* The program has no agent: returns why it may never have one. Otherwise the agent may not have
 * started yet. */
static int reason_for_none(const struct program *program, const struct place *place)
{
    if (procfs_is_secure(program->proc_fd))
        return -EPERM;
    return place->has_vdso && !place->is_dynamic ? -ENOEXEC : -ENOENT;
}

/* Opens the program's memory that was found at this place. */
static int open_found(const struct program *program, const struct place *place)
{
    struct place again = {0};
    int fd = open_memory(program->proc_fd, place);
    /* If the process has executed another program meanwhile, it has not closed the descriptor
     * itself. */
    if (fd == -EBADF && maps_read(program->maps_fd, find_place, &again) <= 0)
        return -ENOENT;
    return fd == -EPERM ? -EACCES : fd;
}

int agent_source_new(const struct program *program, const struct object_options *options,
                     struct object_source **ret_source)
{
    struct place place = {0};
    int found = maps_read(program->maps_fd, find_place, &place);
    if (!found)
        return reason_for_none(program, &place);
    if (found < 0)
        return found == -ESRCH ? -ENOENT : found;
    int fd = open_found(program, &place);
    if (fd < 0)
        return fd;
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        close(fd);
        return -ENOMEM;
    }
    agent->source = (struct object_source){.collect = collect, .count = count, .free = close_agent};
    agent->options = *options;
    agent->program = program;
    agent->steps = STEPS_MAX;
    agent->fd = fd;
    read_program_name(agent);
    int err = open_agent(agent);
    if (err) {
        if (agent->header)
            munmap(agent->header, agent->bytes);
        agent->header = NULL; /* it is not ours to turn off */
        close_agent(&agent->source);
        return err;
    }
    begin(agent);
    *ret_source = &agent->source;
    return 0;
}
