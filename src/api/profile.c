/* The functions of fgprof.h for profiles: what was found. */
#include "base/array.h"
#include "profile/critical.h"
#include "profile/function_times.h"
#include "profile/kind.h"
#include "profile/view.h"
#include "profile/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For a struct of the caller that may be older or newer than ours (see "Compatibility" in
 * fgprof.h): copies the fields that both have, and zeroes the rest of the caller's. */
static void sized_copy(void *to, size_t to_bytes, const void *from, size_t from_bytes)
{
    size_t bytes = to_bytes < from_bytes ? to_bytes : from_bytes;
    memcpy(to, from, bytes);
    memset((char *)to + bytes, 0, to_bytes - bytes);
}

/* A later version must not put a new field into padding: an older library would copy its padding
 * there instead of zeroes. */
#define SIZED_ENDS_WITH(type, last)                                                                \
    _Static_assert(offsetof(type, last) + sizeof((type){0}.last) == sizeof(type),                  \
                   "no padding at the end of " #type)

SIZED_ENDS_WITH(struct fgprof_summary, switches_unrecorded);
SIZED_ENDS_WITH(struct fgprof_function, own_ns);
SIZED_ENDS_WITH(struct fgprof_activity, resource);
SIZED_ENDS_WITH(struct fgprof_wait, waker);
SIZED_ENDS_WITH(struct fgprof_span_query, last_ns);
SIZED_ENDS_WITH(struct fgprof_span, waker);
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

/* ---- Tables that are made of a profile: each is counted, read row by row and freed ---- */

#define DEFINE_TABLE(name, row)                                                                    \
    struct name {                                                                                  \
        struct row *rows;                                                                          \
        size_t count;                                                                              \
    };                                                                                             \
                                                                                                   \
    /* Takes a table whose rows were made, or not. */                                              \
    static int name##_give(struct name *table, int err, struct name **ret_table)                   \
    {                                                                                              \
        if (err)                                                                                   \
            free(table);                                                                           \
        else                                                                                       \
            *ret_table = table;                                                                    \
        return err;                                                                                \
    }                                                                                              \
                                                                                                   \
    size_t name##_count(const struct name *table)                                                  \
    {                                                                                              \
        return table->count;                                                                       \
    }                                                                                              \
                                                                                                   \
    int name##_get(const struct name *table, size_t number, struct row *ret_row, size_t bytes)     \
    {                                                                                              \
        if (number >= table->count)                                                                \
            return -ERANGE;                                                                        \
        sized_copy(ret_row, bytes, &table->rows[number], sizeof *table->rows);                     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    void name##_free(struct name *table)                                                           \
    {                                                                                              \
        if (table)                                                                                 \
            free(table->rows);                                                                     \
        free(table);                                                                               \
    }

DEFINE_TABLE(fgprof_functions, fgprof_function)
DEFINE_TABLE(fgprof_activities, fgprof_activity)
DEFINE_TABLE(fgprof_waits, fgprof_wait)
DEFINE_TABLE(fgprof_spans, fgprof_span)

int fgprof_profile_functions(const fgprof_profile *profile, const pid_t *tids, size_t tid_count,
                             fgprof_functions **ret_functions)
{
    fgprof_functions *table = calloc(1, sizeof *table);
    int err =
        table ? profile_functions(profile, tids, tid_count, &table->rows, &table->count) : -ENOMEM;
    return fgprof_functions_give(table, err, ret_functions);
}

int fgprof_profile_activities(const fgprof_profile *profile, fgprof_activities **ret_activities)
{
    fgprof_activities *table = calloc(1, sizeof *table);
    int err = table ? profile_activities(profile, &table->rows, &table->count) : -ENOMEM;
    return fgprof_activities_give(table, err, ret_activities);
}

int fgprof_profile_waits(const fgprof_profile *profile, fgprof_waits **ret_waits)
{
    fgprof_waits *table = calloc(1, sizeof *table);
    int err = table ? profile_waits(profile, &table->rows, &table->count) : -ENOMEM;
    return fgprof_waits_give(table, err, ret_waits);
}

int fgprof_profile_spans(const fgprof_profile *profile, const struct fgprof_span_query *query,
                         size_t query_bytes, fgprof_spans **ret_spans)
{
    struct fgprof_span_query known;
    sized_copy(&known, sizeof known, query, query_bytes);
    fgprof_spans *table = calloc(1, sizeof *table);
    int err = table ? profile_spans(profile, &known, &table->rows, &table->count) : -ENOMEM;
    return fgprof_spans_give(table, err, ret_spans);
}

int fgprof_profile_add_root_label(fgprof_profile *profile, const char *key)
{
    if (!*key)
        return -EINVAL;
    char *copy = strdup(key);
    if (!copy || array_append(&profile->root_labels, &profile->root_label_count,
                              &profile->root_label_capacity, copy)) {
        free(copy);
        return -ENOMEM;
    }
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

int fgprof_profile_set_critical(fgprof_profile *profile, const char *of)
{
    return profile_make_critical(profile, of);
}

enum fgprof_kind fgprof_profile_kind(const fgprof_profile *profile)
{
    return profile->kind;
}

int fgprof_profile_set_times(fgprof_profile *profile, unsigned times)
{
    if (times & ~(unsigned)(FGPROF_TIME_WALL | FGPROF_TIME_CPU | FGPROF_TIME_OFF_CPU))
        return -EINVAL;
    profile->times = times;
    return 0;
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

void fgprof_profile_free(fgprof_profile *profile)
{
    profile_free(profile);
}
