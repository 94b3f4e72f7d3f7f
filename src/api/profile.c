/* The functions of fgprof.h for profiles: what was found. */
#include "base/array.h"
#include "recording/recording.h"
#include "output/output.h"
#include "profile/function_times.h"
#include "profile/kind.h"
#include "profile/view.h"
#include "profile/objects.h"
#include "profile/spans.h"
#include "profile/subtract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For a struct of the caller that may be older or newer (see "Compatibility" in fgprof.h): copies
 * what both have, and sets the rest of the caller's to zero. */
static void sized_copy(void *to, size_t to_bytes, const void *from, size_t from_bytes)
{
    size_t bytes = to_bytes < from_bytes ? to_bytes : from_bytes;
    memcpy(to, from, bytes);
    memset((char *)to + bytes, 0, to_bytes - bytes);
}

/* A later field must not take the place of padding: an older library would copy its padding there
 * instead of zeroes. */
#define SIZED_ENDS_WITH(type, last)                                                                \
    _Static_assert(offsetof(type, last) + sizeof((type){0}.last) == sizeof(type),                  \
                   "no padding at the end of " #type)

SIZED_ENDS_WITH(struct fgprof_summary, recorded_lost);
SIZED_ENDS_WITH(struct fgprof_function, state_ns);
SIZED_ENDS_WITH(struct fgprof_activity, time_ns);
SIZED_ENDS_WITH(struct fgprof_wait, time_ns);
SIZED_ENDS_WITH(struct fgprof_span_query, last_ns);
SIZED_ENDS_WITH(struct fgprof_span, time_ns);
_Static_assert(FGPROF_STATE_COUNT <= FGPROF_STATES_MAX, "each state has its item");

void fgprof_profile_summary(const fgprof_profile *profile, struct fgprof_summary *ret_summary,
                            size_t bytes)
{
    struct fgprof_summary summary = profile->summary;
    if (profile_is_of_objects(profile))
        objects_summarize(profile, &summary);
    sized_copy(ret_summary, bytes, &summary, sizeof summary);
}

const char *fgprof_profile_unreadable_module(const fgprof_profile *profile, size_t number)
{
    return number < profile->unreadable_count
               ? strings_get(&profile->strings, profile->unreadable[number])
               : NULL;
}

const char *fgprof_profile_deadlock(const fgprof_profile *profile, size_t number)
{
    return number < profile->deadlock_count
               ? strings_get(&profile->strings, profile->deadlocks[number])
               : NULL;
}

int fgprof_profile_parallelism(const fgprof_profile *profile, size_t threads, uint64_t *ret_time_ns)
{
    if (threads >= profile->parallel_count)
        return -ERANGE;
    *ret_time_ns = profile->parallel_ns[threads];
    return 0;
}

struct fgprof_functions {
    struct fgprof_function *rows;
    size_t count;
};

struct fgprof_activities {
    struct fgprof_activity *rows;
    size_t count;
};

int fgprof_profile_functions(const fgprof_profile *profile, const pid_t *tids, size_t tid_count,
                             fgprof_functions **ret_functions)
{
    fgprof_functions *functions = calloc(1, sizeof *functions);
    if (!functions)
        return -ENOMEM;
    int err = profile_functions(profile, tids, tid_count, &functions->rows, &functions->count);
    if (err) {
        free(functions);
        return err;
    }
    *ret_functions = functions;
    return 0;
}

size_t fgprof_functions_count(const fgprof_functions *functions)
{
    return functions->count;
}

int fgprof_functions_get(const fgprof_functions *functions, size_t number,
                         struct fgprof_function *ret_row, size_t bytes)
{
    if (number >= functions->count)
        return -ERANGE;
    sized_copy(ret_row, bytes, &functions->rows[number], sizeof *functions->rows);
    return 0;
}

void fgprof_functions_free(fgprof_functions *functions)
{
    if (functions)
        free(functions->rows);
    free(functions);
}

int fgprof_profile_activities(const fgprof_profile *profile, fgprof_activities **ret_activities)
{
    fgprof_activities *activities = calloc(1, sizeof *activities);
    if (!activities)
        return -ENOMEM;
    int err = profile_activities(profile, &activities->rows, &activities->count);
    if (err) {
        free(activities);
        return err;
    }
    *ret_activities = activities;
    return 0;
}

size_t fgprof_activities_count(const fgprof_activities *activities)
{
    return activities->count;
}

int fgprof_activities_get(const fgprof_activities *activities, size_t number,
                          struct fgprof_activity *ret_row, size_t bytes)
{
    if (number >= activities->count)
        return -ERANGE;
    sized_copy(ret_row, bytes, &activities->rows[number], sizeof *activities->rows);
    return 0;
}

void fgprof_activities_free(fgprof_activities *activities)
{
    if (activities)
        free(activities->rows);
    free(activities);
}

struct fgprof_waits {
    struct fgprof_wait *rows;
    size_t count;
};

int fgprof_profile_waits(const fgprof_profile *profile, fgprof_waits **ret_waits)
{
    fgprof_waits *waits = calloc(1, sizeof *waits);
    if (!waits)
        return -ENOMEM;
    int err = profile_waits(profile, &waits->rows, &waits->count);
    if (err) {
        free(waits);
        return err;
    }
    *ret_waits = waits;
    return 0;
}

size_t fgprof_waits_count(const fgprof_waits *waits)
{
    return waits->count;
}

int fgprof_waits_get(const fgprof_waits *waits, size_t number, struct fgprof_wait *ret_row,
                     size_t bytes)
{
    if (number >= waits->count)
        return -ERANGE;
    sized_copy(ret_row, bytes, &waits->rows[number], sizeof *waits->rows);
    return 0;
}

void fgprof_waits_free(fgprof_waits *waits)
{
    if (waits)
        free(waits->rows);
    free(waits);
}

struct fgprof_spans {
    struct fgprof_span *rows;
    size_t count;
};

int fgprof_profile_spans(const fgprof_profile *profile, const struct fgprof_span_query *query,
                         size_t query_bytes, fgprof_spans **ret_spans)
{
    struct fgprof_span_query known;
    sized_copy(&known, sizeof known, query, query_bytes);
    fgprof_spans *spans = calloc(1, sizeof *spans);
    if (!spans)
        return -ENOMEM;
    int err = profile_spans(profile, &known, &spans->rows, &spans->count);
    if (err) {
        free(spans);
        return err;
    }
    *ret_spans = spans;
    return 0;
}

size_t fgprof_spans_count(const fgprof_spans *spans)
{
    return spans->count;
}

int fgprof_spans_get(const fgprof_spans *spans, size_t number, struct fgprof_span *ret_row,
                     size_t bytes)
{
    if (number >= spans->count)
        return -ERANGE;
    sized_copy(ret_row, bytes, &spans->rows[number], sizeof *spans->rows);
    return 0;
}

void fgprof_spans_free(fgprof_spans *spans)
{
    if (spans)
        free(spans->rows);
    free(spans);
}

int fgprof_profile_add_root_label(fgprof_profile *profile, const char *key)
{
    if (!*key)
        return -EINVAL;
    if (array_reserve(&profile->root_labels, &profile->root_label_capacity,
                      profile->root_label_count + 1))
        return -ENOMEM;
    char *copy = strdup(key);
    if (!copy)
        return -ENOMEM;
    profile->root_labels[profile->root_label_count++] = copy;
    return 0;
}

int fgprof_profile_set_folded_flags(fgprof_profile *profile, unsigned flags)
{
    if (flags & ~(unsigned)(FGPROF_FOLDED_THREADS | FGPROF_FOLDED_LINES | FGPROF_FOLDED_STATE |
                            FGPROF_FOLDED_PROCESSES | FGPROF_FOLDED_ELAPSED))
        return -EINVAL;
    profile->folded_flags = flags;
    return 0;
}

int fgprof_profile_set_kept(fgprof_profile *profile, enum fgprof_kept kept)
{
    if (kept != FGPROF_KEPT_ALL && kept != FGPROF_KEPT_ON_CPU && kept != FGPROF_KEPT_OFF_CPU)
        return -EINVAL;
    if (kept != FGPROF_KEPT_ALL && profile_is_of_objects(profile))
        return -EINVAL;
    profile->kept = kept;
    return 0;
}

int fgprof_profile_leave_out(fgprof_profile *profile, const char *function)
{
    return profile_leave_out(profile, function);
}

/* Both kinds of heap profiles are of the same samples. */
static int set_objects_kind(fgprof_profile *profile, enum fgprof_kind kind)
{
    bool becomes_heap = kind == FGPROF_KIND_HEAP || kind == FGPROF_KIND_ALLOCS;
    if (kind != profile->kind && !(objects_are_of_heap(profile) && becomes_heap))
        return -EINVAL;
    profile->kind = kind;
    return 0;
}

int fgprof_profile_set_kind(fgprof_profile *profile, enum fgprof_kind kind)
{
    if (profile_is_of_objects(profile))
        return set_objects_kind(profile, kind);
    if ((unsigned)kind > FGPROF_KIND_BLAME || profile->kind != FGPROF_KIND_WALL)
        return -EINVAL;
    return kind == FGPROF_KIND_WALL ? 0 : profile_make_kind(profile, kind);
}

enum fgprof_kind fgprof_profile_kind(const fgprof_profile *profile)
{
    return profile->kind;
}

int fgprof_profile_subtract(const fgprof_profile *after, const fgprof_profile *before,
                            fgprof_profile **ret_difference)
{
    return profile_subtract_objects(after, before, ret_difference);
}

int fgprof_profile_set_times(fgprof_profile *profile, unsigned times)
{
    if (times & ~(unsigned)(FGPROF_TIME_WALL | FGPROF_TIME_CPU | FGPROF_TIME_OFF_CPU))
        return -EINVAL;
    profile->times = times;
    return 0;
}

int fgprof_profile_set_attribute(fgprof_profile *profile, const char *key, const char *value)
{
    return *key ? profile_set_attribute(profile, key, value) : -EINVAL;
}

int fgprof_profile_set_threads(fgprof_profile *profile, enum fgprof_threads threads)
{
    if (threads != FGPROF_THREADS_BY_NAME && threads != FGPROF_THREADS_BY_ID)
        return -EINVAL;
    profile->threads = threads;
    return 0;
}

static int set_text(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

int fgprof_profile_set_command(fgprof_profile *profile, const char *command)
{
    return set_text(&profile->command, command);
}

int fgprof_profile_set_reason(fgprof_profile *profile, const char *reason)
{
    return set_text(&profile->reason, reason);
}

const char *fgprof_profile_reason(const fgprof_profile *profile)
{
    return profile->reason;
}

int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd)
{
    return output_write(profile, format, fd);
}

int fgprof_profile_read(const char *path, fgprof_profile **ret_profile)
{
    return recording_read(path, ret_profile);
}

int fgprof_recording_version(const char *path, unsigned *ret_version)
{
    return recording_read_version(path, ret_version);
}

int fgprof_profile_write_difference(const fgprof_profile *before, const fgprof_profile *after,
                                    enum fgprof_format format, bool is_normalized, int fd)
{
    return output_write_difference(before, after, format, is_normalized, fd);
}

void fgprof_profile_free(fgprof_profile *profile)
{
    profile_free(profile);
}
