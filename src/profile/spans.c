#include "profile/profile.h"
#include "base/array.h"
#include "profile/kind.h"
#include "profile/place.h"
#include "wait/resource.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct fgprof_profile *profile;
    const struct fgprof_span_query *query;
    regex_t thread_name; /* compiled if the query has one */
    uint64_t after_ns;   /* since 1970: when the last part of the profile's time begins */
    struct places places;
    bool *has_function; /* by stack: whether it has the query's function */
    struct fgprof_span *rows;
    size_t count, capacity;
};

/* The span that the walk along a timeline is in. */
struct open_span {
    bool is_open;
    uint64_t begin_ns, end_ns; /* since 1970 */
    uint64_t longest_run_ns;
    uint32_t sample; /* of that run */
};

/* Searches each stack once, because many runs share it. */
static int find_function(struct search *search)
{
    const struct fgprof_profile *profile = search->profile;
    search->has_function = calloc(profile->stack_count + 1, sizeof *search->has_function);
    if (!search->has_function)
        return -ENOMEM;
    for (size_t i = 0; i < profile->stack_count; i++)
        search->has_function[i] =
            stack_has_function(profile, &profile->stacks[i], search->query->function, false);
    return 0;
}

/* As in count/elapsed.h: a wait for a thread to exit is not a wait for a lock. */
static bool is_blocked(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    const struct profile_wait *wait = sample_wait(profile, sample);
    if (sample->state == THREAD_UNINTERRUPTIBLE)
        return true;
    return wait && sample->state == THREAD_SLEEPING && wait->owner_process != PROFILE_NO_OWNER &&
           profile_wait_is_for_threads(profile, wait) &&
           strcmp(strings_get(&profile->strings, wait->kind),
                  resource_kind_name(RESOURCE_THREAD)) != 0;
}

static bool matches(const struct search *search, const struct profile_sample *sample)
{
    return (!search->has_function || search->has_function[sample->stack]) &&
           (!search->query->is_blocked || is_blocked(search->profile, sample));
}

/* The name of the stack's place, or of the nearest caller that has one. */
static const char *place_name(struct places *places, uint32_t number)
{
    const struct fgprof_profile *profile = places->profile;
    const struct profile_stack *stack = &profile->stacks[number];
    struct frame_walk walk = {0};
    struct profile_frame frame;
    size_t nearer = place_of_stack(places, stack, &frame);
    for (size_t i = 0; frame_next_from_leaf(profile, stack, &walk, &frame); i++) {
        if (i >= nearer && frame.line && !frame.location->is_note)
            return strings_get(&profile->strings, profile->functions[frame.line->function].name);
    }
    return NULL;
}

/* What it waited for, and the owner of that. */
static void add_wait(struct search *search, const struct profile_sample *sample,
                     struct fgprof_span *row)
{
    const struct fgprof_profile *profile = search->profile;
    const struct profile_wait *wait = sample_wait(profile, sample);
    if (!wait)
        return;
    row->resource = strings_get(&profile->strings, wait->resource);
    if (wait->waker)
        row->waker = strings_get(&profile->strings, wait->waker);
    if (wait->owner_process == PROFILE_NO_OWNER)
        return;
    row->owner = strings_get(&profile->strings, wait->owner_name);
    row->owner_tid = (pid_t)wait->owner_tid;
    if (wait->owner_stack != PROFILE_NO_STACK)
        row->owner_function = place_name(&search->places, wait->owner_stack);
}

static int close_span(struct search *search, const struct profile_timeline *timeline,
                      struct open_span *span)
{
    const struct fgprof_profile *profile = search->profile;
    bool is_wanted = span->is_open && span->end_ns - span->begin_ns >= search->query->least_ns &&
                     span->end_ns >= search->after_ns;
    span->is_open = false;
    if (!is_wanted)
        return 0;
    const struct profile_sample *sample = &profile->samples[span->sample];
    struct fgprof_span row = {
        .pid = sample->process < profile->process_count
                   ? (pid_t)profile->processes[sample->process].pid
                   : 0,
        .tid = (pid_t)timeline->tid,
        .thread_name = strings_get(&profile->strings, timeline->thread_name),
        .function = place_name(&search->places, sample->stack),
        .begin_ns = span->begin_ns,
        .time_ns = span->end_ns - span->begin_ns,
    };
    add_wait(search, sample, &row);
    return array_append(&search->rows, &search->count, &search->capacity, row);
}

static void extend(struct open_span *span, const struct profile_run *run, uint64_t at_ns)
{
    if (!span->is_open)
        *span = (struct open_span){.is_open = true, .begin_ns = at_ns};
    span->end_ns = at_ns + run->time_ns;
    if (run->time_ns >= span->longest_run_ns) {
        span->longest_run_ns = run->time_ns;
        span->sample = run->sample;
    }
}

static int walk(struct search *search, const struct profile_timeline *timeline)
{
    const struct fgprof_profile *profile = search->profile;
    struct open_span span = {0};
    uint64_t at_ns = profile->start_time_ns + timeline->begin_ns;
    int err = 0;
    for (size_t i = 0; i < timeline->run_count && !err; i++) {
        const struct profile_run *run = &profile->runs[timeline->first_run + i];
        const struct profile_sample *sample =
            run->sample == PROFILE_NO_SAMPLE ? NULL : &profile->samples[run->sample];
        bool is_known = sample && sample->state != THREAD_UNKNOWN;
        if (is_known && matches(search, sample))
            extend(&span, run, at_ns);
        else if (is_known)
            err = close_span(search, timeline, &span);
        at_ns += run->time_ns;
    }
    return err ? err : close_span(search, timeline, &span);
}

static bool is_of_thread(const struct search *search, const struct profile_timeline *timeline)
{
    const char *name = strings_get(&search->profile->strings, timeline->thread_name);
    return !search->query->thread_name || regexec(&search->thread_name, name, 0, NULL, 0) == 0;
}

static int compare(const void *a, const void *b)
{
    const struct fgprof_span *left = a, *right = b;
    int order = ORDER(right->time_ns, left->time_ns);
    return order ? order : ORDER(left->begin_ns, right->begin_ns);
}

int profile_spans(const struct fgprof_profile *profile, const struct fgprof_span_query *query,
                  struct fgprof_span **ret_rows, size_t *ret_count)
{
    struct search search = {.profile = profile, .query = query};
    if (!profile->has_timelines)
        return -ENODATA;
    if (query->thread_name &&
        regcomp(&search.thread_name, query->thread_name, REG_EXTENDED | REG_NOSUB))
        return -EINVAL;
    uint64_t elapsed_ns = profile->summary.elapsed_ns;
    if (query->last_ns && query->last_ns < elapsed_ns)
        search.after_ns = profile->start_time_ns + elapsed_ns - query->last_ns;
    int err = places_init(&search.places, profile);
    if (!err && query->function)
        err = find_function(&search);
    for (size_t i = 0; i < profile->timeline_count && !err; i++) {
        if (is_of_thread(&search, &profile->timelines[i]))
            err = walk(&search, &profile->timelines[i]);
    }
    if (query->thread_name)
        regfree(&search.thread_name);
    free(search.has_function);
    places_free(&search.places);
    if (err) {
        free(search.rows);
        return err;
    }
    array_sort(search.rows, search.count, compare);
    *ret_rows = search.rows;
    *ret_count = search.count;
    return 0;
}
