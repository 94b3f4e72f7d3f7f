#include "profile/dump.h"
#include "wait/deadlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCK_FRAMES 8 /* innermost frames, with inlined ones, that may be a lock's function */

struct innermost {
    const char *functions[LOCK_FRAMES];
    bool is_glibc[LOCK_FRAMES];
    size_t count;
};

static bool is_glibc_file(const char *path)
{
    const char *file = basename(path);
    return strncmp(file, "libc.so.6", 9) == 0 || strncmp(file, "libc-2.", 7) == 0 ||
           strncmp(file, "libpthread-2.", 13) == 0 || strncmp(file, "libpthread.so.0", 15) == 0;
}

static struct innermost innermost_of(const struct fgprof_profile *profile, uint32_t number)
{
    const struct profile_stack *stack = &profile->stacks[number];
    struct innermost innermost = {.count = 0};
    for (size_t i = 0; i < stack->depth; i++) {
        const struct profile_location *location =
            &profile->locations[profile->stack_locations[stack->first_location + i]];
        const char *path = "";
        if (location->mapping != PROFILE_NO_MAPPING)
            path = strings_get(&profile->strings, profile->mappings[location->mapping].path);
        for (uint32_t j = 0; j < location->line_count && !location->is_kernel; j++) {
            uint32_t function = profile->lines[location->first_line + j].function;
            if (innermost.count == LOCK_FRAMES)
                return innermost;
            innermost.is_glibc[innermost.count] = is_glibc_file(path);
            innermost.functions[innermost.count++] =
                strings_get(&profile->strings, profile->functions[function].system_name);
        }
    }
    return innermost;
}

static int compare_samples(const void *a, const void *b)
{
    const struct profile_sample *left = *(const struct profile_sample *const *)a;
    const struct profile_sample *right = *(const struct profile_sample *const *)b;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

/* Gives each thread its sample. */
static int add_threads(struct fgprof_dump *dump)
{
    const struct fgprof_profile *profile = dump->profile;
    size_t count = profile->sample_count;
    const struct profile_sample **samples = calloc(count + 1, sizeof *samples);
    dump->threads = calloc(dump->waits.count + 1, sizeof *dump->threads);
    if (!samples || !dump->threads) {
        free(samples);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        samples[i] = &profile->samples[i];
    qsort(samples, count, sizeof *samples, compare_samples);
    for (size_t i = 0; i < dump->waits.count; i++) {
        const struct wait_facts *facts = &dump->waits.items[i];
        const struct profile_sample key = {.tid = (uint32_t)facts->tid}, *wanted = &key;
        const struct profile_sample **found =
            bsearch(&wanted, samples, count, sizeof *samples, compare_samples);
        if (found)
            dump->threads[dump->thread_count++] =
                (struct dump_thread){.sample = *found, .facts = facts, .owner = DUMP_NOBODY};
    }
    free(samples);
    return 0;
}

/* An owner is believed if it is a thread of the process. If a lock is shared between processes, the
 * owner may be another process's; glibc marks all robust locks so (nptl/pthread_mutex_init.c). */
static void find_owner(const struct fgprof_dump *dump, struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    if (!thread->lock.owner)
        return;
    for (size_t i = 0; i < dump->thread_count; i++) {
        const struct wait_facts *other = dump->threads[i].facts;
        if (other->process_id == facts->process_id && other->inner_tid > 0 &&
            (uint32_t)other->inner_tid == thread->lock.owner) {
            thread->owner = i;
            return;
        }
    }
    thread->is_owner_gone =
        thread->lock.kind == LOCK_MUTEX && !thread->lock.is_shared &&
        facts->inner_tid == facts->tid &&
        !wait_list_has_thread(&dump->waits, facts->process_id, (pid_t)thread->lock.owner);
}

static void find_locks(struct fgprof_dump *dump)
{
    for (size_t i = 0; i < dump->thread_count; i++) {
        struct dump_thread *thread = &dump->threads[i];
        if (thread->facts->target.kind != CALL_FUTEX)
            continue;
        struct innermost innermost = innermost_of(dump->profile, thread->sample->stack);
        thread->lock =
            lock_of(&thread->facts->lock, innermost.functions, innermost.is_glibc, innermost.count);
        find_owner(dump, thread);
    }
}

/* A wait with a timeout ends by itself. All other waits went on at the same moment, between the
 * last look at a stack and the first check that no thread had moved: so a thread in a circle stays
 * there. */
static int find_deadlocks(struct fgprof_dump *dump)
{
    size_t count = dump->thread_count;
    size_t *waits_for = calloc(count + 1, sizeof *waits_for);
    size_t *cycles = calloc(count + 1, sizeof *cycles);
    int err = waits_for && cycles ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        const struct dump_thread *thread = &dump->threads[i];
        bool may_end = thread->facts->target.has_timeout || thread->facts->has_gone_on;
        waits_for[i] = may_end ? WAITS_FOR_NOBODY : thread->owner;
    }
    if (!err)
        dump->deadlock_count = deadlocks_find(waits_for, count, cycles);
    for (size_t i = 0; i < count && !err; i++)
        dump->threads[i].deadlock = cycles[i];
    free(waits_for);
    free(cycles);
    return err;
}

int dump_complete(struct fgprof_dump *dump)
{
    int err = add_threads(dump);
    if (err)
        return err;
    find_locks(dump);
    return find_deadlocks(dump);
}

void dump_free(struct fgprof_dump *dump)
{
    if (!dump)
        return;
    free(dump->threads);
    wait_list_free(&dump->waits);
    profile_free(dump->profile);
    free(dump);
}
