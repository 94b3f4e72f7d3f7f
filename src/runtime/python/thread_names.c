/* threading._active has each running thread by its identifier: an integer, whose hash is its value
 * (Objects/longobject.c). A Thread has its name in the attribute _name (Lib/threading.py). */
#include "runtime/python/thread_names.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_VERSION 0x030b0000u
#define FIRST_WITH_KERNEL_NAMES 0x030e0000u

bool python_thread_names_are_read(uint32_t version)
{
    return version >= FIRST_VERSION && version < FIRST_WITH_KERNEL_NAMES;
}

/* ---- Which thread has which identity ---- */

struct identity {
    uint64_t identity;
    uint32_t native_id;
};

struct identities {
    struct identity *items; /* by identity */
    size_t count, capacity;
};

static int compare_identities(const void *a, const void *b)
{
    const struct identity *left = a, *right = b;
    return ORDER(left->identity, right->identity);
}

/* In PyThreadState, thread_id is before native_thread_id. */
static int list_identities(uint64_t runtime, const struct python_memory *memory,
                           struct identities *ret_identities)
{
    struct python_threads threads = {0};
    uint16_t identity_at = memory->layout->thread_native_id - sizeof(uint64_t);
    *ret_identities = (struct identities){0};
    int err = python_threads_read(&threads, runtime, memory, PYTHON_STATES_MAX);
    for (size_t i = 0; i < threads.count && !err; i++) {
        struct identity item = {.native_id = threads.items[i].native_id};
        if (python_read(memory, threads.items[i].state + identity_at, &item.identity,
                        sizeof item.identity))
            err = array_append(&ret_identities->items, &ret_identities->count,
                               &ret_identities->capacity, item);
    }
    array_sort(ret_identities->items, ret_identities->count, compare_identities);
    python_threads_free(&threads);
    return err;
}

/* ---- Names ---- */

static int compare_names(const void *a, const void *b)
{
    const struct python_thread_name *left = a, *right = b;
    return ORDER(left->native_id, right->native_id);
}

/* Reads the name of entry `number`, then rereads what led to it. Returns false if there is none, or
 * it has changed. */
static bool read_name(const struct python_memory *memory, const struct python_dict *active,
                      uint64_t number, const struct python_dict_entry *entry,
                      char ret_name[PYTHON_THREAD_NAME_BYTES])
{
    struct python_dict_entry again;
    char text[PYTHON_TEXT_BYTES];
    uint64_t name = python_attribute(memory, entry->value, "_name");
    if (!name)
        return false;
    python_text_read(memory, name, text);
    size_t bytes = utf8_cut(text, strlen(text), PYTHON_THREAD_NAME_BYTES - 1);
    memcpy(ret_name, text, bytes);
    ret_name[bytes] = '\0';
    return *ret_name && python_attribute(memory, entry->value, "_name") == name &&
           python_dict_entry(memory, active, number, &again) && again.hash == entry->hash &&
           again.value == entry->value;
}

static int add_names(struct python_thread_names *names, const struct identities *identities,
                     const struct python_memory *memory, const struct python_dict *active)
{
    struct python_dict_entry entry;
    for (uint64_t i = 0; i < active->count && python_dict_entry(memory, active, i, &entry); i++) {
        const struct identity *known =
            FIND_SORTED(identities->items, identities->count, identity, entry.hash);
        if (!entry.value || !known)
            continue;
        if (array_reserve(&names->items, &names->capacity, names->count + 1))
            return -ENOMEM;
        struct python_thread_name *added = &names->items[names->count];
        added->native_id = known->native_id;
        names->count += read_name(memory, active, i, &entry, added->text);
    }
    return 0;
}

int python_thread_names_read(struct python_thread_names *names, uint64_t runtime,
                             const struct python_memory *memory)
{
    struct identities identities;
    struct python_dict active;
    const struct python_modules modules = python_modules_of(memory, runtime);
    names->count = 0;
    uint64_t dict = python_global(memory, &modules, "threading", "_active");
    if (!python_dict_open(memory, dict, &active) || !active.is_general)
        return 0;
    int err = list_identities(runtime, memory, &identities);
    if (!err && identities.count)
        err = add_names(names, &identities, memory, &active);
    free(identities.items);
    array_sort(names->items, names->count, compare_names);
    return err;
}

const char *python_thread_names_find(const struct python_thread_names *names, pid_t native_id)
{
    const struct python_thread_name *found =
        FIND_SORTED(names->items, names->count, native_id, (uint32_t)native_id);
    return found ? found->text : NULL;
}

#define MADE_UP_PREFIX "Thread-"

void python_thread_name_join(const char *name, char ret_name[PYTHON_THREAD_NAME_BYTES])
{
    size_t prefix = strlen(MADE_UP_PREFIX);
    bool may_be = strncmp(name, MADE_UP_PREFIX, prefix) == 0;
    size_t digits = may_be ? strspn(name + prefix, "0123456789") : 0;
    strcpy(ret_name, name);
    if (digits && (name[prefix + digits] == '\0' || name[prefix + digits] == ' '))
        strcpy(ret_name + prefix - 1, name + prefix + digits);
}

void python_thread_names_free(struct python_thread_names *names)
{
    free(names->items);
    *names = (struct python_thread_names){0};
}
