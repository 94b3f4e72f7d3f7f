#include "profile/name_waits.h"
#include "profile/frame.h"
#include "reader/reader.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/index.h"
#include "mapping/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of C++ classes, each looked up once, because a lookup reads all symbols of a file. */
struct class_key {
    const struct module *module;
    uint64_t vtable; /* the module's own address */
};

struct class_name {
    struct class_key key;
    char *name; /* NULL: it has none */
};

struct class_names {
    struct reader *reader;
    struct class_name *items;
    size_t count, capacity;
    struct index index;
};

static int add_class(struct class_names *names, const struct class_key *key, uint32_t *ret_number)
{
    struct class_name added = {.key = *key};
    int err = reader_find_class(names->reader, key->module, key->vtable, &added.name);
    if (err == -ENOMEM || INDEX_INTERN(&names->index, sizeof *key, &added, &names->items,
                                       &names->count, &names->capacity, ret_number)) {
        if (!err)
            free(added.name);
        return -ENOMEM;
    }
    return 0;
}

/* Finds the class with a vtable at this address. It belongs to `names`, and is NULL if no symbol
 * shows it. Returns 0 or -ENOMEM. */
static int class_names_get(struct class_names *names, const struct space *space, uint64_t vtable,
                           const char **ret_name)
{
    const struct mapping *mapping = vtable ? space_find_memory(space, vtable) : NULL;
    *ret_name = NULL;
    if (!mapping)
        return 0;
    const struct class_key key = {mapping->module, vtable - mapping->bias};
    uint32_t found = INDEX_FIND(&names->index, sizeof key, &key, names->items);
    if (found == INDEX_NONE && add_class(names, &key, &found))
        return -ENOMEM;
    *ret_name = names->items[found].name;
    return 0;
}

static void class_names_free(struct class_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
    index_free(&names->index);
}

struct naming {
    struct fgprof_profile *profile;
    const struct named_rows *named;
    uint32_t *waits_plus_1; /* by the number of a counted row: those that have names */
    struct class_names classes;
};

/* The name of a variable, "g_lock" or "g_table+0x28", else its address in its file. */
static int name_variable(struct reader *reader, const struct mapping *mapping, uint64_t address,
                         char name[RESOURCE_NAME_BYTES])
{
    uint64_t own = address - mapping->bias, offset;
    char *variable;
    int err = reader_find_variable(reader, mapping->module, own, &variable, &offset);
    if (err == -ENOMEM)
        return err;
    if (err)
        snprintf(name, RESOURCE_NAME_BYTES, "%s+0x%" PRIx64, basename(mapping->path), own);
    else if (offset)
        snprintf(name, RESOURCE_NAME_BYTES, "%s+0x%" PRIx64, variable, offset);
    else
        snprintf(name, RESOURCE_NAME_BYTES, "%s", variable);
    if (!err)
        free(variable);
    return 0;
}

/* "mutex g_lock". A lock in anonymous memory is named by the class of its object, if known, and its
 * address: "mutex in net::Connection 0x55d0c0", "mutex 0x55d0c0". */
static int name_lock(struct naming *naming, const struct counted_wait *counted, uint32_t *ret_name)
{
    const struct space *space = naming->named->spaces->items[counted->space];
    const struct mapping *mapping = space_find_memory(space, counted->key);
    const char *kind = resource_kind_name((enum resource_kind)counted->kind), *class = NULL;
    char place[RESOURCE_NAME_BYTES];
    int err = 0;
    if (mapping) {
        err = name_variable(naming->named->reader, mapping, counted->key, place);
    } else {
        snprintf(place, sizeof place, "0x%" PRIx64, counted->key);
        err = class_names_get(&naming->classes, space, counted->vtable, &class);
    }
    return err ? err
               : strings_print(&naming->profile->strings, ret_name, "%s%s%s %s", kind,
                               class ? " in " : "", class ? class : "", place);
}

/* Resources outside memory were named while the thread waited. `owner` is the process that has the
 * resource or its other end, such as "redis-server/123"; "": not known. */
static int name_peer(struct fgprof_profile *profile, const struct counted_wait *counted,
                     const char *name, const char *owner, uint32_t *ret_name)
{
    const char *link = !*owner                               ? ""
                       : counted->kind == RESOURCE_CPU       ? " used by "
                       : counted->kind == RESOURCE_PROCESS   ? " "
                       : counted->kind == RESOURCE_FILE_LOCK ? " of "
                                                             : " to ";
    if (counted->kind == RESOURCE_PROCESS && *owner)
        name = resource_kind_name(RESOURCE_PROCESS);
    return strings_print(&profile->strings, ret_name, "%s%s%s", name, link, owner);
}

static int name_resource(struct naming *naming, const struct counted_wait *counted,
                         const char *owner, uint32_t *ret_name)
{
    const struct strings *strings = naming->named->strings;
    struct strings *names = &naming->profile->strings;
    const char *kind = resource_kind_name((enum resource_kind)counted->kind);
    *ret_name = 0;
    if (counted->kind == RESOURCE_NOT_KNOWN)
        return 0;
    if (!counted->key && counted->kind != RESOURCE_THREAD)
        return strings_print(names, ret_name, "%s " STRING_OTHER, kind);
    if (counted->kind == RESOURCE_GIL)
        return strings_intern(names, kind, ret_name);
    if (resource_is_lock((enum resource_kind)counted->kind))
        return name_lock(naming, counted, ret_name);
    if (counted->kind != RESOURCE_THREAD)
        return name_peer(naming->profile, counted, strings_get(strings, (uint32_t)counted->key),
                         owner, ret_name);
    return *owner ? strings_print(names, ret_name, "end of thread %s",
                                  strings_get(strings, counted->owner_name))
                  : strings_intern(names, kind, ret_name);
}

/* Sets the owner. *ret_process is its process, like "redis-server/123", or "". */
static int name_owner(struct naming *naming, const struct counted_wait *counted,
                      struct profile_wait *wait, char **ret_process)
{
    struct fgprof_profile *profile = naming->profile;
    const struct named_rows *named = naming->named;
    *ret_process = NULL;
    /* The owner's process has no samples. */
    if (counted->owner_process == WAIT_NO_OWNER || !named->processes_plus_1[counted->owner_process])
        return (*ret_process = strdup("")) ? 0 : -ENOMEM;
    wait->owner_process = named->processes_plus_1[counted->owner_process] - 1;
    wait->owner_tid = counted->owner_tid;
    if (counted->owner_stack != WAIT_NO_STACK)
        wait->owner_stack = named->stacks[counted->owner_stack];
    if (counted->owner_wait_plus_1)
        wait->owner_wait_plus_1 = naming->waits_plus_1[counted->owner_wait_plus_1 - 1];
    const struct profile_process *process = &profile->processes[wait->owner_process];
    const char *name = strings_get(&profile->strings, process->name);
    int length = process->pid ? asprintf(ret_process, "%s/%" PRIu32, name, process->pid)
                              : asprintf(ret_process, "%s", name);
    if (length < 0) {
        *ret_process = NULL;
        return -ENOMEM;
    }
    const char *thread = strings_get(named->strings, counted->owner_name);
    bool is_known = *thread || resource_is_lock((enum resource_kind)counted->kind);
    return strings_intern(&profile->strings, is_known ? thread : *ret_process, &wait->owner_name);
}

/* Sets the waker. */
static int name_waker(struct naming *naming, const struct counted_wait *counted,
                      struct profile_wait *wait)
{
    static const char *const forms[WAKER_KIND_COUNT] = {
        [WAKER_UNKNOWN] = "",        [WAKER_THREAD] = "%s",
        [WAKER_OTHER_THREAD] = "%s", [WAKER_KERNEL_THREAD] = "kernel thread %s",
        [WAKER_TIMER] = "timer",     [WAKER_NETWORK] = "network",
        [WAKER_DISK] = "disk",       [WAKER_INTERRUPT] = "interrupt",
    };
    const struct named_rows *named = naming->named;
    const char *kernel_names = strings_get(named->strings, counted->waker_kernel_stack);
    uint32_t stack = PROFILE_NO_STACK;
    int err = strings_print(&naming->profile->strings, &wait->waker, forms[counted->waker_kind],
                            strings_get(named->strings, counted->waker_name));
    if (counted->waker_process_plus_1) {
        wait->waker_process_plus_1 = named->processes_plus_1[counted->waker_process_plus_1 - 1];
        wait->waker_tid = counted->waker_tid;
    }
    if (counted->waker_stack_plus_1)
        stack = named->stacks[counted->waker_stack_plus_1 - 1];
    if (!err && *kernel_names)
        err = profile_add_kernel_frames(naming->profile, kernel_names, &stack);
    wait->waker_stack_plus_1 = stack + 1;
    return err;
}

static int name_wait(struct naming *naming, const struct counted_wait *counted, uint32_t *ret_wait)
{
    struct profile_wait wait = {.owner_process = PROFILE_NO_OWNER, .owner_stack = PROFILE_NO_STACK};
    char *owner;
    int err = name_owner(naming, counted, &wait, &owner);
    if (!err)
        err = name_resource(naming, counted, owner, &wait.resource);
    free(owner);
    if (!err)
        err = strings_intern(&naming->profile->strings,
                             resource_kind_name((enum resource_kind)counted->kind), &wait.kind);
    if (!err)
        err = name_waker(naming, counted, &wait);
    return err ? err : profile_add_wait(naming->profile, &wait, ret_wait);
}

int name_waits(struct fgprof_profile *profile, const struct waits *waits,
               const struct named_rows *named, const bool *is_used, uint32_t **ret_waits)
{
    uint32_t *numbers = calloc(waits->count + 1, sizeof *numbers);
    struct naming naming = {.profile = profile,
                            .named = named,
                            .waits_plus_1 = numbers,
                            .classes.reader = named->reader};
    int err = numbers ? 0 : -ENOMEM;
    for (size_t i = 0; i < waits->count && !err; i++) {
        uint32_t number;
        if (!is_used[i])
            continue;
        err = name_wait(&naming, &waits->rows[i], &number);
        numbers[i] = number + 1;
    }
    class_names_free(&naming.classes);
    if (err) {
        free(numbers);
        return err;
    }
    *ret_waits = numbers;
    return 0;
}

size_t innermost_frames(const struct fgprof_profile *profile, uint32_t number,
                        struct lock_frame ret_frames[LOCK_FRAMES_MAX])
{
    const struct profile_stack *stack = &profile->stacks[number];
    size_t count = 0;
    for (size_t i = 0; i < stack->depth; i++) {
        const struct profile_location *location = stack_location(profile, stack, i);
        const char *path = "";
        if (location->mapping != PROFILE_NO_MAPPING)
            path = strings_get(&profile->strings, profile->mappings[location->mapping].path);
        for (uint32_t j = 0; j < location->line_count && !location->is_kernel; j++) {
            uint32_t function = profile->lines[location->first_line + j].function;
            if (count == LOCK_FRAMES_MAX)
                return count;
            ret_frames[count++] = (struct lock_frame){
                strings_get(&profile->strings, profile->functions[function].system_name), path};
        }
    }
    return count;
}

/* "futex 0x55d0c0" becomes "mutex 0x55d0c0". */
static int rename_lock(struct fgprof_profile *profile, struct profile_wait *wait,
                       enum resource_kind kind)
{
    const char *name = strings_get(&profile->strings, wait->resource);
    const char *place = name + strlen(resource_kind_name(RESOURCE_FUTEX));
    int err =
        strings_print(&profile->strings, &wait->resource, "%s%s", resource_kind_name(kind), place);
    return err ? err : strings_intern(&profile->strings, resource_kind_name(kind), &wait->kind);
}

int name_other_locks(struct fgprof_profile *profile)
{
    uint32_t unknown;
    int err = strings_intern(&profile->strings, resource_kind_name(RESOURCE_FUTEX), &unknown);
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        struct lock_frame frames[LOCK_FRAMES_MAX];
        if (!sample->wait_plus_1 || profile->waits[sample->wait_plus_1 - 1].kind != unknown)
            continue;
        size_t count = innermost_frames(profile, sample->stack, frames);
        const struct lock_site site = lock_site_of(frames, count);
        if (site.kind != RESOURCE_FUTEX)
            err = rename_lock(profile, &profile->waits[sample->wait_plus_1 - 1], site.kind);
    }
    /* The index is stale, and not needed any more. */
    index_free(&profile->wait_index);
    profile->wait_index = (struct index){0};
    return err;
}

/* How many functions a path names, from the innermost one; and how many of the kernel. */
#define PATH_FUNCTIONS_MAX 6
#define PATH_KERNEL_MAX 64

/* "main > put", or "... > handle > put". */
static void put_path(const struct fgprof_profile *profile, uint32_t number, struct buffer *text)
{
    const struct profile_stack *stack = &profile->stacks[number];
    const char *names[PATH_KERNEL_MAX + PATH_FUNCTIONS_MAX];
    struct frame_walk walk = {0};
    struct profile_frame frame;
    size_t count = 0, kernel_count = 0;
    bool is_cut = false;
    while (!is_cut && frame_next_from_leaf(profile, stack, &walk, &frame)) {
        if (!frame.line || frame.location->is_note)
            continue;
        kernel_count += frame.location->is_kernel && kernel_count < PATH_KERNEL_MAX;
        is_cut = count == kernel_count + (frame.location->is_kernel ? 0 : PATH_FUNCTIONS_MAX);
        if (!is_cut)
            names[count++] =
                strings_get(&profile->strings, profile->functions[frame.line->function].name);
    }
    buffer_puts(text, is_cut ? "... > " : "");
    while (count--)
        buffer_print(text, "%s%s", names[count], count ? " > " : "");
}

/* Interns the text, and frees it. */
static int intern_text(struct fgprof_profile *profile, struct buffer *text, uint32_t *ret_id)
{
    int err = text->error;
    if (!err)
        err = strings_intern(&profile->strings, text->bytes, ret_id);
    buffer_free(text);
    return err;
}

int name_waker_paths(struct fgprof_profile *profile)
{
    int err = 0;
    for (size_t i = 0; i < profile->wait_count && !err; i++) {
        struct profile_wait *wait = &profile->waits[i];
        struct buffer path = {0};
        if (!wait->waker_stack_plus_1)
            continue;
        put_path(profile, wait->waker_stack_plus_1 - 1, &path);
        err = intern_text(profile, &path, &wait->waker_path);
    }
    return err;
}

/* What the lines about deadlocks are made of. */
struct wording {
    const struct fgprof_profile *profile;
    const struct named_rows *named;
    const uint32_t *waits;
    uint64_t begin_ns;
};

static void put_thread(const struct wording *wording, struct buffer *text,
                       const struct deadlock_thread *thread)
{
    buffer_print(text, "\"%s\" (%u)", strings_get(wording->named->strings, thread->name),
                 thread->tid);
}

/* "waits for mutex g_lock of ", or "waits for the end of ". */
static void put_wait(const struct wording *wording, struct buffer *text,
                     const struct deadlock_thread *thread)
{
    const struct strings *strings = &wording->profile->strings;
    uint32_t number = thread->wait_plus_1 ? wording->waits[thread->wait_plus_1 - 1] : 0;
    const struct profile_wait *wait = number ? &wording->profile->waits[number - 1] : NULL;
    bool is_for_end =
        wait && strcmp(strings_get(strings, wait->kind), resource_kind_name(RESOURCE_THREAD)) == 0;
    buffer_print(text, " waits for %s",
                 is_for_end ? "the end"
                 : wait     ? strings_get(strings, wait->resource)
                            : "a lock");
}

static void put_deadlock(const struct wording *wording, struct buffer *text,
                         const struct deadlock_thread *threads, size_t count)
{
    uint64_t since_ns =
        threads->since_ns > wording->begin_ns ? threads->since_ns - wording->begin_ns : 0;
    buffer_print(text, "deadlock since %.1f s: ", (double)since_ns / 1e9);
    put_thread(wording, text, threads);
    for (size_t i = 0; i < count; i++) {
        buffer_puts(text, i ? ", which" : "");
        put_wait(wording, text, &threads[i]);
        buffer_puts(text, count == 1 ? ", which it has itself" : " of ");
        if (count > 1)
            put_thread(wording, text, &threads[(i + 1) % count]);
    }
}

static int add(const struct wording *wording, struct fgprof_profile *profile,
               const struct deadlock_thread *threads, size_t count)
{
    struct buffer line = {0};
    uint32_t id;
    put_deadlock(wording, &line, threads, count);
    int err = intern_text(profile, &line, &id);
    return err ? err
               : array_append(&profile->deadlocks, &profile->deadlock_count,
                              &profile->deadlock_capacity, id);
}

int name_deadlocks(struct fgprof_profile *profile, const struct deadlocks *deadlocks,
                   uint64_t begin_ns, const struct named_rows *named, const uint32_t *waits)
{
    const struct wording wording = {profile, named, waits, begin_ns};
    int err = 0;
    for (size_t i = 0, next; i < deadlocks->row_count && !err; i = next) {
        for (next = i; next < deadlocks->row_count &&
                       deadlocks->rows[next].deadlock == deadlocks->rows[i].deadlock;)
            next++;
        err = add(&wording, profile, &deadlocks->rows[i], next - i);
    }
    return err;
}
