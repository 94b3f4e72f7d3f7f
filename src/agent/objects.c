#include "agent/objects.h"
#include "agent/capture.h"
#include "agent/interval.h"
#include "agent/mappings.h"
#include "agent/pages.h"
#include "agent/ring.h"
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

struct live objects_live;

bool objects_init(void)
{
    void *memory = pages_new(LIVE_FIRST_BYTES);
    if (!memory || !mappings_init())
        return false;
    live_init(&objects_live, memory);
    return true;
}

void objects_forget_thread(void)
{
    this_thread.tid = 0;
    this_thread.random = 0;
    this_thread.rate = 0;
}

/* A number that other threads and other runs do not have. */
static uint64_t random_seed(void)
{
    uint64_t seed = 0;
    const void *bytes = (const void *)getauxval(AT_RANDOM); /* 16, from the kernel */
    if (bytes)
        memcpy(&seed, bytes, sizeof seed);
    return random_number(seed ^ ring_now_ns(), this_thread_tid());
}

/* Draws when the thread's next sample is due. */
static void draw_interval(uint64_t rate)
{
    if (!this_thread.random)
        this_thread.random = random_seed();
    this_thread.rate = rate;
    this_thread.bytes_left = interval_draw(&this_thread.random, rate ? rate : AGENT_RATE_DEFAULT);
}

/* Counts bytes as object_is_due does, with an interval that is of the rate. */
static bool is_sampled(struct agent_header *header, size_t bytes)
{
    uint64_t rate = atomic_load_explicit(&header->rate, memory_order_relaxed);
    if (this_thread.rate != rate)
        draw_interval(rate);
    if (bytes <= (uint64_t)this_thread.bytes_left) {
        this_thread.bytes_left -= (int64_t)bytes;
        return false;
    }
    /* An allocation is one sample, however many would be due within it. The interval has no memory,
     * so the next one begins after it. */
    draw_interval(rate);
    return true;
}

static void fill_record(struct agent_record *record, uint64_t object, uint64_t bytes)
{
    record->tid = this_thread_tid();
    record->object = object;
    record->object_bytes = bytes;
    record->at_ns = ring_now_ns();
}

/* An object, or a mapping. */
struct sampled {
    uint64_t address, bytes;
    bool is_mapping;
};

static void count_live(struct agent_header *header, _Atomic uint64_t *own, int64_t change)
{
    atomic_fetch_add_explicit(own, (uint64_t)change, memory_order_relaxed);
    atomic_fetch_add_explicit(&header->live, (uint64_t)change, memory_order_relaxed);
}

static _Atomic uint64_t *live_count(bool is_mapping)
{
    return is_mapping ? &process->live_mappings : &process->live;
}

static bool keep(struct agent_header *header, const struct sampled *sampled)
{
    _Atomic uint64_t *count = live_count(sampled->is_mapping);
    /* Before it can be found: frees only look if this is not 0. */
    count_live(header, count, 1);
    if (!(sampled->is_mapping ? mappings_add(sampled->address, sampled->bytes)
                              : live_add(&objects_live, sampled->address))) {
        count_live(header, count, -1);
        return false;
    }
    return true;
}

/* Returns what was forgotten: the object, or a mapping that has its middle there; 0: nothing. */
static uint64_t forget(struct agent_header *header, const struct sampled *sampled)
{
    uint64_t address = sampled->is_mapping ? mappings_take(sampled->address, sampled->bytes)
                       : live_remove(&objects_live, sampled->address) ? sampled->address
                                                                      : 0;
    if (address)
        count_live(header, live_count(sampled->is_mapping), -1);
    return address;
}

static void forget_all(struct agent_header *header)
{
    const struct sampled mappings = {.bytes = UINT64_MAX, .is_mapping = true};
    count_live(header, &process->live, -(int64_t)live_clear(&objects_live));
    while (forget(header, &mappings)) {
    }
}

/* Empties the sets if they are from an earlier epoch. Returns false if another thread is doing
 * that. */
static bool keep_to_epoch(struct agent_header *header)
{
    uint32_t epoch = atomic_load(&header->epoch), known = 0;
    /* The first reader takes what was recorded before it came. */
    if (epoch == 1)
        atomic_compare_exchange_strong(&process->epoch, &known, epoch);
    if (atomic_load(&process->epoch) == epoch)
        return true;
    if (atomic_exchange(&process->is_clearing, 1))
        return false;
    /* Another thread may have done it since, and the sets may have objects of this epoch. */
    epoch = atomic_load(&header->epoch);
    if (atomic_load(&process->epoch) != epoch)
        forget_all(header);
    atomic_store(&process->epoch, epoch);
    atomic_store(&process->is_clearing, 0);
    return true;
}

static void tell_gone(struct agent_header *header, uint64_t address, bool is_mapping)
{
    struct ring_place place;
    if (!ring_reserve(header, AGENT_FREED, 0, &place))
        return;
    fill_record(place.record, address, 0);
    place.record->is_mapping = is_mapping;
    ring_commit(&place);
}

/* The reported stack begins here: the reader leaves out the agent's frames. */
static __attribute__((noinline)) bool tell_made(struct agent_header *header,
                                                const struct sampled *sampled, uint32_t epoch)
{
    struct capture capture;
    struct ring_place place;
    bool is_cut;
    capture_begin(&capture);
    if (!ring_reserve(header, AGENT_ALLOCATED, capture_bytes_max(&capture), &place))
        return false;
    if (atomic_load(&header->epoch) > (epoch ? epoch : 1)) {
        ring_give_up(header, &place);
        return false;
    }
    fill_record(place.record, sampled->address, sampled->bytes);
    place.record->is_mapping = sampled->is_mapping;
    place.record->stack_bytes = capture_copy(&capture, place.record->registers, &is_cut);
    place.record->is_cut = is_cut;
    ring_commit(&place);
    return true;
}

static void record_made(struct agent_header *header, const struct sampled *sampled)
{
    uint64_t stale;
    if (!keep_to_epoch(header)) {
        ring_count_lost(header, AGENT_ALLOCATED);
        return;
    }
    uint32_t epoch = atomic_load(&process->epoch);
    /* What is still known to be there was freed in a way that the agent does not see. */
    while ((stale = forget(header, sampled)))
        tell_gone(header, stale, sampled->is_mapping);
    if (!keep(header, sampled))
        ring_count_lost(header, AGENT_ALLOCATED);
    else if (!tell_made(header, sampled, epoch))
        forget(header, sampled);
}

enum when { IF_SAMPLED, ALWAYS };

static void made(const struct sampled *sampled, enum when when)
{
    struct agent_header *header = atomic_load(&process->header);
    int error = errno;
    if (!header || this_thread.is_inside)
        return;
    this_thread.is_inside = 1;
    if (when == ALWAYS || is_sampled(header, sampled->bytes))
        record_made(header, sampled);
    this_thread.is_inside = 0;
    errno = error;
}

static uint64_t gone(const struct sampled *sampled)
{
    struct agent_header *header = atomic_load(&process->header);
    int error = errno;
    uint64_t address = header ? forget(header, sampled) : 0;
    if (address)
        tell_gone(header, address, sampled->is_mapping);
    errno = error;
    return address;
}

static struct sampled an_object(const void *object, size_t bytes)
{
    return (struct sampled){.address = (uintptr_t)object, .bytes = bytes};
}

static struct sampled a_mapping(const void *memory, size_t bytes)
{
    return (struct sampled){.address = (uintptr_t)memory, .bytes = bytes, .is_mapping = true};
}

void object_made(const void *object, size_t bytes)
{
    const struct sampled sampled = an_object(object, bytes);
    made(&sampled, IF_SAMPLED);
}

bool object_gone_maybe(const void *object)
{
    const struct sampled sampled = an_object(object, 0);
    return gone(&sampled);
}

void object_stays(const void *object, size_t bytes)
{
    const struct sampled sampled = an_object(object, bytes);
    made(&sampled, ALWAYS);
}

void mapping_made(const void *memory, size_t bytes)
{
    const struct sampled sampled = a_mapping(memory, bytes);
    made(&sampled, IF_SAMPLED);
}

bool mappings_gone_maybe(const void *memory, size_t bytes)
{
    const struct sampled sampled = a_mapping(memory, bytes);
    bool any = false;
    while (gone(&sampled))
        any = true;
    return any;
}

void mapping_stays(const void *memory, size_t bytes)
{
    const struct sampled sampled = a_mapping(memory, bytes);
    made(&sampled, ALWAYS);
}
