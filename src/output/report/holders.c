/* The resources that cost the most waiting time, with their owners, and where owners and waiters
 * mostly were. */
#include "output/report/report.h"
#include "base/array.h"
#include "profile/kind.h"
#include "wait/resource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A thread that held a resource while others waited for it, or ended their waits. */
struct holder {
    uint32_t resource, process, name;
    bool is_for_threads;
    uint64_t time_ns;
};

/* A node where a holder or its waiters were. */
struct place {
    uint32_t holder, node;
    uint64_t is_owners; /* not its waiters */
    uint64_t time_ns;
};

struct search {
    struct report *report;
    struct report_holds
        *holds; /* what is looked for: those of the report that are held, or woken, or CPUs */
    struct labelled_stack labelled;
    struct call_tree trees[2]; /* of the waiters and of the owners */
    struct holder *holders;
    size_t holder_count, holder_capacity;
    struct index holder_index;
    struct place *places;
    size_t place_count, place_capacity;
    struct index place_index;
};

static int count_holder(struct search *search, const struct profile_wait *wait, uint64_t time_ns,
                        uint32_t *ret_holder)
{
    bool is_waker = search->holds == &search->report->woken;
    const struct holder holder = {
        .resource = wait->resource,
        .process = is_waker ? wait->waker_process_plus_1 - 1 : wait->owner_process,
        .name = is_waker ? wait->waker : wait->owner_name,
        .is_for_threads = is_waker || profile_wait_is_for_threads(search->report->profile, wait) ||
                          (search->holds == &search->report->cpus && wait->owner_name),
    };
    int err =
        INDEX_INTERN(&search->holder_index, offsetof(struct holder, is_for_threads), &holder,
                     &search->holders, &search->holder_count, &search->holder_capacity, ret_holder);
    if (!err)
        search->holders[*ret_holder].time_ns += time_ns;
    return err;
}

/* Cuts the stack at its call of the C library, because the place within that does not matter. */
static int count_place(struct search *search, uint32_t holder, bool is_owners, uint32_t stack,
                       uint64_t time_ns)
{
    const struct fgprof_profile *profile = search->report->profile;
    struct labelled_stack *labelled = &search->labelled;
    struct place place = {.holder = holder, .is_owners = is_owners};
    int err = labels_of_stack(&search->report->labels, profile, &profile->stacks[stack], labelled);
    if (!err)
        err = call_tree_add(&search->trees[is_owners], labelled->labels, labelled->program_depth,
                            time_ns, &place.node);
    if (err)
        return err;
    uint32_t number;
    err = INDEX_INTERN(&search->place_index, offsetof(struct place, time_ns), &place,
                       &search->places, &search->place_count, &search->place_capacity, &number);
    if (!err)
        search->places[number].time_ns += time_ns;
    return err;
}

static bool is_for(const struct fgprof_profile *profile, const struct profile_wait *wait,
                   enum resource_kind kind)
{
    return profile_wait_is_one_of(profile, wait, &kind, 1);
}

/* The stack of the thread that held the resource, or ended the wait; PROFILE_NO_STACK: not known.
 * Returns false if the wait does not match the search. */
static bool find_stack(const struct search *search, const struct profile_wait *wait,
                       uint32_t *ret_stack)
{
    const struct fgprof_profile *profile = search->report->profile;
    bool has_owner = wait->owner_process != PROFILE_NO_OWNER;
    bool is_for_cpu = is_for(profile, wait, RESOURCE_CPU);
    *ret_stack = wait->owner_stack;
    if (is_for_cpu || search->holds == &search->report->cpus)
        return is_for_cpu && search->holds == &search->report->cpus;
    /* A thread that others join holds nothing up. */
    if (search->holds == &search->report->held)
        return has_owner && !is_for(profile, wait, RESOURCE_THREAD);
    *ret_stack = wait->waker_stack_plus_1 ? wait->waker_stack_plus_1 - 1 : PROFILE_NO_STACK;
    return !has_owner && wait->waker_process_plus_1;
}

static int count_samples(struct search *search)
{
    const struct fgprof_profile *profile = search->report->profile;
    int err = 0;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        uint32_t holder, stack, wait_plus_1 = sample->wait_plus_1;
        const struct profile_wait *wait = wait_plus_1 ? &profile->waits[wait_plus_1 - 1] : NULL;
        if (!wait || !find_stack(search, wait, &stack) || !profile_keeps(profile, sample))
            continue;
        search->holds->time_ns += sample->time_ns;
        err = count_holder(search, wait, sample->time_ns, &holder);
        if (!err)
            err = count_place(search, holder, false, sample->stack, sample->time_ns);
        if (!err && stack != PROFILE_NO_STACK)
            err = count_place(search, holder, true, stack, sample->time_ns);
    }
    return err;
}

/* The path to the place with the most time; "": none is known. */
static int find_path(const struct search *search, uint32_t holder, bool is_owners, char **ret_path)
{
    const struct place *most = NULL;
    struct buffer path = {0};
    for (size_t i = 0; i < search->place_count; i++) {
        const struct place *place = &search->places[i];
        if (place->holder == holder && place->is_owners == is_owners &&
            (!most || place->time_ns > most->time_ns))
            most = place;
    }
    buffer_puts(&path, "");
    if (most)
        call_tree_append_path(&path, &search->trees[is_owners], most->node,
                              &search->report->labels);
    *ret_path = path.bytes;
    return path.error;
}

/* Takes the holders with the most time, equal ones in their order. */
static int choose(struct search *search)
{
    struct report_holds *holds = search->holds;
    uint32_t chosen[REPORT_HOLDS_MAX];
    for (uint32_t i = 0; i < search->holder_count; i++) {
        size_t at = holds->count;
        while (at && search->holders[chosen[at - 1]].time_ns < search->holders[i].time_ns)
            at--;
        array_place(chosen, &holds->count, REPORT_HOLDS_MAX, at, i);
    }
    int err = 0;
    for (size_t i = 0; i < holds->count && !err; i++) {
        const struct holder *holder = &search->holders[chosen[i]];
        struct report_hold *hold = &holds->rows[i];
        *hold = (struct report_hold){.resource = holder->resource,
                                     .process = holder->process,
                                     .owner_name = holder->name,
                                     .is_for_threads = holder->is_for_threads,
                                     .time_ns = holder->time_ns};
        err = find_path(search, chosen[i], true, &hold->owner_path);
        if (!err)
            err = find_path(search, chosen[i], false, &hold->waiter_path);
    }
    holds->left_out = search->holder_count - holds->count;
    return err;
}

static int find(struct report *report, struct report_holds *holds)
{
    struct search search = {.report = report, .holds = holds};
    int err = count_samples(&search);
    if (!err)
        err = choose(&search);
    free(search.labelled.labels);
    call_tree_free(&search.trees[0]);
    call_tree_free(&search.trees[1]);
    free(search.holders);
    index_free(&search.holder_index);
    free(search.places);
    index_free(&search.place_index);
    return err;
}

void report_append_cpu_user(struct buffer *buffer, const struct report *report,
                            const struct report_hold *hold)
{
    const struct fgprof_profile *profile = report->profile;
    const char *resource = strings_get(&profile->strings, hold->resource);
    size_t prefix =
        strncmp(resource, CPU_USED_BY, sizeof CPU_USED_BY - 1) ? 0 : sizeof CPU_USED_BY - 1;
    if (strcmp(resource, CPU_IDLE) == 0) {
        buffer_puts(buffer, "while the CPU was idle");
        return;
    }
    buffer_puts(buffer, "behind ");
    if (hold->owner_name && (hold->process >= profile->process_count ||
                             hold->owner_name != profile->processes[hold->process].name)) {
        name_append_short(buffer, strings_get(&profile->strings, hold->owner_name),
                          REPORT_NAME_COLUMNS);
        buffer_puts(buffer, " in ");
    }
    name_append_short(buffer, resource + prefix, REPORT_FILE_COLUMNS);
}

int report_find_holders(struct report *report)
{
    return find(report, &report->held) || find(report, &report->woken) ||
                   find(report, &report->cpus)
               ? -ENOMEM
               : 0;
}
