#include "profile/critical.h"
#include "base/buffer.h"
#include "base/upper_bound.h"
#include "profile/place.h"
#include "wait/resource.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most threads in a path. */
#define CHAIN_MAX 16
/* What is beyond these is not followed: pieces of time in all, and distinct paths. */
#define STEPS_MAX (64u << 20)
#define PATHS_MAX (1u << 20)

/* ---- Paths ---- */

enum path_end {
    END_NONE,    /* the path continues with the thread that it waits for */
    END_HERE,    /* the thread did not wait */
    END_FOR_CPU, /* it waited for a CPU: no thread that is seen had that at that tick */
    END_CAUSE,   /* what ended its wait is no thread that is sampled */
    END_ABSENT,  /* ... or a thread that was not seen at that tick */
    END_UNKNOWN, /* its wait has not ended, or it is not known what ended it */
    END_CIRCLE,  /* it waited for a thread that is in the path already */
    END_TOO_LONG,
    END_NO_PLACE, /* it is not known where it was: its sample only shows which thread it is */
};

/* A thread's sample after those of the threads that waited for it. Without padding. */
struct path {
    uint32_t parent_plus_1; /* 0: it is of the thread whose path it is */
    uint32_t sample;
    uint32_t end;
    uint32_t is_inferred;
    uint64_t ticks; /* of paths that end here */
};

/* A timeline's place among those of all ids. */
struct thread_key {
    uint64_t key; /* its id, and then its first tick */
    uint32_t timeline;
};

struct search {
    struct fgprof_profile *profile;
    uint64_t *ticks_before;  /* by tick run: the ticks of all runs before it in the table */
    uint32_t *samples;       /* by timeline: one of its samples; PROFILE_NO_SAMPLE: it has none */
    struct thread_key *keys; /* sorted */
    bool *is_wanted;         /* by sample; NULL: all are */
    uint32_t chain[CHAIN_MAX];
    uint64_t steps;
    struct path *paths;
    size_t path_count, path_capacity;
    struct index path_index;
    struct profile_critical found;
};

/* A part of the time of a thread that the path has come to. */
struct step {
    uint32_t timeline;
    uint32_t process;       /* of what ended the wait */
    uint32_t parent_plus_1; /* the path of the thread that waits for it */
    uint64_t begin, end;    /* ticks */
    unsigned depth;
    bool has_cpu;     /* its thread is to be the one that had the CPU, */
    bool is_inferred; /* or something before it is not known for that tick */
};

static bool is_off_cpu(const struct profile_sample *sample)
{
    return sample->state == THREAD_SLEEPING || sample->state == THREAD_UNINTERRUPTIBLE ||
           sample->state == THREAD_RUNNABLE;
}

static const struct profile_wait *wait_of(const struct fgprof_profile *profile,
                                          const struct profile_sample *sample)
{
    return is_off_cpu(sample) && sample->wait_plus_1 ? &profile->waits[sample->wait_plus_1 - 1]
                                                     : NULL;
}

/* The thread that the sample's thread waits for: the one that ended the wait or, if that is
 * unknown, the owner of the resource; for a wait for a CPU, the thread that had the CPU. Returns
 * how the path ends if there is none. */
static enum path_end next_thread(const struct fgprof_profile *profile,
                                 const struct profile_sample *sample, uint32_t *ret_tid,
                                 uint32_t *ret_process)
{
    const struct profile_wait *wait = wait_of(profile, sample);
    if (!is_off_cpu(sample))
        return END_HERE;
    if (wait && wait->waker_process_plus_1 && wait->waker_tid) {
        *ret_tid = wait->waker_tid;
        *ret_process = wait->waker_process_plus_1 - 1;
        return END_NONE;
    }
    if (wait && wait->waker)
        return END_CAUSE;
    if (!wait || wait->owner_process == PROFILE_NO_OWNER || !wait->owner_tid)
        return sample->state == THREAD_RUNNABLE ? END_FOR_CPU : END_UNKNOWN;
    *ret_tid = wait->owner_tid;
    *ret_process = wait->owner_process;
    return END_NONE;
}

static int intern_path(struct search *search, const struct path *path, uint32_t *ret_number)
{
    return INDEX_INTERN(&search->path_index, offsetof(struct path, ticks), path, &search->paths,
                        &search->path_count, &search->path_capacity, ret_number);
}

/* Whether the thread whose path it is waited. */
static bool is_of_wait(const struct path *path)
{
    return path->parent_plus_1 || (path->end >= END_FOR_CPU && path->end != END_NO_PLACE);
}

/* If there are too many paths, the time goes to the thread whose path it is. */
static int add_ticks(struct search *search, const struct path *path, uint64_t ticks)
{
    struct path kept = *path;
    struct profile_critical *found = &search->found;
    uint32_t number;
    while (search->path_count >= PATHS_MAX && kept.parent_plus_1) {
        kept = search->paths[kept.parent_plus_1 - 1];
        kept.end = END_TOO_LONG;
        kept.ticks = 0;
    }
    int err = intern_path(search, &kept, &number);
    if (err)
        return err;
    search->paths[number].ticks += ticks;
    found->ticks += ticks;
    found->waited += is_of_wait(&kept) ? ticks : 0;
    found->inferred += kept.is_inferred ? ticks : 0;
    found->unknown += kept.end >= END_UNKNOWN ? ticks : 0;
    return 0;
}

/* Ends the path at the thread that waited, because the next one is unknown, or it does not have the
 * CPU: a CPU's user is known for one tick, which stands for all ticks of a wait. */
static int add_waiter(struct search *search, const struct step *step, bool is_inferred)
{
    const struct path *waiter = &search->paths[step->parent_plus_1 - 1];
    const struct path path = {waiter->parent_plus_1, waiter->sample,
                              step->has_cpu ? END_FOR_CPU : END_ABSENT, is_inferred, 0};
    return add_ticks(search, &path, step->end - step->begin);
}

/* ---- Following ---- */

static uint64_t ticks_until(const struct search *search, const struct profile_timeline *timeline,
                            size_t run)
{
    return timeline->first_tick + search->ticks_before[run] -
           search->ticks_before[timeline->first_tick_run];
}

static uint64_t end_tick(const struct search *search, const struct profile_timeline *timeline)
{
    return ticks_until(search, timeline, timeline->first_tick_run + timeline->tick_run_count);
}

/* The timeline of the thread that has the id at that tick; UINT32_MAX: none. Sets *ret_until to the
 * tick at which that changes, at most `until`. */
static uint32_t find_thread(const struct search *search, uint32_t tid, uint64_t tick,
                            uint64_t until, uint64_t *ret_until)
{
    const struct thread_key *keys = search->keys;
    size_t count = search->profile->timeline_count;
    uint64_t key = (uint64_t)tid << 32 | (tick < UINT32_MAX ? tick : UINT32_MAX);
    size_t after = UPPER_BOUND(keys, count, key, key);
    *ret_until = until;
    if (after && keys[after - 1].key >> 32 == tid) {
        uint32_t number = keys[after - 1].timeline;
        uint64_t end = end_tick(search, &search->profile->timelines[number]);
        if (tick < end) {
            *ret_until = end < until ? end : until;
            return number;
        }
    }
    if (after < count && keys[after].key >> 32 == tid && (uint32_t)keys[after].key < until)
        *ret_until = (uint32_t)keys[after].key;
    return UINT32_MAX;
}

static int walk(struct search *search, const struct step *step);

static bool is_in_chain(const struct search *search, unsigned depth, uint32_t timeline)
{
    for (unsigned i = 0; i <= depth; i++) {
        if (search->chain[i] == timeline)
            return true;
    }
    return false;
}

/* Goes on with the thread that the one at the sample waits for. */
static int follow(struct search *search, const struct step *step, uint32_t sample, uint32_t tid)
{
    struct path path = {.parent_plus_1 = step->parent_plus_1, .sample = sample};
    struct step next = *step;
    int err = 0;
    next.has_cpu = search->profile->samples[sample].state == THREAD_RUNNABLE;
    for (uint64_t tick = step->begin; tick < step->end && !err; tick = next.end) {
        next.begin = tick;
        next.timeline = find_thread(search, tid, tick, step->end, &next.end);
        path.end = next.timeline == UINT32_MAX                       ? END_ABSENT
                   : is_in_chain(search, step->depth, next.timeline) ? END_CIRCLE
                   : step->depth + 1 == CHAIN_MAX                    ? END_TOO_LONG
                   : search->steps >= STEPS_MAX                      ? END_TOO_LONG
                   : search->path_count >= PATHS_MAX                 ? END_TOO_LONG
                                                                     : END_NONE;
        path.is_inferred = path.end != END_NONE && (step->is_inferred || path.end == END_CIRCLE);
        if (next.has_cpu && path.end != END_NONE)
            path.end = END_FOR_CPU;
        if (path.end != END_NONE) {
            err = add_ticks(search, &path, next.end - tick);
            continue;
        }
        err = intern_path(search, &path, &next.parent_plus_1);
        next.parent_plus_1++;
        next.depth = step->depth + 1;
        if (!err)
            err = walk(search, &next);
    }
    return err;
}

/* A sample that the thread was in: it shows which thread it is. */
static uint32_t sample_of(const struct fgprof_profile *profile,
                          const struct profile_timeline *timeline)
{
    for (size_t i = 0; i < timeline->tick_run_count; i++) {
        uint32_t sample = profile->tick_runs[timeline->first_tick_run + i].sample;
        if (sample != PROFILE_NO_SAMPLE)
            return sample;
    }
    return PROFILE_NO_SAMPLE;
}

/* The thread spends all of the step's ticks in this run. */
static int walk_run(struct search *search, const struct step *step,
                    const struct profile_tick_run *run)
{
    const struct fgprof_profile *profile = search->profile;
    bool is_unknown = run->sample == PROFILE_NO_SAMPLE;
    struct path path = {.parent_plus_1 = step->parent_plus_1,
                        .sample = run->sample,
                        .end = END_NO_PLACE,
                        .is_inferred = step->is_inferred};
    uint32_t tid, process;
    if (is_unknown)
        path.sample = search->samples[step->timeline];
    bool is_other =
        path.sample == PROFILE_NO_SAMPLE || profile->samples[path.sample].process != step->process;
    if (step->depth && is_other)
        return add_waiter(search, step, step->is_inferred);
    if (step->has_cpu && !is_unknown && profile->samples[run->sample].state != THREAD_RUNNING)
        return add_waiter(search, step, true);
    if (!step->depth && (path.sample == PROFILE_NO_SAMPLE ||
                         (search->is_wanted && (is_unknown || !search->is_wanted[run->sample]))))
        return 0;
    if (!is_unknown)
        path.end = next_thread(profile, &profile->samples[run->sample], &tid, &process);
    if (path.end != END_NONE)
        return add_ticks(search, &path, step->end - step->begin);
    struct step next = *step;
    next.process = process;
    return follow(search, &next, run->sample, tid);
}

/* The step's part of its thread's time, run by run. */
static int walk(struct search *search, const struct step *step)
{
    const struct fgprof_profile *profile = search->profile;
    const struct profile_timeline *timeline = &profile->timelines[step->timeline];
    const uint64_t *before = &search->ticks_before[timeline->first_tick_run];
    uint64_t begin = step->begin - timeline->first_tick + *before;
    size_t first = upper_bound(before, timeline->tick_run_count, sizeof *before, 0, 8, begin);
    int err = 0;
    search->chain[step->depth] = step->timeline;
    for (size_t i = first ? first - 1 : 0; i < timeline->tick_run_count && !err; i++) {
        const struct profile_tick_run *run = &profile->tick_runs[timeline->first_tick_run + i];
        uint64_t run_begin = ticks_until(search, timeline, timeline->first_tick_run + i);
        uint64_t run_end = run_begin + run->ticks;
        struct step part = *step;
        search->steps++;
        part.begin = run_begin > step->begin ? run_begin : step->begin;
        part.end = run_end < step->end ? run_end : step->end;
        part.is_inferred = step->is_inferred || run->is_inferred;
        if (run_begin >= step->end)
            break;
        if (part.begin < part.end)
            err = walk_run(search, &part, run);
    }
    return err;
}

/* ---- Which threads ---- */

static bool is_of(const struct fgprof_profile *profile, const struct profile_timeline *timeline,
                  const char *of)
{
    const char *name = strings_get(&profile->strings, timeline->thread_name);
    size_t length = strlen(name);
    char id[16];
    snprintf(id, sizeof id, "%" PRIu32, timeline->tid);
    return strcmp(of, name) == 0 || strcmp(of, id) == 0 ||
           (strncmp(of, name, length) == 0 && of[length] == '/' &&
            strcmp(of + length + 1, id) == 0);
}

/* Marks the samples with the label "KEY=VALUE". Returns NULL if memory is short. */
static bool *find_labelled(const struct fgprof_profile *profile, const char *of)
{
    bool *is_labelled = calloc(profile->sample_count + 1, sizeof *is_labelled);
    size_t length = strcspn(of, "=");
    for (size_t i = 0; i < profile->sample_count && is_labelled; i++) {
        const struct profile_label *label;
        for (uint32_t j = 0; (label = sample_label(profile, &profile->samples[i], j)); j++) {
            const char *key = strings_get(&profile->strings, label->key);
            const char *value = strings_get(&profile->strings, label->value);
            is_labelled[i] |= strlen(key) == length && strncmp(key, of, length) == 0 &&
                              strcmp(value, of + length + 1) == 0;
        }
    }
    return is_labelled;
}

static int walk_all(struct search *search, const char *of)
{
    const struct fgprof_profile *profile = search->profile;
    int err = 0;
    if (strchr(of, '=')) {
        search->is_wanted = find_labelled(profile, of);
        err = search->is_wanted ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < profile->timeline_count && !err; i++) {
        const struct profile_timeline *timeline = &profile->timelines[i];
        const struct step step = {.timeline = (uint32_t)i,
                                  .begin = timeline->first_tick,
                                  .end = end_tick(search, timeline)};
        if (timeline->tick_run_count && (search->is_wanted || is_of(profile, timeline, of)))
            err = walk(search, &step);
    }
    return err || search->found.ticks ? err : -ENOENT;
}

static int compare_keys(const void *a, const void *b)
{
    const struct thread_key *left = a, *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

static int prepare(struct search *search)
{
    const struct fgprof_profile *profile = search->profile;
    search->ticks_before = calloc(profile->tick_run_count + 1, sizeof *search->ticks_before);
    search->keys = calloc(profile->timeline_count + 1, sizeof *search->keys);
    search->samples = calloc(profile->timeline_count + 1, sizeof *search->samples);
    if (!search->ticks_before || !search->keys || !search->samples)
        return -ENOMEM;
    for (size_t i = 0; i < profile->tick_run_count; i++)
        search->ticks_before[i + 1] = search->ticks_before[i] + profile->tick_runs[i].ticks;
    for (size_t i = 0; i < profile->timeline_count; i++) {
        const struct profile_timeline *timeline = &profile->timelines[i];
        search->keys[i] =
            (struct thread_key){(uint64_t)timeline->tid << 32 | timeline->first_tick, (uint32_t)i};
        search->samples[i] = sample_of(profile, timeline);
    }
    if (profile->timeline_count)
        qsort(search->keys, profile->timeline_count, sizeof *search->keys, compare_keys);
    return 0;
}

/* ---- What it looks like ---- */

/* The name of what ended the sample's wait, or of the owner. */
static const char *name_of_next(const struct fgprof_profile *profile,
                                const struct profile_sample *sample)
{
    const struct profile_wait *wait = wait_of(profile, sample);
    uint32_t name = !wait ? 0 : wait->waker ? wait->waker : wait->owner_name;
    return *strings_get(&profile->strings, name) ? strings_get(&profile->strings, name)
                                                 : "[unnamed]";
}

/* "waits for a CPU", "waits for a CPU used by compress in backup/991", "waits for an idle CPU". An
 * owner is named like any other thread. */
static void append_for_cpu(struct buffer *text, const struct fgprof_profile *profile,
                           const struct profile_sample *waiter)
{
    const struct profile_wait *wait = wait_of(profile, waiter);
    const char *cpu = resource_kind_name(RESOURCE_CPU);
    bool has_owner = wait && wait->owner_process != PROFILE_NO_OWNER;
    if (wait && !has_owner)
        cpu = strings_get(&profile->strings, wait->resource);
    buffer_print(text, "waits for %s %s", strcmp(cpu, CPU_IDLE) == 0 ? "an" : "a", cpu);
    if (has_owner)
        buffer_print(text, " used by %s", name_of_next(profile, waiter));
}

/* Pushes the text in brackets, and frees it. */
static void push_text(struct made_stack *made, struct buffer *text)
{
    if (!made->error)
        made->error = text->error;
    made_stack_push_note(made, "[%s]", text->bytes);
    buffer_free(text);
}

/* "[waits for worker]", or "[waits for worker of server]" in another process of another name. */
static void push_next(struct made_stack *made, const struct profile_sample *waiter,
                      const struct profile_sample *next)
{
    const struct fgprof_profile *profile = made->profile;
    struct buffer text = {0};
    const char *name = name_of_next(profile, waiter);
    const char *process =
        next->process < profile->process_count
            ? strings_get(&profile->strings, profile->processes[next->process].name)
            : "";
    bool is_in_other = next->process != waiter->process && *process && strcmp(process, name) != 0;
    if (waiter->state == THREAD_RUNNABLE)
        append_for_cpu(&text, profile, waiter);
    else
        buffer_print(&text, "waits for %s", name);
    if (is_in_other)
        buffer_print(&text, " of %s", process);
    push_text(made, &text);
}

/* How the path ends, unless its last sample tells. The caller frees it. */
static void append_end(struct buffer *text, const struct fgprof_profile *profile,
                       const struct path *path)
{
    static const char *const texts[] = {
        [END_HERE] = "",
        [END_CAUSE] = "ended by %s",
        [END_ABSENT] = "ended by %s",
        [END_UNKNOWN] = "waker not known",
        [END_CIRCLE] = "waits in a circle",
        [END_TOO_LONG] = "not followed",
        [END_NO_PLACE] = "place not known",
    };
    const struct profile_sample *last = &profile->samples[path->sample];
    if (path->end == END_FOR_CPU)
        append_for_cpu(text, profile, last);
    else
        buffer_print(text, texts[path->end], name_of_next(profile, last));
}

static void push_end(struct made_stack *made, const struct path *path)
{
    struct buffer text = {0};
    if (path->is_inferred)
        made_stack_push_note(made, "[inferred]");
    if (path->end == END_HERE)
        return;
    append_end(&text, made->profile, path);
    push_text(made, &text);
}

/* Makes the path's sample: the stacks of its threads on top of each other, with the first thread's
 * name and the last thread's state. */
static int make_sample(struct made_stack *made, const struct search *search,
                       const struct path *path, struct profile_sample *ret_sample)
{
    const struct fgprof_profile *profile = made->profile;
    const struct profile_sample *last = &profile->samples[path->sample];
    struct profile_sample sample = *last;
    made->count = 0;
    push_end(made, path);
    if (path->end != END_NO_PLACE)
        made_stack_push_stack(made, last->stack);
    for (uint32_t parent = path->parent_plus_1; parent && !made->error;) {
        const struct path *waiter = &search->paths[parent - 1];
        const struct profile_sample *first = &profile->samples[waiter->sample];
        push_next(made, first, last);
        made_stack_push_stack(made, first->stack);
        parent = waiter->parent_plus_1;
        last = first;
    }
    if (path->end == END_NO_PLACE) {
        sample.state = THREAD_UNKNOWN;
        sample.syscall_name = sample.wait_channel = 0;
    }
    sample.process = last->process;
    sample.thread_name = last->thread_name;
    sample.tid = last->tid;
    sample.goroutine = last->goroutine;
    sample.never_moved = last->never_moved;
    sample.label_set_plus_1 = last->label_set_plus_1;
    sample.wait_plus_1 = 0;
    sample.sleeps = sample.elapsed_ns = 0;
    sample.count = path->ticks;
    sample.time_ns = path->ticks * profile->period_ns;
    *ret_sample = sample;
    return made_stack_add(made, &ret_sample->stack);
}

/* ---- In words ---- */

struct ends {
    struct places places;
    struct critical_end *rows;
    size_t count, capacity;
    struct index index;
};

static void append_frame(struct buffer *text, const struct fgprof_profile *profile,
                         const struct profile_frame *frame)
{
    if (frame->line)
        buffer_puts(text,
                    strings_get(&profile->strings, profile->functions[frame->line->function].name));
    else
        frame_append_unnamed(text, profile, frame->location, false);
}

/* ", in main > query": the stack's place, after its caller. */
static void append_place(struct buffer *text, struct places *places, uint32_t number)
{
    const struct fgprof_profile *profile = places->profile;
    const struct profile_stack *stack = &profile->stacks[number];
    struct frame_walk walk = {0};
    struct profile_frame place, caller;
    size_t nearer = place_of_stack(places, stack, &place), i = 0;
    if (nearer == PLACE_NONE)
        return;
    while (i <= nearer + 1 && frame_next_from_leaf(profile, stack, &walk, &caller))
        i++;
    buffer_puts(text, ", in ");
    if (i == nearer + 2) {
        append_frame(text, profile, &caller);
        buffer_puts(text, " > ");
    }
    append_frame(text, profile, &place);
}

/* "backend, in main > query: ended by timer" */
static int name_end(struct fgprof_profile *profile, struct ends *ends, const struct path *path,
                    uint32_t *ret_text)
{
    const struct profile_sample *sample = &profile->samples[path->sample];
    struct buffer text = {0};
    buffer_puts(&text, strings_get(&profile->strings, sample->thread_name));
    if (path->end != END_NO_PLACE)
        append_place(&text, &ends->places, sample->stack);
    buffer_puts(&text, path->end == END_HERE ? "" : ": ");
    append_end(&text, profile, path);
    int err = text.error ? text.error : strings_intern(&profile->strings, text.bytes, ret_text);
    buffer_free(&text);
    return err;
}

static int add_end(struct fgprof_profile *profile, struct ends *ends, const struct path *path)
{
    struct critical_end row = {0};
    uint32_t number;
    int err = name_end(profile, ends, path, &row.text);
    if (!err)
        err = INDEX_INTERN(&ends->index, sizeof row.text, &row, &ends->rows, &ends->count,
                           &ends->capacity, &number);
    if (!err)
        ends->rows[number].ticks += path->ticks;
    return err;
}

static int compare_ends(const void *a, const void *b)
{
    const struct critical_end *left = a, *right = b;
    if (left->ticks != right->ticks)
        return left->ticks > right->ticks ? -1 : 1;
    return (left->text > right->text) - (left->text < right->text);
}

/* Finds where most of the time that was waited for was spent. */
static int find_ends(struct fgprof_profile *profile, const struct search *search,
                     struct profile_critical *critical)
{
    struct ends ends = {0};
    int err = places_init(&ends.places, profile);
    for (size_t i = 0; i < search->path_count && !err; i++) {
        const struct path *path = &search->paths[i];
        if (path->ticks && is_of_wait(path))
            err = add_end(profile, &ends, path);
    }
    if (ends.count && !err)
        qsort(ends.rows, ends.count, sizeof *ends.rows, compare_ends);
    for (size_t i = 0; i < ends.count && i < CRITICAL_ENDS && !err; i++)
        critical->ends[i] = ends.rows[i];
    places_free(&ends.places);
    index_free(&ends.index);
    free(ends.rows);
    return err;
}

/* ---- All of it ---- */

/* Only the samples of `made` are used. */
static int make_samples(struct fgprof_profile *profile, const struct search *search,
                        struct fgprof_profile *made)
{
    struct made_stack stack = {.profile = profile};
    int err = 0;
    for (size_t i = 0; i < search->path_count && !err; i++) {
        struct profile_sample sample;
        if (!search->paths[i].ticks)
            continue;
        err = make_sample(&stack, search, &search->paths[i], &sample);
        if (!err)
            err = profile_add_sample(made, &sample, NULL);
    }
    free(stack.locations);
    return err;
}

static int make(struct fgprof_profile *profile, struct search *search, const char *of)
{
    struct fgprof_profile made = {0};
    struct profile_critical critical = search->found;
    int err = find_ends(profile, search, &critical);
    if (!err)
        err = make_samples(profile, search, &made);
    critical.of = err ? NULL : strdup(of);
    if (!critical.of) {
        free(made.samples);
        index_free(&made.sample_index);
        return err ? err : -ENOMEM;
    }
    profile_replace_samples(profile, &made);
    profile->has_elapsed = profile->has_sleeps = false;
    profile->parallel_count = 0;
    profile->critical = critical;
    profile->summary.critical_ns = critical.ticks * profile->period_ns;
    profile->summary.critical_waited_ns = critical.waited * profile->period_ns;
    profile->summary.critical_inferred_ns = critical.inferred * profile->period_ns;
    profile->summary.critical_unknown_ns = critical.unknown * profile->period_ns;
    return 0;
}

int profile_make_critical(struct fgprof_profile *profile, const char *of)
{
    struct search search = {.profile = profile};
    if (profile->kind != FGPROF_KIND_WALL || profile->critical.of)
        return -EINVAL;
    if (!profile->tick_run_count)
        return -ENODATA;
    int err = prepare(&search);
    if (!err)
        err = walk_all(&search, of);
    if (!err)
        err = make(profile, &search, of);
    free(search.ticks_before);
    free(search.keys);
    free(search.samples);
    free(search.is_wanted);
    free(search.paths);
    index_free(&search.path_index);
    return err;
}
