/* The format is that of the heap profiles of gperftools and Go (runtime/pprof/pprof.go,
 * writeHeapInternal), as pprof's parseHeap (profile/legacy_profile.go) and google-pprof's
 * ReadHeapProfile read it. A line has "OBJECTS: BYTES [OBJECTS: BYTES] @ ADDRESSES": what is in
 * use, then all that was made.
 *
 * The head ends in what the values are. "heap_v2/RATE": they are of objects that were seen, and the
 * reader scales them, as it does with those of Go, whose head ends in "heap/" and twice the rate.
 * google-pprof takes that for a sampling of another kind, and divides by the objects in use, which
 * may be 0. "heapprofile" and "growthz" are not scaled; of the latter pprof reads what is in use
 * alone. */
#include "output/memory_text.h"
#include "output/name.h"
#include "profile/objects.h"

#include <inttypes.h>
#include <string.h>

bool memory_text_is_for(const struct fgprof_profile *profile)
{
    return objects_are_of_heap(profile) || profile->kind == FGPROF_KIND_GROWTH;
}

/* Readers take no negative numbers for these. */
static uint64_t not_negative(uint64_t value)
{
    return value <= INT64_MAX ? value : 0;
}

void memory_text_head(struct sink *sink, const struct fgprof_profile *profile,
                      const struct profile_view *view)
{
    struct profile_sample sum = {0};
    uint64_t made_bytes = 0, used_bytes = 0;
    for (size_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        sum.made += sample->made;
        sum.gone += sample->gone;
        made_bytes += sample->made * sample->object_bytes;
        used_bytes += (sample->made - sample->gone) * sample->object_bytes;
    }
    uint64_t made = not_negative(sum.made), used = not_negative(sum.made - sum.gone);
    made_bytes = not_negative(made_bytes);
    used_bytes = not_negative(used_bytes);
    /* pprof takes equal pairs for a profile of what is in use alone, as Go says where it does the
     * same. */
    if (objects_are_of_heap(profile) && used_bytes == made_bytes)
        made_bytes++;
    sink_print(sink, "heap profile: %" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @ ", used,
               used_bytes, made, made_bytes);
    if (profile->kind == FGPROF_KIND_GROWTH)
        sink_print(sink, "growthz\n");
    else if (profile->objects.rate > 1)
        sink_print(sink, "heap_v2/%" PRIu64 "\n", profile->objects.rate);
    else
        sink_print(sink, "heapprofile\n");
}

void memory_text_values(struct sink *sink, const struct profile_sample *sample)
{
    uint64_t used = sample->made - sample->gone;
    sink_print(sink, "%" PRId64 ": %" PRId64 " [%" PRIu64 ": %" PRIu64 "] ", (int64_t)used,
               (int64_t)(used * sample->object_bytes), not_negative(sample->made),
               not_negative(sample->made * sample->object_bytes));
}

static void put_number(struct sink *sink, const char *name, uint64_t value)
{
    if (value)
        sink_print(sink, "# %s = %" PRIu64 "\n", name, value);
}

/* By the names that Go has for the same. */
void memory_text_comments(struct sink *sink, const struct fgprof_profile *profile)
{
    const struct profile_objects *objects = &profile->objects;
    if (objects->heap_arena || objects->heap_mmap)
        sink_print(sink, "# mallinfo2\n");
    put_number(sink, "HeapSys", objects->heap_arena + objects->heap_mmap);
    put_number(sink, "HeapAlloc", objects->heap_used + objects->heap_mmap);
    put_number(sink, "HeapIdle", objects->heap_free);
    put_number(sink, "MaxRSS", objects->resident_peak);
}

/* As in /proc/PID/maps. Readers take a path up to a space. */
void memory_text_map(struct sink *sink, const struct fgprof_profile *profile)
{
    sink_print(sink, "--- Memory map: ---\n");
    for (size_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        const char *path = strings_get(&profile->strings, mapping->path);
        if (*path != '/')
            continue;
        struct buffer line = {0};
        buffer_print(&line, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", mapping->start,
                     mapping->limit, mapping->offset);
        name_append(&line, path);
        buffer_puts(&line, "\n");
        sink_put(sink, &line);
    }
}
