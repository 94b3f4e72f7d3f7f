/* A goroutine that waits for channels has a sudog in the queue of each, and a list of them
 * (runtime/chan.go, select.go). For other waits, its stack has a pointer to what it waits for: in
 * semacquire1 (runtime/sema.go) to its sudog, in netpollblock (runtime/netpoll.go) to the word that
 * points back to the goroutine, and in Cond.Wait (sync/cond.go) to the condition. A word of the
 * stack is accepted only if what it points at leads back to the goroutine. */
#include "runtime/go/wait.h"
#include "base/bytes.h"
#include "proc/memory.h"

#include <limits.h>
#include <string.h>

#define ADDRESS_MIN 4096u
#define CHANNELS_MAX 64u /* of a select */
/* The frames of gopark and of what called it, twice as large as they are. */
#define FRAMES_BYTES 384u
#define QUEUE_MAX 32 /* how far a condition's queue is followed */
#define SUDOG_BYTES_MAX 128u

/* Offsets that are the same in all versions: sync.Cond has its notifyList (runtime/sema.go) after
 * an interface. */
#define CONDITION_LIST 16u
struct notify_list {
    uint32_t wait, notify;
    uint64_t lock, head, tail;
};

struct sudog {
    uint64_t goroutine, next, previous, element, link, channel;
};

static bool read_bytes(const struct parked_goroutine *parked, uint64_t address, void *buffer,
                       size_t bytes)
{
    return address >= ADDRESS_MIN && address < MEMORY_END && address % sizeof(uint64_t) == 0 &&
           memory_read(parked->tid, parked->areas, address, buffer, bytes) == bytes;
}

static bool read_sudog(const struct parked_goroutine *parked, uint64_t address,
                       struct sudog *ret_sudog)
{
    const struct go_layout *layout = parked->layout;
    unsigned char bytes[SUDOG_BYTES_MAX];
    if (!read_bytes(parked, address, bytes, layout->sudog_channel + sizeof(uint64_t)))
        return false;
    *ret_sudog = (struct sudog){load_word(bytes, 0),
                                load_word(bytes, 8),
                                load_word(bytes, 16),
                                load_word(bytes, layout->sudog_element),
                                load_word(bytes, layout->sudog_link),
                                load_word(bytes, layout->sudog_channel)};
    return true;
}

static bool read_channels(const struct parked_goroutine *parked, struct go_wait *wait)
{
    uint64_t at = parked->goroutine->waiting;
    struct sudog sudog;
    for (; at && wait->count < CHANNELS_MAX; at = sudog.link) {
        if (!read_sudog(parked, at, &sudog) || sudog.goroutine != parked->address || !sudog.channel)
            return false;
        if (wait->count < GO_WAIT_ADDRESSES_MAX)
            wait->addresses[wait->count] = sudog.channel;
        wait->is_shared = !wait->count++ && (sudog.next || sudog.previous);
    }
    return wait->count && !at;
}

/* Takes words of the stack, nearest to the leaf first, that may point outside the goroutine's
 * stack. Returns false if there are no more. */
static bool next_pointer(const struct parked_goroutine *parked, size_t *at, uint64_t *ret_pointer)
{
    const struct goroutine *goroutine = parked->goroutine;
    size_t end = parked->stack_bytes < FRAMES_BYTES ? parked->stack_bytes : FRAMES_BYTES;
    while (*at + sizeof *ret_pointer <= end) {
        uint64_t word = load_word(parked->stack, *at);
        *at += sizeof word;
        if (word >= ADDRESS_MIN && word < MEMORY_END && word % sizeof word == 0 &&
            (word < goroutine->stack_low || word >= goroutine->stack_high)) {
            *ret_pointer = word;
            return true;
        }
    }
    return false;
}

/* A sudog that is in no queue has neither (releaseSudog in runtime/proc.go). */
static bool is_at_semaphore(const struct parked_goroutine *parked, uint64_t address,
                            struct sudog *ret_sudog)
{
    return read_sudog(parked, address, ret_sudog) && ret_sudog->goroutine == parked->address &&
           ret_sudog->element && !ret_sudog->channel;
}

/* sync.Mutex is its state and the semaphore's word (sync/mutex.go), sync.RWMutex begins with a
 * Mutex, for writers (sync/rwmutex.go), and sync.WaitGroup has both since Go 1.20
 * (sync/waitgroup.go). */
void go_wait_set_lock(struct go_wait *wait, enum go_wait_kind kind, unsigned minor)
{
    static const unsigned char offsets[] = {[GO_WAIT_MUTEX] = 4,
                                            [GO_WAIT_WRITE_LOCK] = 8,
                                            [GO_WAIT_READ_LOCK] = 12,
                                            [GO_WAIT_GROUP] = 8};
    if (kind == GO_WAIT_GROUP && minor < 20)
        kind = GO_WAIT_SEMAPHORE;
    wait->kind = kind;
    wait->addresses[0] -= offsets[kind];
}

static bool read_semaphore(const struct parked_goroutine *parked, struct go_wait *wait)
{
    struct sudog sudog;
    uint64_t pointer = parked->goroutine->waiting; /* since Go 1.26 */
    size_t at = 0;
    bool is_found = pointer && is_at_semaphore(parked, pointer, &sudog);
    while (!is_found && next_pointer(parked, &at, &pointer))
        is_found = is_at_semaphore(parked, pointer, &sudog);
    if (is_found) {
        wait->addresses[0] = sudog.element;
        go_wait_set_lock(wait, wait->kind, parked->layout->minor);
    }
    return is_found;
}

/* Whether the goroutine is in the queue. */
static bool has_goroutine(const struct parked_goroutine *parked, const struct notify_list *list)
{
    struct sudog sudog;
    if (list->wait == list->notify || !list->head || !list->tail ||
        !read_sudog(parked, list->tail, &sudog))
        return false;
    if (sudog.goroutine == parked->address)
        return true;
    uint64_t at = list->head;
    for (int i = 0; i < QUEUE_MAX && read_sudog(parked, at, &sudog); i++) {
        if (sudog.goroutine == parked->address)
            return true;
        at = sudog.next;
    }
    return false;
}

static bool read_condition(const struct parked_goroutine *parked, struct go_wait *wait)
{
    struct notify_list list;
    uint64_t pointer;
    size_t at = 0;
    while (next_pointer(parked, &at, &pointer)) {
        if (read_bytes(parked, pointer + CONDITION_LIST, &list, sizeof list) &&
            has_goroutine(parked, &list)) {
            wait->addresses[0] = pointer;
            return true;
        }
    }
    return false;
}

static bool is_of_descriptor(const struct parked_goroutine *parked, uint64_t address, uint32_t *fd)
{
    uint64_t self, number;
    if (!read_bytes(parked, address + parked->layout->poll_self, &self, sizeof self) ||
        self != address ||
        !read_bytes(parked, address + parked->layout->poll_fd, &number, sizeof number) ||
        number > INT_MAX)
        return false;
    *fd = (uint32_t)number;
    return true;
}

static bool read_descriptor(const struct parked_goroutine *parked, struct go_wait *wait)
{
    const struct go_layout *layout = parked->layout;
    uint64_t pointer, goroutine;
    size_t at = 0;
    while (next_pointer(parked, &at, &pointer)) {
        if (!read_bytes(parked, pointer, &goroutine, sizeof goroutine) ||
            goroutine != parked->address)
            continue;
        if (is_of_descriptor(parked, pointer - layout->poll_reader, &wait->fd))
            return true;
        wait->is_write = is_of_descriptor(parked, pointer - layout->poll_writer, &wait->fd);
        if (wait->is_write)
            return true;
    }
    return false;
}

static bool read_wait(const struct parked_goroutine *parked, struct go_wait *wait)
{
    switch (wait->kind) {
    case GO_WAIT_CHANNEL:
        return read_channels(parked, wait);
    case GO_WAIT_SEMAPHORE:
    case GO_WAIT_MUTEX:
    case GO_WAIT_READ_LOCK:
    case GO_WAIT_WRITE_LOCK:
    case GO_WAIT_GROUP:
        return read_semaphore(parked, wait);
    case GO_WAIT_CONDITION:
        return read_condition(parked, wait);
    case GO_WAIT_FILE:
        return read_descriptor(parked, wait);
    default:
        return false;
    }
}

void go_wait_read(const struct parked_goroutine *parked, struct go_wait *ret_wait)
{
    *ret_wait = (struct go_wait){0};
    if (goroutine_is_runnable(parked->goroutine))
        return;
    ret_wait->kind = go_wait_kind(parked->layout->minor, parked->goroutine->reason);
    if (!read_wait(parked, ret_wait))
        *ret_wait = (struct go_wait){0};
}
