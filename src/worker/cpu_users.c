#include "worker/cpu_users.h"
#include "wait/resource.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 96 /* of two names, an id and the words */
/* On a busy machine nearly every wait is for a different thread at a different place. Beyond this
 * many rows, further rows have no place; beyond the second limit, they have no process id either.
 */
#define PLACED_WAITS_MAX 4096
#define NAMED_WAITS_MAX (WAITS_MAX / 2)

/* "CPU used by compress in backup/991", "CPU used by backup/991", "idle CPU" ... The process of a
 * sampled thread is named later. Others come and go: if there are many, names have no id. */
static void write_name(const struct cpu_user *user, bool is_sampled, bool are_many,
                       char ret_name[NAME_BYTES])
{
    bool has_own_name = strcmp(user->name, user->process_name) != 0;
    if (user->kind == WAKE_BY_IDLE)
        snprintf(ret_name, NAME_BYTES, "%s", CPU_IDLE);
    else if (is_sampled)
        snprintf(ret_name, NAME_BYTES, "%s", resource_kind_name(RESOURCE_CPU));
    else if (user->kind == WAKE_BY_KERNEL_THREAD)
        snprintf(ret_name, NAME_BYTES, CPU_USED_BY "kernel thread %s", user->name);
    else if (!user->process_id || are_many)
        snprintf(ret_name, NAME_BYTES, CPU_USED_BY "%s", user->process_name);
    else
        snprintf(ret_name, NAME_BYTES, CPU_USED_BY "%s%s%s/%d", has_own_name ? user->name : "",
                 has_own_name ? " in " : "", user->process_name, (int)user->process_id);
}

/* Where it was sampled while it ran, if that was about then. */
static void find_place(const struct results *results, const struct thread_account *account,
                       uint64_t at_ns, uint64_t period_ns, struct counted_wait *wait)
{
    const struct counted_sample *samples = results->stacks.samples;
    uint64_t seen_ns = account->awake_at_ns;
    uint64_t apart_ns = at_ns > seen_ns ? at_ns - seen_ns : seen_ns - at_ns;
    if (seen_ns && apart_ns <= period_ns && results->waits.count < PLACED_WAITS_MAX &&
        samples[account->awake_sample].labels.state == THREAD_RUNNING)
        wait->owner_stack = samples[account->awake_sample].stack;
}

/* Sets the owner if the thread is sampled. */
static bool find_owner(const struct means *means, const struct observation *observation,
                       struct counted_wait *wait)
{
    const struct results *results = means->results;
    const struct cpu_user *user = &observation->record.cpu_user;
    const struct counted_threads *threads = means->owners->threads;
    uint32_t process =
        user->is_sampled ? stack_table_find_process(&results->stacks, user->process) : PROCESS_NONE;
    if (process == PROCESS_NONE || user->thread >= threads->count ||
        threads->items[user->thread].tid != user->tid)
        return false;
    const struct counted_thread *thread = &threads->items[user->thread];
    wait->owner_process = process;
    wait->owner_name = thread->name;
    wait->owner_tid = means->tells_threads_apart ? (uint32_t)thread->tid : 0;
    find_place(results, &thread->account, observation->now.at_ns, means->period_ns, wait);
    return true;
}

int cpu_user_place(const struct means *means, const struct observation *observation,
                   uint32_t *sample)
{
    struct results *results = means->results;
    const struct cpu_user *user = &observation->record.cpu_user;
    struct counted_wait wait = wait_of_nothing(observation->process);
    char name[NAME_BYTES];
    uint32_t id, wait_plus_1;
    if (!user->is_known)
        return 0;
    wait.kind = RESOURCE_CPU;
    bool is_sampled = find_owner(means, observation, &wait);
    write_name(user, is_sampled, results->waits.count >= NAMED_WAITS_MAX, name);
    int err = strings_intern(&results->strings, name, &id);
    if (err)
        return err;
    wait.key = id;
    err = waits_add(&results->waits, &wait, &wait_plus_1);
    return err ? err : stack_table_in_wait(&results->stacks, *sample, wait_plus_1, sample);
}
