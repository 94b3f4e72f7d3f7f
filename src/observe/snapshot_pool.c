#include "observe/snapshot_pool.h"
#include "base/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The memory of larger copies is not kept, because they are seldom needed, nor is that of the many
 * snapshots that wait while the worker is behind. */
#define KEPT_BYTES_MAX (64u << 10)
#define ALL_KEPT_BYTES_MAX (8u << 20)

struct snapshot_pool {
    struct snapshot items[SNAPSHOTS_MAX];
    struct snapshot *free[SNAPSHOTS_MAX]; /* used by the sampling thread only */
    size_t free_count;
    struct queue *given; /* given back by the worker */
    atomic_size_t bytes; /* of all stacks */
};

int snapshot_pool_new(struct snapshot_pool **ret_pool)
{
    struct snapshot_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return -ENOMEM;
    int err = queue_new(sizeof(struct snapshot *), &pool->given);
    if (err) {
        free(pool);
        return err;
    }
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        pool->free[pool->free_count++] = &pool->items[i];
    *ret_pool = pool;
    return 0;
}

void snapshot_pool_free(struct snapshot_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshot_clear(&pool->items[i]);
    queue_free(pool->given);
    free(pool);
}

static size_t capacity_of(const struct snapshot *snapshot)
{
    return snapshot->stack.capacity + snapshot->other_stack.capacity;
}

static size_t growth(size_t capacity, size_t wanted)
{
    return wanted > capacity ? wanted - capacity : 0;
}

static bool make_room(struct snapshot_pool *pool, struct snapshot *snapshot, size_t stack_limit,
                      const struct stack_place *other)
{
    size_t before = capacity_of(snapshot);
    size_t more = growth(snapshot->stack.capacity, stack_limit) +
                  growth(snapshot->other_stack.capacity, other->address ? other->bytes : 0);
    if (more && atomic_load(&pool->bytes) + more > SNAPSHOTS_BYTES_MAX)
        return false;
    bool has_room = snapshot_make_room(snapshot, stack_limit, other);
    atomic_fetch_add(&pool->bytes, capacity_of(snapshot) - before);
    return has_room;
}

/* Snapshots without memory are taken last. */
static void put_free(struct snapshot_pool *pool, struct snapshot *snapshot)
{
    size_t at = pool->free_count++;
    if (!capacity_of(snapshot)) {
        pool->free[at] = pool->free[0];
        at = 0;
    }
    pool->free[at] = snapshot;
}

struct snapshot *snapshot_pool_take(struct snapshot_pool *pool, size_t stack_limit,
                                    const struct stack_place *other)
{
    struct snapshot *snapshot;
    while (queue_take(pool->given, &snapshot))
        put_free(pool, snapshot);
    if (!pool->free_count)
        return NULL;
    snapshot = pool->free[pool->free_count - 1];
    if (!make_room(pool, snapshot, stack_limit, other))
        return NULL;
    pool->free_count--;
    snapshot_forget(snapshot);
    return snapshot;
}

void snapshot_pool_give(struct snapshot_pool *pool, struct snapshot *snapshot, bool is_worker)
{
    if (capacity_of(snapshot) > KEPT_BYTES_MAX || atomic_load(&pool->bytes) > ALL_KEPT_BYTES_MAX) {
        atomic_fetch_sub(&pool->bytes, capacity_of(snapshot));
        snapshot_clear(snapshot);
    }
    if (!is_worker)
        put_free(pool, snapshot);
    else /* a snapshot that can't be put back is lost for this recording; there are others */
        queue_put(pool->given, &snapshot);
}
