/* Custom profiles in the memory of a program that writes anything: the numbers in the header,
 * names, and then pieces of the slots. They are read, changed, and read again. */
#include "input.h"
#include "objects/values.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLABS 4u
#define SLOTS_BYTES (SLABS * VALUES_SLAB_BYTES)
#define BYTES (VALUES_HEADER_BYTES + SLOTS_BYTES)
#define PIECES_MAX 64

enum { OTHER_VERSION = 1, OTHER_MAGIC = 2, ANY_BYTES = 4, ANY_COUNTS = 8 };

static struct values_header *header;
static struct values_memory memory;
static struct snapshot_pool *snapshots;

static void prepare(void)
{
    if (header) {
        memset(header, 0, BYTES);
        return;
    }
    memory.fd = memfd_create("values", MFD_CLOEXEC);
    must(memory.fd >= 0 && ftruncate(memory.fd, BYTES) == 0 && snapshot_pool_new(&snapshots) == 0);
    header = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
    must(header != MAP_FAILED);
}

static void take_header(struct input *input)
{
    unsigned flags = (unsigned)take_number(input, 1);
    memcpy(header->magic, flags & OTHER_MAGIC ? "FGPROF\0B" : VALUES_MAGIC, sizeof header->magic);
    header->version = flags & OTHER_VERSION ? VALUES_VERSION + 1 : VALUES_VERSION;
    header->bytes = flags & ANY_BYTES ? take_number(input, 8) : BYTES;
    size_t bytes = flags & ANY_COUNTS ? 4 : 1;
    header->profile_count = (uint32_t)take_number(input, bytes);
    header->slab_count = (uint32_t)take_number(input, bytes);
    for (unsigned i = 0; i < SLABS; i++) {
        header->slabs[i].class_plus_1 = (uint32_t)take_number(input, bytes);
        header->slabs[i].used = (uint32_t)take_number(input, bytes > 2 ? bytes : 2);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct input name = take_part(input, take_number(input, 1) % (VALUES_NAME_BYTES + 1));
        memcpy(header->profiles[i].name, name.at, name.bytes);
        header->profiles[i].count = take_number(input, 1);
        header->profiles[i].without_slot = take_number(input, bytes);
    }
}

/* Each piece has a distance from the piece before it, a length, and bytes. */
static void take_slots(struct input *input)
{
    char *slots = (char *)header + VALUES_HEADER_BYTES;
    size_t at = 0;
    for (unsigned i = 0; i < PIECES_MAX && input->bytes; i++) {
        at = (at + take_number(input, 3)) % SLOTS_BYTES;
        struct input piece = take_part(input, take_number(input, 1));
        size_t bytes = piece.bytes < SLOTS_BYTES - at ? piece.bytes : SLOTS_BYTES - at;
        memcpy(slots + at, piece.at, bytes);
        at += bytes;
    }
}

static void read_all(struct object_source *source)
{
    struct object_news news;
    while (source->collect(source, snapshots, &news)) {
        must(news.kind == OBJECT_VALUE);
        must(news.change != OBJECT_MADE || (news.name && news.weight));
        must(!news.name || !*news.name || values_name_is_valid(news.name));
        free(news.name);
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
    struct values_listed *listed = NULL;
    struct object_source *source;
    size_t count;
    prepare();
    take_header(&input);
    struct input first = take_part(&input, input.bytes / 2);
    take_slots(&first);
    int err = values_list(&memory, &listed, &count);
    must(err == 0 || err == -EBADMSG || err == -EPROTONOSUPPORT);
    for (size_t i = 0; !err && i < count; i++)
        must(values_name_is_valid(listed[i].name));
    free(listed);
    must(values_source_at(&memory, &source) == err);
    if (err)
        return 0;
    read_all(source);
    take_slots(&input);
    header->slabs[0].class_plus_1 = header->slabs[1].class_plus_1;
    header->slabs[0].used = header->slabs[1].used;
    source->refresh(source);
    read_all(source);
    source->free(source);
    return 0;
}
