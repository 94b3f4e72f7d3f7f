/* The functions of fgprof_profiles.h: the values of custom profiles, and their stacks, in memory
 * that fgprof-c reads: values_format.h. Only this file knows where each value is kept, in memory
 * that does not come from an allocator. Any thread may call these functions; a signal handler may
 * not.
 *
 * A child of fork has neither of the two memories, and finds locks as new: it has the profiles by
 * name, without values, and makes memory of its own when it adds one. */
#include "agent/capture.h"
#include "agent/helper.h"
#include "agent/pages.h"
#include "agent/this_thread.h"
#include "agent/values_format.h"
#include "base/file_limit.h"
#include "base/random.h"
#include "base/text.h"
#include "fgprof_profiles.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

#define SHARD_BITS 6
#define SHARDS (1u << SHARD_BITS)
#define ENTRIES_FIRST 256u /* a page */

struct fgprof_custom_profile {
    uint32_t number; /* in values_header.profiles */
    char name[VALUES_NAME_BYTES];
};

/* Where a value is: the slot's offset in units of VALUES_SLOT_ALIGNMENT; 0: it has none. */
struct entry {
    uint64_t value;
    uint32_t profile_plus_1; /* 0: the entry is free */
    uint32_t slot;
};

/* A part of all values, by their hashes: a table with open addressing and linear probing. */
struct shard {
    _Alignas(64) pthread_mutex_t lock;
    struct entry *entries;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t used;
};

/* Slots of one size. */
struct slot_class {
    _Alignas(64) pthread_mutex_t lock;
    uint64_t free;        /* the offset of the first that is free again; 0: none */
    uint32_t slab_plus_1; /* the slab of which not all slots were used yet */
};

/* All that a child of fork must not have: zeroed in it, with unlocked locks. */
struct store {
    pthread_mutex_t lock; /* for names, and to make the memory */
    _Atomic(struct values_header *) header;
    uint32_t slabs_max;
    struct shard shards[SHARDS];
    struct slot_class classes[VALUES_CLASSES];
};

static _Atomic(struct store *) the_store;
static struct fgprof_custom_profile profiles[VALUES_PROFILES_MAX];
static _Atomic uint32_t profile_count;

/* Makes the store, or takes the one that another thread has just made. NULL: no memory. */
static struct store *get_store(void)
{
    struct store *store = atomic_load_explicit(&the_store, memory_order_acquire), *made;
    if (store)
        return store;
    made = pages_new(sizeof *made);
    if (!made || atomic_compare_exchange_strong(&the_store, &store, made))
        return made;
    pages_free(made, sizeof *made);
    return store;
}

/* The size of the shared memory, within the limit of a file's size. */
static uint64_t shared_bytes(void)
{
    uint64_t limit = file_limit_bytes();
    return limit >= VALUES_BYTES_MAX ? VALUES_BYTES_MAX : limit - limit % VALUES_SLAB_BYTES;
}

/* A program that locks everything it maps (mlockall(2)) would have the whole of it in memory from
 * the start, except for inaccessible parts. A core dump would contain it, too. */
static struct values_header *map_shared(int fd, size_t bytes)
{
    long address = syscall(SYS_mmap, NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    void *memory = (void *)address;
    if (address == -1)
        return NULL;
    if (!madvise(memory, bytes, MADV_DONTFORK) && !madvise(memory, bytes, MADV_DONTDUMP) &&
        !mprotect(memory, bytes, PROT_READ | PROT_WRITE))
        return memory;
    pages_free(memory, bytes);
    return NULL;
}

/* Makes the shared memory, still without contents. No call here ends a thread that is cancelled. */
static int make_shared(uint64_t bytes, struct values_header **ret_header)
{
    struct values_header *header = NULL;
    int fd = memfd_create(VALUES_MEMFD, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0)
        fd = memfd_create(VALUES_MEMFD, MFD_CLOEXEC);
    int err = fd < 0 || ftruncate(fd, (off_t)bytes) ? -errno : 0;
    if (!err)
        header = map_shared(fd, bytes);
    if (fd >= 0)
        syscall(SYS_close, fd);
    if (err)
        return err;
    *ret_header = header;
    return header ? 0 : -ENOMEM;
}

static void publish_names(struct values_header *header)
{
    uint32_t count = atomic_load(&profile_count);
    for (uint32_t i = 0; i < count; i++)
        memcpy(header->profiles[i].name, profiles[i].name, VALUES_NAME_BYTES);
    atomic_store_explicit(&header->profile_count, count, memory_order_release);
}

/* With the lock. */
static int make_header(struct store *store)
{
    struct values_header *header;
    uint64_t bytes = shared_bytes();
    if (bytes < VALUES_HEADER_BYTES)
        return -EFBIG;
    int err = make_shared(bytes, &header);
    if (err)
        return err;
    store->slabs_max = (uint32_t)((bytes - VALUES_HEADER_BYTES) / VALUES_SLAB_BYTES);
    header->version = VALUES_VERSION;
    header->pid = (uint32_t)getpid();
    header->bytes = bytes;
    strncpy(header->release, FGPROF_VERSION, sizeof header->release - 1);
    publish_names(header);
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, VALUES_MAGIC, sizeof header->magic);
    atomic_store_explicit(&store->header, header, memory_order_release);
    return 0;
}

/* NULL: nothing was added yet. */
static struct values_header *header_of(const struct store *store)
{
    return store ? atomic_load_explicit(&store->header, memory_order_acquire) : NULL;
}

static int ensure_header(struct store *store)
{
    if (header_of(store))
        return 0;
    pthread_mutex_lock(&store->lock);
    int err = header_of(store) ? 0 : make_header(store);
    pthread_mutex_unlock(&store->lock);
    return err;
}

static bool is_built_in(const char *name)
{
    static const char *const names[] = {
        "fgprof", "wall",   "cpu",          "profile",   "block", "mutex",  "blame",   "heap",
        "allocs", "growth", "threadcreate", "goroutine", "trace", "symbol", "cmdline",
    };
    return text_is_any(name, names, COUNT_OF(names));
}

/* With the lock. */
static int append_profile(struct store *store, const char *name)
{
    uint32_t count = atomic_load(&profile_count);
    if (fgprof_custom_lookup(name))
        return -EEXIST;
    if (count == VALUES_PROFILES_MAX)
        return -ENOSPC;
    int err = header_of(store) ? 0 : make_header(store);
    if (err)
        return err;
    profiles[count].number = count;
    strncpy(profiles[count].name, name, VALUES_NAME_BYTES - 1);
    atomic_store_explicit(&profile_count, count + 1, memory_order_release);
    publish_names(header_of(store));
    return 0;
}

int fgprof_custom_new(const char *name, fgprof_custom_profile **ret_profile)
{
    if (!values_name_is_valid(name))
        return -EINVAL;
    if (is_built_in(name))
        return -EPERM;
    struct store *store = get_store();
    if (!store)
        return -ENOMEM;
    pthread_mutex_lock(&store->lock);
    int err = append_profile(store, name);
    if (!err)
        *ret_profile = &profiles[atomic_load(&profile_count) - 1];
    pthread_mutex_unlock(&store->lock);
    return err;
}

fgprof_custom_profile *fgprof_custom_lookup(const char *name)
{
    uint32_t count = atomic_load_explicit(&profile_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    }
    return NULL;
}

/* The profile with the least name that is greater than `name`; NULL: there is none. */
static fgprof_custom_profile *find_next(const char *name)
{
    fgprof_custom_profile *next = NULL;
    uint32_t count = atomic_load_explicit(&profile_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(profiles[i].name, name) > 0 &&
            (!next || strcmp(profiles[i].name, next->name) < 0))
            next = &profiles[i];
    }
    return next;
}

void fgprof_custom_each(fgprof_custom_fn *function, void *context)
{
    fgprof_custom_profile *profile = find_next("");
    for (; profile; profile = find_next(profile->name))
        function(profile, context);
}

const char *fgprof_custom_name(const fgprof_custom_profile *profile)
{
    return profile->name;
}

int fgprof_custom_write(fgprof_custom_profile *profile, int fd, int debug)
{
    const char *const words[] = {HELPER_WRITES, profile->name, debug ? "text" : "pprof"};
    struct helper helper;
    if (debug != 0 && debug != 1)
        return -EINVAL;
    int err = helper_begin(fd, words, &helper);
    if (!err)
        helper_dismiss(&helper);
    return err;
}

/* ---- Slots ---- */

static struct values_slot *slot_at(struct values_header *header, uint64_t offset)
{
    return (struct values_slot *)((char *)header + offset);
}

static uint32_t class_of_slot(struct values_header *header, uint64_t offset)
{
    const struct values_slab *slab =
        &header->slabs[(offset - VALUES_HEADER_BYTES) / VALUES_SLAB_BYTES];
    return atomic_load_explicit(&slab->class_plus_1, memory_order_relaxed) - 1;
}

static uint32_t class_of_bytes(size_t stack_bytes)
{
    uint32_t size_class = 0;
    while (values_class_stack_bytes(size_class) < stack_bytes)
        size_class++;
    return size_class;
}

/* Returns the number of a slab + 1; 0: there is none left. */
static uint32_t take_slab(const struct store *store, uint32_t size_class)
{
    struct values_header *header = header_of(store);
    uint32_t number = atomic_load(&header->slab_count);
    do {
        if (number >= store->slabs_max)
            return 0;
    } while (!atomic_compare_exchange_weak(&header->slab_count, &number, number + 1));
    atomic_store(&header->slabs[number].class_plus_1, size_class + 1);
    return number + 1;
}

/* With the class's lock. Returns the offset of a slot that was never used; 0: none. */
static uint64_t take_new_slot(struct store *store, uint32_t number)
{
    struct slot_class *slots = &store->classes[number];
    struct values_header *header = header_of(store);
    if (slots->slab_plus_1 &&
        atomic_load(&header->slabs[slots->slab_plus_1 - 1].used) == values_class_slots(number))
        slots->slab_plus_1 = 0;
    if (!slots->slab_plus_1)
        slots->slab_plus_1 = take_slab(store, number);
    if (!slots->slab_plus_1)
        return 0;
    uint32_t slab = slots->slab_plus_1 - 1;
    uint32_t slot = atomic_fetch_add(&header->slabs[slab].used, 1);
    return VALUES_HEADER_BYTES + (uint64_t)slab * VALUES_SLAB_BYTES +
           (uint64_t)slot * values_class_slot_bytes(number);
}

static uint64_t take_slot_of(struct store *store, uint32_t number)
{
    struct slot_class *slots = &store->classes[number];
    pthread_mutex_lock(&slots->lock);
    uint64_t offset = slots->free;
    if (offset)
        slots->free = slot_at(header_of(store), offset)->next_free;
    else
        offset = take_new_slot(store, number);
    pthread_mutex_unlock(&slots->lock);
    return offset;
}

/* Returns the offset of a slot for a stack of that size. If all of its class are taken: of a larger
 * class, or else of the largest smaller one. 0: there is no slot at all. */
static uint64_t take_slot(struct store *store, size_t stack_bytes)
{
    uint32_t wanted = class_of_bytes(stack_bytes);
    uint64_t offset = 0;
    for (uint32_t size_class = wanted; !offset && size_class < VALUES_CLASSES; size_class++)
        offset = take_slot_of(store, size_class);
    for (uint32_t size_class = wanted; !offset && size_class; size_class--)
        offset = take_slot_of(store, size_class - 1);
    return offset;
}

static void give_slot(struct store *store, uint64_t offset)
{
    struct values_header *header = header_of(store);
    struct slot_class *slots = &store->classes[class_of_slot(header, offset)];
    pthread_mutex_lock(&slots->lock);
    slot_at(header, offset)->next_free = slots->free;
    slots->free = offset;
    pthread_mutex_unlock(&slots->lock);
}

/* A slot has one writer at a time: the one that has taken it, or knows where it is. */
static void begin_change(struct values_slot *slot)
{
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static void end_change(struct values_slot *slot)
{
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_release);
}

static void free_slot(struct store *store, uint64_t offset)
{
    struct values_slot *slot = slot_at(header_of(store), offset);
    begin_change(slot);
    slot->profile_plus_1 = 0;
    end_change(slot);
    give_slot(store, offset);
}

/* Moves a stack that turned out shorter than there is room for. Returns where it is now. */
static uint64_t fit(struct store *store, uint64_t offset)
{
    struct values_header *header = header_of(store);
    struct values_slot *from = slot_at(header, offset), *to;
    uint32_t size_class = class_of_bytes(from->stack_bytes);
    if (size_class >= class_of_slot(header, offset))
        return offset;
    uint64_t smaller = take_slot_of(store, size_class);
    if (!smaller)
        return offset;
    to = slot_at(header, smaller);
    begin_change(to);
    memcpy(&to->profile_plus_1, &from->profile_plus_1,
           sizeof *to - offsetof(struct values_slot, profile_plus_1) + from->stack_bytes);
    end_change(to);
    free_slot(store, offset);
    return smaller;
}

/* Returns the offset of the slot that has the value now; 0: there is no room. */
static uint64_t fill_slot(struct store *store, uint32_t profile, uint64_t value, uint32_t skip,
                          const struct capture *capture)
{
    struct values_header *header = header_of(store);
    struct capture taken = *capture;
    uint64_t offset = take_slot(store, capture->stack_bytes);
    if (!offset)
        return 0;
    struct values_slot *slot = slot_at(header, offset);
    uint32_t room = values_class_stack_bytes(class_of_slot(header, offset));
    bool is_cut;
    if (taken.stack_bytes > room) {
        taken.stack_bytes = room;
        taken.is_cut = true;
    }
    begin_change(slot);
    slot->profile_plus_1 = profile + 1;
    slot->value = value;
    slot->tid = this_thread_tid();
    slot->skip = skip;
    slot->stack_bytes = capture_copy(&taken, slot->registers, &is_cut);
    slot->is_cut = is_cut;
    end_change(slot);
    return fit(store, offset);
}

/* ---- Which value is in which slot ---- */

static uint64_t hash_of(uint32_t profile, uint64_t value)
{
    return random_number(profile, value);
}

static struct shard *shard_of(struct store *store, uint32_t profile, uint64_t value)
{
    return &store->shards[hash_of(profile, value) >> (64 - SHARD_BITS)];
}

/* The entry that has the value, or the free one where it belongs; NULL: there are none yet. */
static struct entry *find(const struct shard *shard, uint32_t profile, uint64_t value)
{
    uint64_t mask = shard->capacity - 1, at = hash_of(profile, value);
    if (!shard->capacity)
        return NULL;
    for (;; at++) {
        struct entry *entry = &shard->entries[at & mask];
        if (!entry->profile_plus_1 ||
            (entry->profile_plus_1 == profile + 1 && entry->value == value))
            return entry;
    }
}

/* Makes room for one more entry, and leaves a quarter free if there is memory. At least one entry
 * is always free, so that a search ends. Returns false if there is no room. */
static bool grow(struct shard *shard)
{
    struct shard grown = *shard;
    if (shard->used + 1 <= shard->capacity / 4 * 3)
        return true;
    grown.capacity = shard->capacity ? 2 * shard->capacity : ENTRIES_FIRST;
    grown.entries = pages_new(grown.capacity * sizeof *grown.entries);
    if (!grown.entries)
        return shard->used + 1 < shard->capacity;
    for (uint32_t i = 0; i < shard->capacity; i++) {
        const struct entry *entry = &shard->entries[i];
        if (entry->profile_plus_1)
            *find(&grown, entry->profile_plus_1 - 1, entry->value) = *entry;
    }
    if (shard->capacity)
        pages_free(shard->entries, shard->capacity * sizeof *shard->entries);
    shard->entries = grown.entries;
    shard->capacity = grown.capacity;
    return true;
}

/* Frees an entry. Those that stand behind it because it was taken move up. */
static void remove_entry(struct shard *shard, struct entry *entry)
{
    uint64_t mask = shard->capacity - 1, hole = (uint64_t)(entry - shard->entries);
    for (uint64_t at = (hole + 1) & mask; shard->entries[at].profile_plus_1; at = (at + 1) & mask) {
        const struct entry *other = &shard->entries[at];
        uint64_t home = hash_of(other->profile_plus_1 - 1, other->value);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            shard->entries[hole] = *other;
            hole = at;
        }
    }
    shard->entries[hole] = (struct entry){0};
    shard->used--;
}

/* With the shard's lock. */
static int add(struct store *store, struct shard *shard, uint32_t profile, uint64_t value,
               uint32_t skip, const struct capture *capture)
{
    struct values_profile *counted = &header_of(store)->profiles[profile];
    if (!grow(shard))
        return -ENOMEM;
    struct entry *entry = find(shard, profile, value);
    if (entry->profile_plus_1)
        return -EEXIST;
    uint64_t offset = fill_slot(store, profile, value, skip, capture);
    *entry = (struct entry){
        .value = value,
        .profile_plus_1 = profile + 1,
        .slot = (uint32_t)(offset / VALUES_SLOT_ALIGNMENT),
    };
    shard->used++;
    atomic_fetch_add(&counted->count, 1);
    if (!offset)
        atomic_fetch_add(&counted->without_slot, 1);
    return 0;
}

/* A separate function, so that the next one's whole frame is in the copied stack. */
static __attribute__((noinline)) int add_value(const struct fgprof_custom_profile *profile,
                                               uint64_t value, uint32_t skip,
                                               const struct capture *capture)
{
    struct store *store = get_store();
    if (!store)
        return -ENOMEM;
    int err = ensure_header(store);
    if (err)
        return err;
    struct shard *shard = shard_of(store, profile->number, value);
    pthread_mutex_lock(&shard->lock);
    err = add(store, shard, profile->number, value, skip, capture);
    pthread_mutex_unlock(&shard->lock);
    return err;
}

int fgprof_custom_add(fgprof_custom_profile *profile, const void *value, unsigned skip)
{
    struct capture capture;
    capture_begin(&capture);
    return add_value(profile, (uintptr_t)value, skip, &capture);
}

void fgprof_custom_remove(fgprof_custom_profile *profile, const void *value)
{
    struct store *store = get_store();
    struct values_header *header = header_of(store);
    if (!header)
        return;
    struct values_profile *counted = &header->profiles[profile->number];
    struct shard *shard = shard_of(store, profile->number, (uintptr_t)value);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = find(shard, profile->number, (uintptr_t)value);
    if (entry && entry->profile_plus_1) {
        if (entry->slot)
            free_slot(store, (uint64_t)entry->slot * VALUES_SLOT_ALIGNMENT);
        else
            atomic_fetch_sub(&counted->without_slot, 1);
        remove_entry(shard, entry);
        atomic_fetch_sub(&counted->count, 1);
    }
    pthread_mutex_unlock(&shard->lock);
}

size_t fgprof_custom_count(const fgprof_custom_profile *profile)
{
    struct values_header *header = header_of(atomic_load(&the_store));
    return header ? atomic_load(&header->profiles[profile->number].count) : 0;
}
