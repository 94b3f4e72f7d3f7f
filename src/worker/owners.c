#include "worker/owners.h"
#include "base/array.h"
#include "wait/lock.h"

#include <errno.h>
#include <stdlib.h>

/* The longest chain of owners that is followed. */
#define CHAIN_MAX 64
/* The index keeps numbers of threads that are gone. It is rebuilt if it has more than this many for
 * each live thread. */
#define STALE_PART 4
#define STALE_MIN 1024

struct thread_key {
    uint32_t process;
    pid_t inner_tid;
};

static uint64_t hash_of(const struct thread_key *key)
{
    const uint32_t parts[] = {key->process, (uint32_t)key->inner_tid};
    return hash_bytes(parts, sizeof parts, 0);
}

static bool is_thread(const void *owner, uint32_t item, const void *key)
{
    const struct counted_thread *thread = &((const struct owners *)owner)->threads->items[item];
    const struct thread_key *sought = key;
    return !thread->is_gone && thread->process == sought->process &&
           thread->inner_tid == sought->inner_tid;
}

static int index_threads(struct owners *owners)
{
    int err = 0;
    index_free(&owners->by_id);
    for (size_t i = 0; i < owners->threads->count && !err; i++) {
        const struct counted_thread *thread = &owners->threads->items[i];
        const struct thread_key key = {thread->process, thread->inner_tid};
        if (thread->inner_tid && !thread->is_gone)
            err = index_add(&owners->by_id, hash_of(&key), (uint32_t)i);
    }
    return err;
}

/* Adds to the number of the process's threads, or subtracts from it. */
static int count_thread(struct owners *owners, uint32_t process, uint32_t number, bool is_there)
{
    if (array_extend(&owners->processes, &owners->process_count, &owners->process_capacity,
                     process + 1u))
        return -ENOMEM;
    owners->processes[process].count += is_there ? 1u : UINT32_MAX;
    owners->processes[process].all ^= number;
    return 0;
}

/* The process's only thread; INDEX_NONE if it has several. */
static uint32_t only_thread(const struct owners *owners, uint32_t process)
{
    if (process >= owners->process_count)
        return INDEX_NONE;
    const struct process_threads *found = &owners->processes[process];
    if (found->count != 1 || found->all >= owners->threads->count)
        return INDEX_NONE;
    const struct counted_thread *thread = &owners->threads->items[found->all];
    bool is_it = thread->is_counted && thread->process == process &&
                 peer_waits_is_single(&owners->peers, process);
    return is_it ? found->all : INDEX_NONE;
}

int owners_note_thread(struct owners *owners, const struct observation *observation,
                       struct counted_thread *thread)
{
    const struct thread_key key = {observation->process, observation->inner_tid};
    thread->is_gone = observation->evidence == EVIDENCE_GONE;
    if (thread->is_counted == thread->is_gone) {
        thread->is_counted = !thread->is_gone;
        if (count_thread(owners, key.process, observation->thread, thread->is_counted))
            return -ENOMEM;
    }
    if (thread->inner_tid == key.inner_tid && thread->process == key.process)
        return 0;
    thread->process = key.process;
    thread->inner_tid = key.inner_tid;
    if (!key.inner_tid)
        return 0;
    if (owners->by_id.used > STALE_PART * owners->threads->count + STALE_MIN)
        return index_threads(owners);
    return index_add(&owners->by_id, hash_of(&key), observation->thread);
}

static uint32_t find_in(const struct owners *owners, uint32_t process, uint32_t inner_tid)
{
    const struct thread_key key = {process, (pid_t)inner_tid};
    return index_find(&owners->by_id, hash_of(&key), is_thread, owners, &key);
}

/* The owner of a lock shared between processes may be in any of them; it is known only if a single
 * process has such a thread. */
static uint32_t find_owner(const struct owners *owners, const struct results *results,
                           uint32_t process, const struct lock *lock)
{
    uint32_t found = lock->owner ? find_in(owners, process, lock->owner) : INDEX_NONE;
    if (found != INDEX_NONE || !lock->owner || !lock->is_shared)
        return found;
    for (uint32_t i = 0; i < results->stacks.process_count; i++) {
        uint32_t other = find_in(owners, i, lock->owner);
        if (other != INDEX_NONE && found != INDEX_NONE)
            return INDEX_NONE;
        found = other != INDEX_NONE ? other : found;
    }
    return found;
}

/* Whether a file has a vtable there, as far as that can be decided without its symbols: the second
 * word before it is 0, the offset to the top of the object (Itanium C++ ABI, 2.5.2). The loader may
 * have copied it to where the file has nothing. Each value that is accepted makes rows of its own.
 */
static bool may_be_vtable(const struct space *space, uint64_t address)
{
    const struct mapping *mapping = space_find_memory(space, address);
    uint64_t offset;
    if (!mapping)
        return false;
    uint64_t own = address - mapping->bias;
    return !module_read(mapping->module, own - 2 * sizeof offset, &offset, sizeof offset) ||
           offset == 0;
}

/* The vtable of the object that the lock is part of; 0: none is known. */
static uint64_t find_vtable(const struct results *results, uint32_t space, const struct lock *lock,
                            const struct lock_site *site, const struct observation *observation)
{
    uint64_t pointers[OBJECT_POINTERS_MAX];
    if (space == NO_SPACE || !resource_is_lock(lock->kind))
        return 0;
    size_t count =
        object_pointers(lock, site, &observation->wait.call, &observation->wait.memory, pointers);
    for (size_t i = 0; i < count; i++) {
        if (may_be_vtable(results->spaces.items[space], pointers[i]))
            return pointers[i];
    }
    return 0;
}

/* Whether a thread that owns the lock really waits for it. It may have acquired the lock since it
 * was seen asleep, and the kernel gives locks with priority inheritance to sleeping threads. */
static bool waits_for_itself(const struct owners *owners, const struct observation *observation)
{
    const struct thread_account *account = &owners->threads->items[observation->thread].account;
    return !observation->wait.call.is_pi && (observation->evidence == EVIDENCE_ASLEEP ||
                                             account->owner_plus_1 == observation->thread + 1);
}

/* Reads a wait that is not for a lock in memory. If a thread owns the resource, every observation
 * reads it again, because that thread may have moved. */
static int read_peer(struct owners *owners, struct results *results,
                     const struct observation *observation, struct held_wait *ret_wait)
{
    struct counted_thread *thread = &owners->threads->items[observation->thread];
    bool is_new = observation->evidence == EVIDENCE_ASLEEP;
    struct peer_wait found;
    if (!observation->program)
        return 0;
    int err = peer_waits_find(&owners->peers, results, observation,
                              is_new ? observation->now.at_ns : thread->account.slept_ns,
                              &thread->child, &found);
    if (err)
        return err;
    ret_wait->wait = found.wait;
    if (found.wait.kind != RESOURCE_NOT_KNOWN && found.wait.owner_process != WAIT_NO_OWNER)
        ret_wait->owner = only_thread(owners, found.wait.owner_process);
    ret_wait->has_owner = ret_wait->owner != WAIT_NO_OWNER || found.is_pending;
    return 0;
}

static struct lock lock_in(const struct owners *owners, const struct observation *observation,
                           const struct lock_site *site, const struct call_memory *memory)
{
    struct lock lock = lock_of(site, &observation->wait.call, memory);
    gils_note(&owners->gils, observation, memory, &lock);
    return lock;
}

/* The lock's state nearest to the tick: it may change hands while the thread waits. If nobody had
 * it then, because the thread was about to wake or to sleep, uses the state at the other moment. */
static struct lock read_lock(const struct owners *owners, const struct observation *observation,
                             const struct lock_site *site, uint64_t *ret_owner_read_ns)
{
    const struct wait_seen *wait = &observation->wait;
    const uint64_t departed_ns = observation->record.departed_ns, now_ns = observation->now.at_ns;
    struct lock lock = lock_in(owners, observation, site, &wait->memory);
    *ret_owner_read_ns = wait->is_left ? departed_ns : now_ns;
    if (lock.owner || !wait->has_other)
        return lock;
    *ret_owner_read_ns = wait->is_left ? now_ns : departed_ns;
    return lock_in(owners, observation, site, &observation->snapshot->other_futex);
}

int owners_read(struct owners *owners, struct results *results,
                const struct observation *observation, uint32_t stack, struct held_wait *ret_wait)
{
    struct lock_site site;
    ret_wait->owner = WAIT_NO_OWNER;
    ret_wait->has_owner = false;
    ret_wait->owner_read_ns = observation->now.at_ns;
    ret_wait->wait = wait_of_nothing(observation->process);
    if (!observation->wait.has_call)
        return 0;
    if (observation->wait.call.kind != CALL_FUTEX)
        return read_peer(owners, results, observation, ret_wait);
    int err = lock_sites_get(&owners->sites, results, stack, &site);
    if (err)
        return err;
    struct lock lock = read_lock(owners, observation, &site, &ret_wait->owner_read_ns);
    uint32_t space = results->stacks.stacks[stack].space;
    ret_wait->wait.key = lock.address;
    ret_wait->wait.vtable = find_vtable(results, space, &lock, &site, observation);
    ret_wait->wait.kind = lock.kind;
    ret_wait->wait.space = space;
    uint32_t owner = find_owner(owners, results, observation->process, &lock);
    if (owner != INDEX_NONE &&
        (owner != observation->thread || waits_for_itself(owners, observation)))
        ret_wait->owner = owner;
    ret_wait->has_owner = lock.owner != 0;
    return 0;
}

int owners_hold(struct owners *owners, const struct held_wait *wait)
{
    struct counted_thread *thread = &owners->threads->items[wait->thread];
    if (array_append(&owners->held, &owners->held_count, &owners->held_capacity, *wait))
        return -ENOMEM;
    thread->held_plus_1 = (uint32_t)owners->held_count;
    return 0;
}

static struct counted_thread *last_owner(const struct owners *owners,
                                         const struct counted_thread *thread)
{
    uint32_t number = thread->account.owner_plus_1;
    return number && number <= owners->threads->count ? &owners->threads->items[number - 1] : NULL;
}

/* Whether the owner waits, itself or through others, for that thread. */
static bool waits_in_turn(const struct owners *owners, const struct counted_thread *owner,
                          const struct counted_thread *thread)
{
    for (unsigned i = 0; i < CHAIN_MAX && owner && owner->account.sleeps_on; i++) {
        owner = last_owner(owners, owner);
        if (owner == thread)
            return true;
    }
    return false;
}

/* A thread that waited for a lock that it has by now is no longer there. */
static bool is_same_lock(const struct counted_wait *one, const struct counted_wait *other)
{
    return resource_is_lock((enum resource_kind)one->kind) && one->kind == other->kind &&
           one->key == other->key && one->space == other->space;
}

static bool waited_for(const struct results *results, const struct thread_account *account,
                       const struct counted_wait *wait)
{
    uint32_t last_plus_1 = results->stacks.samples[account->last_sample].labels.wait_plus_1;
    return last_plus_1 && is_same_lock(&results->waits.rows[last_plus_1 - 1], wait);
}

/* Finds where the owner was at that time. In a cycle its wait is omitted: it would lead to an
 * earlier wait of this thread, and each round would make a longer chain. */
static void find_place(const struct owners *owners, const struct results *results,
                       const struct held_wait *held, uint64_t period_ns, struct counted_wait *wait)
{
    const struct counted_thread *owner = &owners->threads->items[held->owner];
    const struct thread_account *account = &owner->account;
    uint64_t at_ns = held->at_ns;
    const struct counted_sample *samples = results->stacks.samples;
    uint64_t apart_ns =
        at_ns > account->awake_at_ns ? at_ns - account->awake_at_ns : account->awake_at_ns - at_ns;
    bool is_itself = held->owner == held->thread;
    if (account->sleeps_on && (is_itself || !waited_for(results, account, wait))) {
        wait->owner_stack = samples[account->last_sample].stack;
        if (!is_itself && !waits_in_turn(owners, owner, &owners->threads->items[held->thread]))
            wait->owner_wait_plus_1 = samples[account->last_sample].labels.wait_plus_1;
    } else if (account->awake_at_ns && apart_ns <= period_ns) {
        wait->owner_stack = samples[account->awake_sample].stack;
    }
}

static int resolve(struct owners *owners, struct results *results, uint64_t period_ns,
                   struct held_wait *held, unsigned depth)
{
    const struct counted_thread *owner = &owners->threads->items[held->owner];
    struct counted_wait wait = held->wait;
    struct held_wait *next = owner->held_plus_1 ? &owners->held[owner->held_plus_1 - 1] : NULL;
    int err = 0;
    wait.owner_process = owner->process;
    wait.owner_name = owner->name;
    wait.owner_tid = owners->tells_threads_apart ? (uint32_t)owner->tid : 0;
    held->is_being_resolved = true;
    if (next && next != held && is_same_lock(&next->wait, &wait)) {
        wait.owner_stack = WAIT_NO_STACK; /* it got it since the tick */
    } else if (next) {
        wait.owner_stack = results->stacks.samples[next->sample].stack;
        if (!next->is_resolved && !next->is_being_resolved && depth < CHAIN_MAX)
            err = resolve(owners, results, period_ns, next, depth + 1);
        wait.owner_wait_plus_1 = next->is_resolved ? next->wait_plus_1 : 0;
    } else {
        find_place(owners, results, held, period_ns, &wait);
    }
    if (!err)
        err = waits_add(&results->waits, &wait, &held->wait_plus_1);
    held->is_being_resolved = false;
    held->is_resolved = true;
    return err;
}

int owners_resolve(struct owners *owners, struct results *results, uint64_t period_ns)
{
    int err = 0;
    for (size_t i = 0; i < owners->held_count && !err; i++) {
        if (!owners->held[i].is_resolved)
            err = resolve(owners, results, period_ns, &owners->held[i], 0);
    }
    return err;
}

uint32_t owners_end_of_chain(const struct owners *owners, const struct held_wait *held)
{
    uint32_t process = owners->threads->items[held->thread].process, last = held->thread;
    /* Cycles of waits end at CHAIN_MAX. */
    for (unsigned i = 0; held && i < CHAIN_MAX; i++) {
        const struct counted_thread *owner = &owners->threads->items[held->owner];
        if (owner->process != process || owner->is_gone || !owner->account.sleeps_on)
            break;
        last = held->owner;
        held = owner->held_plus_1 ? &owners->held[owner->held_plus_1 - 1] : NULL;
        if (held && !resource_is_lock((enum resource_kind)held->wait.kind))
            break;
    }
    return last;
}

void owners_drop(struct owners *owners)
{
    for (size_t i = 0; i < owners->held_count; i++)
        owners->threads->items[owners->held[i].thread].held_plus_1 = 0;
    owners->held_count = 0;
}

/* ---- Deadlocks ---- */

struct cycle {
    struct counted_thread *threads[DEADLOCK_THREADS_MAX];
    size_t count;
    uint64_t asleep_ns; /* when the last of them was first seen asleep */
    uint64_t read_ns;   /* when the first of their owners was read */
    bool is_deadlock;   /* and not of two processes that wait for each other's data */
    bool is_known;
};

/* Follows the owners until they come back to the first. Returns whether they do. */
static bool follow_owners(struct owners *owners, struct counted_thread *first, struct cycle *cycle)
{
    struct counted_thread *thread = first;
    *cycle = (struct cycle){.read_ns = UINT64_MAX, .is_deadlock = true};
    do {
        const struct thread_account *account = &thread->account;
        if (cycle->count == DEADLOCK_THREADS_MAX || thread->is_gone || !account->sleeps_on ||
            account->sleep_is_over)
            return false;
        cycle->threads[cycle->count++] = thread;
        cycle->is_known = cycle->is_known || account->is_in_deadlock;
        cycle->is_deadlock = cycle->is_deadlock && account->owner_must_act;
        if (account->slept_ns > cycle->asleep_ns)
            cycle->asleep_ns = account->slept_ns;
        if (account->owner_read_ns < cycle->read_ns)
            cycle->read_ns = account->owner_read_ns;
        thread = last_owner(owners, thread);
    } while (thread && thread != first);
    return thread != NULL;
}

static int add_deadlock(struct results *results, const struct cycle *cycle)
{
    struct deadlock_thread rows[DEADLOCK_THREADS_MAX];
    for (size_t i = 0; i < cycle->count; i++) {
        struct counted_thread *thread = cycle->threads[i];
        const struct counted_sample *sample = &results->stacks.samples[thread->account.last_sample];
        rows[i] = (struct deadlock_thread){
            .tid = (uint32_t)thread->tid,
            .process = thread->process,
            .name = thread->name,
            .stack = sample->stack,
            .wait_plus_1 = sample->labels.wait_plus_1,
            .since_ns = cycle->asleep_ns,
        };
        thread->account.is_in_deadlock = true;
    }
    return deadlocks_add(&results->deadlocks, rows, cycle->count);
}

int owners_detect_deadlock(struct owners *owners, struct results *results,
                           const struct held_wait *held)
{
    struct counted_thread *thread = &owners->threads->items[held->thread];
    struct cycle cycle;
    thread->account.owner_plus_1 = held->owner + 1;
    thread->account.owner_read_ns = held->owner_read_ns;
    thread->account.owner_must_act =
        resource_is_lock((enum resource_kind)held->wait.kind) || held->wait.kind == RESOURCE_THREAD;
    if (!follow_owners(owners, thread, &cycle) || !cycle.is_deadlock || cycle.is_known ||
        cycle.read_ns < cycle.asleep_ns)
        return 0;
    return add_deadlock(results, &cycle);
}

/* ---- The end ---- */

void owners_forget_process(struct owners *owners, uint32_t process)
{
    if (process < owners->process_count)
        owners->processes[process] = (struct process_threads){0};
}

void owners_free(struct owners *owners)
{
    index_free(&owners->by_id);
    gils_free(&owners->gils);
    lock_sites_free(&owners->sites);
    peer_waits_free(&owners->peers);
    free(owners->processes);
    free(owners->held);
}
