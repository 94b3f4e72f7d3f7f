#include "observe/snapshots.h"
#include "base/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A larger copy is seldom needed, so its memory is not kept; nor is that of the many that wait
 * while the worker is behind. */
#define KEPT_BYTES_MAX (64u << 10)
#define ALL_KEPT_BYTES_MAX (8u << 20)

struct snapshots {
    struct snapshot items[SNAPSHOTS_MAX];
    struct snapshot *free[SNAPSHOTS_MAX]; /* used by the sampling thread only */
    size_t free_count;
    struct queue *given; /* given back by the worker */
    atomic_size_t bytes; /* of all stacks */
};

int snapshots_new(struct snapshots **ret_snapshots)
{
    struct snapshots *snapshots = calloc(1, sizeof *snapshots);
    if (!snapshots)
        return -ENOMEM;
    int err = queue_new(sizeof(struct snapshot *), &snapshots->given);
    if (err) {
        free(snapshots);
        return err;
    }
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshots->free[snapshots->free_count++] = &snapshots->items[i];
    *ret_snapshots = snapshots;
    return 0;
}

void snapshots_free(struct snapshots *snapshots)
{
    if (!snapshots)
        return;
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshot_clear(&snapshots->items[i]);
    queue_free(snapshots->given);
    free(snapshots);
}

static size_t capacity_of(const struct snapshot *snapshot)
{
    return snapshot->stack.capacity + snapshot->other_stack.capacity;
}

static size_t growth(size_t capacity, size_t wanted)
{
    return wanted > capacity ? wanted - capacity : 0;
}

static bool make_room(struct snapshots *snapshots, struct snapshot *snapshot, size_t stack_limit,
                      const struct stack_place *other)
{
    size_t before = capacity_of(snapshot);
    size_t more = growth(snapshot->stack.capacity, stack_limit) +
                  growth(snapshot->other_stack.capacity, other->address ? other->bytes : 0);
    if (more && atomic_load(&snapshots->bytes) + more > SNAPSHOTS_BYTES_MAX)
        return false;
    bool has_room = snapshot_make_room(snapshot, stack_limit, other);
    atomic_fetch_add(&snapshots->bytes, capacity_of(snapshot) - before);
    return has_room;
}

/* Those without memory are taken last. */
static void put_free(struct snapshots *snapshots, struct snapshot *snapshot)
{
    size_t at = snapshots->free_count++;
    if (!capacity_of(snapshot)) {
        snapshots->free[at] = snapshots->free[0];
        at = 0;
    }
    snapshots->free[at] = snapshot;
}

struct snapshot *snapshots_take(struct snapshots *snapshots, size_t stack_limit,
                                const struct stack_place *other)
{
    struct snapshot *snapshot;
    while (queue_take(snapshots->given, &snapshot))
        put_free(snapshots, snapshot);
    if (!snapshots->free_count)
        return NULL;
    snapshot = snapshots->free[snapshots->free_count - 1];
    if (!make_room(snapshots, snapshot, stack_limit, other))
        return NULL;
    snapshots->free_count--;
    snapshot_forget(snapshot);
    return snapshot;
}

void snapshots_give(struct snapshots *snapshots, struct snapshot *snapshot, bool is_worker)
{
    if (capacity_of(snapshot) > KEPT_BYTES_MAX ||
        atomic_load(&snapshots->bytes) > ALL_KEPT_BYTES_MAX) {
        atomic_fetch_sub(&snapshots->bytes, capacity_of(snapshot));
        snapshot_clear(snapshot);
    }
    if (!is_worker)
        put_free(snapshots, snapshot);
    else /* a snapshot that can't be put back is lost for this recording; there are others */
        queue_put(snapshots->given, &snapshot);
}
