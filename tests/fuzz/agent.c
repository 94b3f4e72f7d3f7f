/* The agent's ring in a program that writes anything: the numbers in the header, and then the
 * ring's contents in two parts, the second of which arrives after the first has been read. */
#include "input.h"
#include "unit/make_agent.h"

#include <errno.h>

#define RING_BYTES 1024u
#define NEWS_MAX (2 * RING_BYTES / 16)

enum {
    OTHER_VERSION = 1,
    OTHER_MAGIC = 2,
    OTHER_RING = 4,
    OTHER_HEADER = 8,
    WAS_READ = 16,
    ANY_POSITION = 32,
    ENDED = 64,
    WANTS_THREADS = 128
};

static struct segment segment;
static struct program program;
static struct snapshot_pool *snapshots;
static int ended_fd;

static void prepare(void)
{
    if (segment.header) {
        memset(segment.header, 0, segment.bytes);
        segment_fill(&segment);
        return;
    }
    segment = segment_make(RING_BYTES, F_SEAL_SHRINK);
    program = own_program();
    ended_fd = memfd_create("ended", MFD_CLOEXEC);
    must(ended_fd >= 0 && snapshot_pool_new(&snapshots) == 0);
}

/* Returns the position at which the records begin. */
static uint64_t take_header(struct input *input, unsigned flags)
{
    struct agent_header *header = segment.header;
    if (flags & OTHER_VERSION)
        header->version = (uint32_t)take_number(input, 4);
    if (flags & OTHER_MAGIC)
        take_number(input, 1) ? header->magic[3]++ : (header->magic[0] = 0);
    if (flags & OTHER_RING)
        header->ring_bytes = take_number(input, 8);
    if (flags & OTHER_HEADER)
        header->header_bytes = (uint32_t)take_number(input, 4);
    uint64_t position = take_number(input, 2) * 16;
    atomic_store(&header->epoch, flags & WAS_READ ? 7 : 0);
    atomic_store(&header->read, position);
    atomic_store(&header->written, position);
    return position;
}

/* Fills the ring from `position` on. The input says which records are complete. */
static uint64_t take_records(struct input input, uint64_t position)
{
    char *ring = (char *)segment.header + AGENT_HEADER_BYTES;
    while (input.bytes >= 16) {
        struct agent_record *record = segment_record(&segment, position);
        bool is_complete = take_number(&input, 1) & 1;
        struct input piece = take_part(&input, 15);
        size_t offset = (size_t)((char *)record - ring);
        memcpy(ring + offset, piece.at, piece.bytes);
        if (is_complete) {
            atomic_store(&record->committed, position + 1);
            memcpy(ring + offset + 8, piece.at, piece.bytes < 8 ? piece.bytes : 8);
        }
        position += 16;
    }
    return position;
}

static void read_all(struct object_source *source)
{
    struct object_news news;
    unsigned count = 0;
    while (source->collect(source, snapshots, &news)) {
        must(++count <= NEWS_MAX);
        must(news.kind == OBJECT_ALLOCATION || news.kind == OBJECT_THREAD);
        must(news.change == OBJECT_MADE || news.change == OBJECT_GONE);
        must(news.weight == 1 && !news.name);
        const struct stack_copy *stack = news.snapshot ? &news.snapshot->stack : NULL;
        if (stack)
            must(stack->bytes <= AGENT_STACK_BYTES_MAX && stack->end >= stack->address);
        if (stack)
            snapshot_pool_give(snapshots, news.snapshot, false);
    }
    must(!source->has_more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    struct object_options options = {.kinds = {[OBJECT_ALLOCATION] = true}, .heap_rate = 1};
    struct object_counts counts[OBJECT_KIND_COUNT] = {0};
    struct object_source *source;
    prepare();
    unsigned flags = (unsigned)take_number(&input, 1);
    struct agent_header *header = segment.header;
    options.kinds[OBJECT_THREAD] = flags & WANTS_THREADS;
    uint64_t position = take_header(&input, flags), jump = 0;
    if (flags & ANY_POSITION)
        jump = take_number(&input, 8);
    struct program seen = program;
    if (flags & ENDED)
        seen.mem_fd = ended_fd;
    struct input first = take_part(&input, input.bytes / 2);
    if (first.bytes > RING_BYTES)
        first.bytes = RING_BYTES;
    position = take_records(first, position);
    atomic_store(&header->written, position);
    int err = agent_source_new(&seen, &options, &source);
    must(err == 0 || err == -EBADMSG || err == -EPROTONOSUPPORT || err == -ENOENT);
    if (err)
        return 0;
    read_all(source);
    atomic_store(&header->written, take_records(input, position) + jump);
    read_all(source);
    read_all(source);
    source->count(source, counts);
    source->free(source);
    must(atomic_load(&header->wanted) == 0);
    return 0;
}
