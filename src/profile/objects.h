/* The types of values in profiles of objects, and the values of samples. */
#ifndef FGPROF_PROFILE_OBJECTS_H
#define FGPROF_PROFILE_OBJECTS_H

#include "profile/profile.h"

enum object_measure {
    OBJECTS_MADE,
    BYTES_MADE,
    OBJECTS_IN_USE, /* made, and not gone; of a difference it may be negative */
    BYTES_IN_USE,
};

struct object_type {
    const char *name;
    const char *unit; /* "bytes" or "count" */
    enum object_measure measure;
};

#define OBJECT_TYPES_MAX 4

/* The types of values in pprof's order. Returns how many there are. The names live as long as the
 * profile's strings. */
size_t objects_types(const struct fgprof_profile *profile,
                     struct object_type ret_types[OBJECT_TYPES_MAX]);

unsigned objects_main_type(const struct fgprof_profile *profile);

/* Such as "heap"; for FGPROF_KIND_CUSTOM, the program's own name. Lives as long as the profile's
 * strings. */
const char *objects_kind_name(const struct fgprof_profile *profile);

/* Whether it is of allocations. */
static inline bool objects_are_of_heap(const struct fgprof_profile *profile)
{
    return profile->kind == FGPROF_KIND_HEAP || profile->kind == FGPROF_KIND_ALLOCS;
}

/* Estimates how many objects of this size there are for each one seen. */
double objects_scale(const struct fgprof_profile *profile, uint64_t object_bytes);

/* The sample's value, scaled to all objects. */
double objects_amount(const struct fgprof_profile *profile, const struct profile_sample *sample,
                      enum object_measure measure);

/* The same as a whole number. */
int64_t objects_value(const struct fgprof_profile *profile, const struct profile_sample *sample,
                      enum object_measure measure);

/* The sample's value of the type that is shown first. */
int64_t objects_main_value(const struct fgprof_profile *profile,
                           const struct profile_sample *sample);

/* Whether the sample has a value of any type. */
bool objects_has_any(const struct fgprof_profile *profile, const struct profile_sample *sample);

/* Fills in what the summary says of objects. */
void objects_summarize(const struct fgprof_profile *profile, struct fgprof_summary *summary);

/* Tells users what is missing. Returns false if nothing is. */
#define OBJECTS_NOTE_BYTES 300
bool objects_note(const struct fgprof_profile *profile, char ret_note[OBJECTS_NOTE_BYTES]);

#endif
