#include "objects/values.h"
#include "objects/agent_stack.h"
#include "proc/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES_MAX 8 /* of a slot that changes while it is read */
#define IS_TOLD 1u  /* in `seen`: sequences of complete values are even */

struct values {
    struct object_source source;
    struct values_memory memory;
    struct values_header *header; /* a copy, checked */
    bool is_damaged;
    bool is_begun; /* the values of an earlier program were reported as gone */
    /* For each slab: the sequence of each slot when it was last looked at; NULL: none was. */
    uint32_t *seen[VALUES_SLABS_MAX];
    uint32_t classes[VALUES_SLABS_MAX];
    uint64_t without_slot[VALUES_PROFILES_MAX]; /* as last reported */
    uint64_t wrong;                             /* invalid slots */
    /* The next ones to look at: first the profiles, then the slots. */
    uint32_t profile, slab, slot;
};

static bool read_at(const struct values_memory *memory, uint64_t offset, void *buffer, size_t bytes)
{
    char *to = buffer;
    while (bytes) {
        ssize_t got = pread(memory->fd, to, bytes, (off_t)(memory->address + offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    atomic_thread_fence(memory_order_acquire); /* orders this read before later reads */
    return true;
}

static int find_memory(void *context, const struct maps_entry *entry)
{
    struct values_memory *memory = context;
    if (strcmp(entry->path, "/memfd:" VALUES_MEMFD) != 0 || entry->offset)
        return 0;
    memory->address = entry->start;
    return 1;
}

int values_find(int maps_fd, int mem_fd, struct values_memory *ret_memory)
{
    struct values_memory memory = {.fd = mem_fd};
    int found = maps_read(maps_fd, find_memory, &memory);
    if (found <= 0)
        return found && found != -ESRCH ? found : -ENOENT;
    *ret_memory = memory;
    return 0;
}

static bool is_sound(const struct values_header *header)
{
    uint64_t slabs = header->bytes / VALUES_SLAB_BYTES;
    if (header->bytes % VALUES_SLAB_BYTES || !slabs || slabs - 1 > VALUES_SLABS_MAX ||
        header->slab_count > slabs - 1 || header->profile_count > VALUES_PROFILES_MAX)
        return false;
    for (uint32_t i = 0; i < header->slab_count; i++) {
        uint32_t size_class_plus_1 = header->slabs[i].class_plus_1;
        uint32_t used = header->slabs[i].used;
        if (size_class_plus_1 > VALUES_CLASSES ||
            used > (size_class_plus_1 ? values_class_slots(size_class_plus_1 - 1) : 0))
            return false;
    }
    return true;
}

/* Copies the header and checks it. */
static int read_header(const struct values_memory *memory, struct values_header *header)
{
    static const char no_magic[sizeof header->magic];
    if (!read_at(memory, 0, header, sizeof *header))
        return -ESRCH;
    if (memcmp(header->magic, no_magic, sizeof no_magic) == 0)
        return -ENOENT;
    if (memcmp(header->magic, VALUES_MAGIC, sizeof header->magic) != 0)
        return -EBADMSG;
    if (header->version != VALUES_VERSION)
        return -EPROTONOSUPPORT;
    return is_sound(header) ? 0 : -EBADMSG;
}

/* Whether the profile's name may be shown: a hostile program may give any name. */
static bool has_name(const struct values_profile *profile)
{
    return memchr(profile->name, '\0', sizeof profile->name) && values_name_is_valid(profile->name);
}

int values_list(const struct values_memory *memory, struct values_listed **ret_profiles,
                size_t *ret_count)
{
    struct values_header *header = malloc(sizeof *header);
    struct values_listed *listed = NULL;
    size_t count = 0;
    int err = header ? read_header(memory, header) : -ENOMEM;
    if (!err) {
        listed = calloc(header->profile_count + 1, sizeof *listed);
        err = listed ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; !err && i < header->profile_count; i++) {
        const struct values_profile *profile = &header->profiles[i];
        if (!has_name(profile))
            continue;
        strcpy(listed[count].name, profile->name);
        listed[count++].count = profile->count;
    }
    free(header);
    if (err)
        return err;
    *ret_profiles = listed;
    *ret_count = count;
    return 0;
}

/* ---- One slot ---- */

enum look {
    LOOK_SAME, /* unchanged since the last look */
    LOOK_FREE,
    LOOK_VALUE, /* with a snapshot */
    LOOK_TORN,  /* it is changing, or its profile is newer than our copy of the header */
    LOOK_WRONG,
    LOOK_LATER, /* there is no snapshot now */
    LOOK_GONE,  /* the program has ended */
};

struct looked {
    uint32_t sequence;
    struct values_slot slot;
    struct snapshot *snapshot;
};

/* Reads the contents of the slot, without checking them, if there is a value. */
static enum look read_slot(const struct values *values, uint64_t offset, uint32_t room,
                           struct snapshot_pool *snapshots, struct looked *looked)
{
    static const struct stack_place no_place = {0};
    struct values_slot *slot = &looked->slot;
    if (!read_at(&values->memory, offset, slot, sizeof *slot))
        return LOOK_GONE;
    if (!slot->profile_plus_1)
        return LOOK_FREE;
    if (slot->stack_bytes > room)
        return LOOK_WRONG;
    looked->snapshot = snapshot_pool_take(snapshots, AGENT_STACK_BYTES_MAX, &no_place);
    if (!looked->snapshot)
        return LOOK_LATER;
    if (!read_at(&values->memory, offset + sizeof *slot, looked->snapshot->stack.memory,
                 slot->stack_bytes))
        return LOOK_GONE;
    agent_stack_fill(looked->snapshot, slot->registers, slot->stack_bytes, slot->is_cut);
    return LOOK_VALUE;
}

static enum look look_once(const struct values *values, uint64_t offset, uint32_t room,
                           uint32_t seen, struct snapshot_pool *snapshots, struct looked *looked)
{
    uint32_t sequence;
    *looked = (struct looked){0};
    if (!read_at(&values->memory, offset, &looked->sequence, sizeof looked->sequence))
        return LOOK_GONE;
    if (looked->sequence % 2)
        return LOOK_TORN;
    if (looked->sequence == (seen & ~IS_TOLD))
        return LOOK_SAME;
    enum look look = read_slot(values, offset, room, snapshots, looked);
    if (look == LOOK_GONE || look == LOOK_LATER)
        return look;
    if (!read_at(&values->memory, offset, &sequence, sizeof sequence))
        return LOOK_GONE;
    if (sequence != looked->sequence)
        return LOOK_TORN;
    bool is_new = looked->slot.profile_plus_1 > values->header->profile_count;
    return look == LOOK_VALUE && is_new ? LOOK_TORN : look;
}

/* With LOOK_VALUE, and only then, the caller owns the snapshot. */
static enum look look_at(const struct values *values, uint64_t offset, uint32_t room, uint32_t seen,
                         struct snapshot_pool *snapshots, struct looked *ret_looked)
{
    enum look look = LOOK_TORN;
    for (unsigned i = 0; i < TRIES_MAX && look == LOOK_TORN; i++) {
        look = look_once(values, offset, room, seen, snapshots, ret_looked);
        if (look != LOOK_VALUE && ret_looked->snapshot)
            snapshot_pool_give(snapshots, ret_looked->snapshot, false);
    }
    return look;
}

/* ---- All slots ---- */

static uint64_t slot_offset(const struct values *values, uint32_t slab, uint32_t slot)
{
    return VALUES_HEADER_BYTES + (uint64_t)slab * VALUES_SLAB_BYTES +
           (uint64_t)slot * values_class_slot_bytes(values->classes[slab]);
}

/* Whether the slab has slots to look at. Its class does not change. */
static bool open_slab(struct values *values, uint32_t slab)
{
    uint32_t size_class_plus_1 = values->header->slabs[slab].class_plus_1;
    if (!size_class_plus_1)
        return false;
    if (!values->seen[slab]) {
        values->classes[slab] = size_class_plus_1 - 1;
        values->seen[slab] =
            calloc(values_class_slots(size_class_plus_1 - 1), sizeof *values->seen[slab]);
    }
    if (values->seen[slab] && values->classes[slab] == size_class_plus_1 - 1)
        return true;
    values->wrong++;
    return false;
}

/* Whether there is anything to report. TOLD_LATER: there is no snapshot or memory for it now. */
enum told { TOLD_NOTHING, TOLD_NEWS, TOLD_LATER };

static bool set_news(const struct values *values, uint32_t profile, struct object_news *news)
{
    const struct values_profile *of = &values->header->profiles[profile];
    news->name = strdup(has_name(of) ? of->name : "");
    return news->name;
}

static enum told tell_value(struct values *values, const struct looked *looked,
                            struct snapshot_pool *snapshots, struct object_news *ret_news)
{
    const struct values_slot *slot = &looked->slot;
    struct object_news news = {
        .kind = OBJECT_VALUE,
        .change = OBJECT_MADE,
        .tid = (pid_t)slot->tid,
        .snapshot = looked->snapshot,
        .weight = 1,
        .skip = slot->skip < UINT32_MAX ? slot->skip + 1 : UINT32_MAX, /* the agent's frame, too */
    };
    if (!set_news(values, slot->profile_plus_1 - 1, &news)) {
        snapshot_pool_give(snapshots, looked->snapshot, false);
        return TOLD_LATER;
    }
    *ret_news = news;
    return TOLD_NEWS;
}

static enum told tell_slot(struct values *values, struct snapshot_pool *snapshots,
                           struct object_news *ret_news)
{
    uint32_t room = values_class_stack_bytes(values->classes[values->slab]);
    uint32_t *seen = &values->seen[values->slab][values->slot];
    uint64_t offset = slot_offset(values, values->slab, values->slot);
    bool was_told = *seen & IS_TOLD;
    struct looked looked;
    enum told told = TOLD_NOTHING;
    enum look look = look_at(values, offset, room, *seen, snapshots, &looked);
    switch (look) {
    case LOOK_LATER:
        return TOLD_LATER;
    case LOOK_GONE:
        values->source.has_more = false;
        return TOLD_NOTHING;
    case LOOK_VALUE:
        told = tell_value(values, &looked, snapshots, ret_news);
        if (told == TOLD_LATER)
            return told;
        *seen = looked.sequence | IS_TOLD;
        break;
    case LOOK_WRONG:
        values->wrong++;
        /* fall through */
    case LOOK_TORN: /* the reported value no longer exists */
    case LOOK_FREE:
        *seen = look == LOOK_TORN ? 0 : looked.sequence;
        *ret_news = (struct object_news){.kind = OBJECT_VALUE, .change = OBJECT_GONE};
        told = was_told ? TOLD_NEWS : TOLD_NOTHING;
        break;
    case LOOK_SAME:
        break;
    }
    ret_news->key = offset;
    values->slot++;
    return told;
}

/* Values that have no slot are reported as one object, without a stack. */
static enum told tell_profile(struct values *values, struct object_news *ret_news)
{
    uint32_t number = values->profile;
    uint64_t count = values->header->profiles[number].without_slot;
    struct object_news news = {
        .kind = OBJECT_VALUE,
        .change = count ? OBJECT_MADE : OBJECT_GONE,
        .key = 1ull << 63 | number,
        .weight = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
    };
    if (count == values->without_slot[number]) {
        values->profile++;
        return TOLD_NOTHING;
    }
    if (count && !set_news(values, number, &news))
        return TOLD_LATER;
    values->without_slot[number] = count;
    values->profile++;
    *ret_news = news;
    return TOLD_NEWS;
}

static bool collect(struct object_source *source, struct snapshot_pool *snapshots,
                    struct object_news *ret_news)
{
    struct values *values = (struct values *)source;
    const struct values_header *header = values->header;
    enum told told = TOLD_NOTHING;
    if (!values->is_begun) {
        values->is_begun = true;
        *ret_news = (struct object_news){.kind = OBJECT_VALUE, .change = OBJECT_FORGOTTEN};
        return true;
    }
    while (source->has_more && told == TOLD_NOTHING) {
        if (values->profile < header->profile_count) {
            told = tell_profile(values, ret_news);
        } else if (values->slab == header->slab_count) {
            source->has_more = false;
        } else if (values->slot < header->slabs[values->slab].used &&
                   open_slab(values, values->slab)) {
            told = tell_slot(values, snapshots, ret_news);
        } else {
            values->slab++;
            values->slot = 0;
        }
    }
    return told == TOLD_NEWS;
}

static void refresh(struct object_source *source)
{
    struct values *values = (struct values *)source;
    int err = read_header(&values->memory, values->header);
    values->is_damaged |= err == -EBADMSG || err == -EPROTONOSUPPORT;
    source->has_more = !err && !values->is_damaged;
    values->profile = values->slab = values->slot = 0;
}

static void count(const struct object_source *source,
                  struct object_counts counts[OBJECT_KIND_COUNT])
{
    const struct values *values = (const struct values *)source;
    if (values->is_damaged)
        counts[OBJECT_VALUE].refusal = EBADMSG;
    else
        counts[OBJECT_VALUE].has_source = true;
    counts[OBJECT_VALUE].made_lost += values->wrong;
}

static void close_values(struct object_source *source)
{
    struct values *values = (struct values *)source;
    for (size_t i = 0; i < VALUES_SLABS_MAX; i++)
        free(values->seen[i]);
    free(values->header);
    free(values);
}

int values_source_at(const struct values_memory *memory, struct object_source **ret_source)
{
    struct values *values = calloc(1, sizeof *values);
    if (!values)
        return -ENOMEM;
    values->source = (struct object_source){
        .collect = collect, .count = count, .free = close_values, .refresh = refresh};
    values->memory = *memory;
    values->header = malloc(sizeof *values->header);
    int err = values->header ? read_header(memory, values->header) : -ENOMEM;
    if (err) {
        close_values(&values->source);
        return err;
    }
    values->source.has_more = true;
    *ret_source = &values->source;
    return 0;
}

int values_source_new(const struct program *program, const struct object_options *options,
                      struct object_source **ret_source)
{
    struct values_memory memory;
    (void)options;
    int err = values_find(program->maps_fd, program->mem_fd, &memory);
    return err ? err : values_source_at(&memory, ret_source);
}
