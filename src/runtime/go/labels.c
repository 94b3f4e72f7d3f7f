#include "runtime/go/labels.h"
#include "proc/memory.h"

#include <string.h>

struct text {
    uint64_t address, bytes;
};

/* Until Go 1.24, labels are a map of strings (runtime/pprof/label.go; runtime/map.go): its count,
 * the logarithm of the number of buckets, and where these are; a bucket has which entries are used,
 * keys, values, and the next bucket. */
#define HAS_MAPS_BEFORE 24
#define BUCKET_SLOTS 8
#define BUCKETS_LOG2_MAX 3
#define CHAIN_MAX 4 /* of buckets */
#define USED_FROM 5 /* minTopHash */
struct map {
    uint64_t count;
    uint8_t flags, buckets_log2;
    uint16_t overflows;
    uint32_t seed;
    uint64_t buckets, old_buckets;
};
struct bucket {
    uint8_t used[BUCKET_SLOTS];
    struct text keys[BUCKET_SLOTS], values[BUCKET_SLOTS];
    uint64_t next;
};

struct reading {
    pid_t tid;
    const struct stack_areas *areas;
    char *text;
    size_t bytes, count;
};

static bool read_bytes(const struct reading *reading, uint64_t address, void *buffer, size_t bytes)
{
    return memory_read(reading->tid, reading->areas, address, buffer, bytes) == bytes;
}

static bool read_text(struct reading *reading, const struct text *text)
{
    char *to = reading->text + reading->bytes;
    if (text->bytes >= GO_LABEL_TEXT_BYTES ||
        (text->bytes && !read_bytes(reading, text->address, to, text->bytes)) ||
        memchr(to, '\0', text->bytes))
        return false;
    to[text->bytes] = '\0';
    reading->bytes += text->bytes + 1;
    return true;
}

static void add(struct reading *reading, const struct text *key, const struct text *value)
{
    size_t before = reading->bytes;
    if (reading->count < GO_LABELS_MAX && read_text(reading, key) && read_text(reading, value))
        reading->count++;
    else
        reading->bytes = before;
}

static void read_bucket(struct reading *reading, uint64_t address)
{
    struct bucket bucket;
    for (unsigned i = 0;
         i < CHAIN_MAX && address && read_bytes(reading, address, &bucket, sizeof bucket); i++) {
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            if (bucket.used[slot] >= USED_FROM)
                add(reading, &bucket.keys[slot], &bucket.values[slot]);
        }
        address = bucket.next;
    }
}

/* A pointer to a map, which is itself a pointer. A map that is still growing has some entries in
 * its old buckets: then none are read. */
static void read_map(struct reading *reading, uint64_t address)
{
    struct map map;
    uint64_t at;
    if (!read_bytes(reading, address, &at, sizeof at) ||
        !read_bytes(reading, at, &map, sizeof map) || map.old_buckets ||
        map.buckets_log2 > BUCKETS_LOG2_MAX)
        return;
    for (uint64_t i = 0; i < (uint64_t)1 << map.buckets_log2; i++)
        read_bucket(reading, map.buckets + i * sizeof(struct bucket));
}

/* A slice of pairs. */
static void read_list(struct reading *reading, uint64_t address)
{
    struct text list, pair[2]; /* the slice's third word, what it has room for, is not needed */
    if (!read_bytes(reading, address, &list, sizeof list))
        return;
    for (uint64_t i = 0; i < list.bytes && i < GO_LABELS_MAX; i++) {
        if (!read_bytes(reading, list.address + i * sizeof pair, pair, sizeof pair))
            return;
        add(reading, &pair[0], &pair[1]);
    }
}

size_t go_labels_read(const struct go_layout *layout, uint64_t address, pid_t tid,
                      const struct stack_areas *areas, char ret_text[GO_LABELS_BYTES_MAX])
{
    struct reading reading = {.tid = tid, .areas = areas, .text = ret_text};
    if (layout->minor < HAS_MAPS_BEFORE)
        read_map(&reading, address);
    else
        read_list(&reading, address);
    return reading.bytes;
}
