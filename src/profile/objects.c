#include "profile/objects.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A profile without a name would have no types that can be chosen. */
static const char *custom_name(const struct fgprof_profile *profile)
{
    const char *name = strings_get(&profile->strings, profile->objects.name);
    return *name ? name : "custom";
}

static const struct object_type heap[] = {
    {"alloc_objects", "count", OBJECTS_MADE},
    {"alloc_space", "bytes", BYTES_MADE},
    {"inuse_objects", "count", OBJECTS_IN_USE},
    {"inuse_space", "bytes", BYTES_IN_USE},
};
static const struct object_type growth[] = {
    {"faults", "count", OBJECTS_MADE},
    {"rss", "bytes", BYTES_IN_USE},
};
static const struct object_type threads[] = {{"threadcreate", "count", OBJECTS_MADE}};
static const struct object_type custom[] = {{NULL, "count", OBJECTS_IN_USE}};

static const struct {
    const char *name; /* NULL: as the program calls it, also its type */
    const struct object_type *types;
    unsigned type_count;
    unsigned main_type; /* as in Go, the last, or for allocs the bytes of all allocations */
} kinds[] = {
    [FGPROF_KIND_HEAP] = {"heap", heap, 4, 3},
    [FGPROF_KIND_ALLOCS] = {"allocs", heap, 4, 1},
    [FGPROF_KIND_GROWTH] = {"growth", growth, 2, 1},
    [FGPROF_KIND_THREADCREATE] = {"threadcreate", threads, 1, 0},
    [FGPROF_KIND_CUSTOM] = {NULL, custom, 1, 0},
};

size_t objects_types(const struct fgprof_profile *profile,
                     struct object_type ret_types[OBJECT_TYPES_MAX])
{
    size_t count = kinds[profile->kind].type_count;
    memcpy(ret_types, kinds[profile->kind].types, count * sizeof *ret_types);
    if (!kinds[profile->kind].name)
        ret_types[0].name = custom_name(profile);
    return count;
}

unsigned objects_main_type(const struct fgprof_profile *profile)
{
    return kinds[profile->kind].main_type;
}

const char *objects_kind_name(const struct fgprof_profile *profile)
{
    const char *name = kinds[profile->kind].name;
    return name ? name : custom_name(profile);
}

/* With a rate of 1 every byte is sampled. Objects without a size are all seen. */
double objects_scale(const struct fgprof_profile *profile, uint64_t object_bytes)
{
    uint64_t rate = profile->objects.rate;
    return rate > 1 && object_bytes ? -1 / expm1(-(double)object_bytes / (double)rate) : 1;
}

/* Differences are negative as two's complement. */
static double amount(const struct profile_sample *sample, enum object_measure measure)
{
    bool is_in_use = measure == OBJECTS_IN_USE || measure == BYTES_IN_USE;
    bool is_of_bytes = measure == BYTES_MADE || measure == BYTES_IN_USE;
    uint64_t objects = sample->made - (is_in_use ? sample->gone : 0);
    return (double)(int64_t)objects * (is_of_bytes ? (double)sample->object_bytes : 1);
}

double objects_amount(const struct fgprof_profile *profile, const struct profile_sample *sample,
                      enum object_measure measure)
{
    return amount(sample, measure) * objects_scale(profile, sample->object_bytes);
}

/* Saturates, because a file may have any number. */
int64_t objects_value(const struct fgprof_profile *profile, const struct profile_sample *sample,
                      enum object_measure measure)
{
    double rounded = round(objects_amount(profile, sample, measure));
    if (rounded >= (double)INT64_MAX)
        return INT64_MAX;
    return rounded <= (double)INT64_MIN ? INT64_MIN : (int64_t)rounded;
}

int64_t objects_main_value(const struct fgprof_profile *profile,
                           const struct profile_sample *sample)
{
    struct object_type types[OBJECT_TYPES_MAX];
    objects_types(profile, types);
    return objects_value(profile, sample, types[objects_main_type(profile)].measure);
}

bool objects_has_any(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    for (size_t i = 0; i < count; i++) {
        if (objects_value(profile, sample, types[i].measure))
            return true;
    }
    return false;
}

/* A difference may be negative. */
static uint64_t whole(double amount)
{
    return amount > 0 ? (uint64_t)fmin(amount, 0x1p63) : 0;
}

void objects_summarize(const struct fgprof_profile *profile, struct fgprof_summary *summary)
{
    double bytes = 0, bytes_in_use = 0;
    summary->objects_made = summary->objects_gone = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        summary->objects_made += sample->made;
        summary->objects_gone += sample->gone;
        bytes += objects_amount(profile, sample, BYTES_MADE);
        bytes_in_use += objects_amount(profile, sample, BYTES_IN_USE);
    }
    summary->objects_made_lost = profile->objects.made_lost;
    summary->objects_gone_lost = profile->objects.gone_lost;
    summary->objects_rate = profile->objects.rate;
    summary->objects_bytes = whole(bytes);
    summary->objects_bytes_in_use = whole(bytes_in_use);
    summary->samples = summary->objects_made;
}

bool objects_note(const struct fgprof_profile *profile, char ret_note[OBJECTS_NOTE_BYTES])
{
    const struct profile_objects *objects = &profile->objects;
    bool is_lost = objects->made_lost || objects->gone_lost;
    const char *unseen = profile->summary.allocator_is_own
                             ? "the program has an allocator of its own, whose allocations are not "
                               "seen"
                         : profile->summary.sees_user_only
                             ? "pages that system calls touched first are not seen"
                             : NULL;
    if (!profile_is_of_objects(profile) || (!is_lost && !unseen))
        return false;
    ret_note[0] = '\0';
    if (is_lost && profile->kind == FGPROF_KIND_CUSTOM)
        snprintf(ret_note, OBJECTS_NOTE_BYTES, "%" PRIu64 " values could not be read",
                 objects->made_lost);
    else if (is_lost)
        snprintf(ret_note, OBJECTS_NOTE_BYTES,
                 "recording fell behind: %" PRIu64 " objects are missing here, and %" PRIu64
                 " that are gone still count as in use",
                 objects->made_lost, objects->gone_lost);
    size_t used = strlen(ret_note);
    if (unseen)
        snprintf(ret_note + used, OBJECTS_NOTE_BYTES - used, "%s%s", used ? "; " : "", unseen);
    return true;
}
