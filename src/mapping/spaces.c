#include "mapping/spaces.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "proc/maps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REUSED_MAX 64 /* how many earlier spaces are checked */

/* A process's maps, taken into a space. */
struct maps_reading {
    struct space *space;
    struct modules *modules;
    int proc_fd;         /* the process's directory in /proc */
    pid_t tid;           /* a thread of it */
    const char *program; /* the path of its executable, while maps is read */
    size_t lines;        /* how many were read */
    bool changed;        /* the space has changed */
};

static bool is_same_code(const struct mapping *mapping, const struct maps_entry *entry)
{
    if (strcmp(mapping->path, entry->path) != 0)
        return false;
    if (!entry->inode)
        return true; /* anonymous code that grew or was split */
    return mapping->module && mapping->module->inode == entry->inode &&
           mapping->module->dev_major == entry->dev_major &&
           mapping->module->dev_minor == entry->dev_minor &&
           mapping->start - mapping->offset == entry->start - entry->offset;
}

static int insert(struct maps_reading *reading, size_t at, const struct maps_entry *entry,
                  struct module *module)
{
    struct space *space = reading->space;
    if (array_reserve(&space->mappings, &space->mapping_capacity, space->mapping_count + 1))
        return -ENOMEM;
    struct mapping mapping = {
        .start = entry->start,
        .end = entry->end,
        .offset = entry->offset,
        .module = module,
        .path = module ? module->path : strdup(entry->path),
        .is_main = *entry->path && maps_entry_is_at(entry, reading->program),
    };
    if (!mapping.path)
        return -ENOMEM;
    uint64_t own_address;
    if (module && module->is_readable &&
        module_address_of_offset(module, entry->offset, &own_address)) {
        mapping.bias = entry->start - own_address;
        mapping.has_bias = true;
    }
    if (module)
        module->users++;
    memmove(&space->mappings[at + 1], &space->mappings[at],
            (space->mapping_count - at) * sizeof mapping);
    space->mappings[at] = mapping;
    space->mapping_count++;
    space->last = NULL;
    return 0;
}

/* Merges `entry` into the mappings from `first` to before `end`, which are the same code. Returns
 * whether it adds anything to them. */
static bool extend(struct space *space, size_t first, size_t end, const struct maps_entry *entry)
{
    struct mapping *known = &space->mappings[first];
    uint64_t known_end = space->mappings[end - 1].end;
    bool changed = end - first > 1 || entry->start < known->start || entry->end > known_end;
    if (entry->start < known->start) {
        known->offset = entry->offset;
        known->start = entry->start;
    }
    known->end = entry->end > known_end ? entry->end : known_end;
    for (size_t i = first + 1; i < end; i++) {
        known->is_sampled = known->is_sampled || space->mappings[i].is_sampled;
        mapping_drop(&space->mappings[i]);
    }
    memmove(&space->mappings[first + 1], &space->mappings[end],
            (space->mapping_count - end) * sizeof *known);
    space->mapping_count -= end - first - 1;
    space->last = NULL;
    return changed;
}

/* The mapping of OpenTelemetry's process context, named by memfd_create(2) or prctl(2)
 * (open-telemetry/opentelemetry-specification, oteps/profiles/4719-process-ctx.md). */
static bool is_context(const struct maps_entry *entry)
{
    static const char *const names[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
                                        "/memfd:OTEL_CTX"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(entry->path, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

/* Adds one line of maps. -ESTALE if it contradicts a known mapping. */
static int take_in(void *context, const struct maps_entry *entry)
{
    struct maps_reading *reading = context;
    struct space *space = reading->space;
    reading->lines++;
    space->has_context = space->has_context || (!entry->executable && is_context(entry));
    if (!entry->executable)
        return 0;
    /* The mappings that it overlaps, if any. */
    size_t at = UPPER_BOUND(space->mappings, space->mapping_count, end, entry->start);
    size_t end = at;
    for (; end < space->mapping_count && space->mappings[end].start < entry->end; end++) {
        if (!is_same_code(&space->mappings[end], entry))
            return -ESTALE;
    }
    if (end > at) {
        reading->changed = extend(space, at, end, entry) || reading->changed;
        return 0;
    }
    struct module *module;
    int err = modules_get(reading->modules, reading->proc_fd, reading->tid, entry, &module);
    reading->changed = true;
    return err ? err : insert(reading, at, entry, module);
}

/* Adds the new mappings that have code. Returns 0 or a negative errno: -ESTALE at the first mapping
 * that contradicts a known one. */
static int read_maps(struct maps_reading *reading, int maps_fd)
{
    char program[PATH_MAX];
    ssize_t length = readlinkat(reading->proc_fd, "exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    reading->program = program;
    return maps_read(maps_fd, take_in, reading);
}

/* Gives the space a number. Returns 0 or -ENOMEM. */
static int put(struct spaces *spaces, struct space *space)
{
    size_t at = spaces->first_free;
    while (at < spaces->count && !spaces->items[at]->is_free)
        at++;
    if (array_reserve(&spaces->items, &spaces->capacity, at + 1))
        return -ENOMEM;
    if (at < spaces->count) {
        space_free(spaces->items[at]);
        spaces->free_count--;
    } else {
        spaces->count++;
    }
    spaces->items[at] = space;
    spaces->first_free = at + 1;
    space->id = (uint32_t)at;
    return 0;
}

static void take_back(struct spaces *spaces, struct space *space)
{
    if (space->id < spaces->first_free)
        spaces->first_free = space->id;
    if (space->id + 1u == spaces->count) {
        spaces->count--;
        space_free(space);
        return;
    }
    space_empty(space);
    space->is_free = true;
    spaces->free_count++;
}

int spaces_add(struct spaces *spaces, struct modules *modules, pid_t pid, int proc_fd, pid_t tid,
               int maps_fd, struct space **ret_space)
{
    struct space *space = calloc(1, sizeof *space);
    if (!space)
        return -ENOMEM;
    space->pid = pid;
    struct maps_reading reading = {
        .space = space, .modules = modules, .proc_fd = proc_fd, .tid = tid};
    int err = read_maps(&reading, maps_fd);
    /* A mapping that changed during our read contradicts an earlier line; the earlier line is kept.
     */
    if (err == -ESTALE)
        err = 0;
    if (!err && !reading.lines)
        err = -ESRCH;
    if (!err)
        err = put(spaces, space);
    if (err) {
        space_free(space);
        return err;
    }
    *ret_space = space;
    return 0;
}

/* Whether `old` has everything in `new`, unchanged. Anonymous code is never known to be unchanged.
 */
static bool holds(const struct space *old, const struct space *new)
{
    for (size_t i = 0; i < new->mapping_count; i++) {
        const struct mapping *mapping = &new->mappings[i];
        size_t at = UPPER_BOUND(old->mappings, old->mapping_count, end, mapping->start);
        const struct mapping *known = &old->mappings[at];
        if (!*mapping->path || at == old->mapping_count || known->module != mapping->module ||
            strcmp(known->path, mapping->path) != 0 || known->start > mapping->start ||
            known->end < mapping->end || known->bias != mapping->bias)
            return false;
    }
    return true;
}

/* The new space, or an earlier one of its process that has the same mappings: a program that loads
 * the same libraries in turn, at the same address, returns to an earlier state. */
static struct space *reuse(struct spaces *spaces, struct space *new, const struct jit *jit)
{
    size_t looked_at = 0;
    for (size_t i = spaces->count; i > 0 && looked_at < REUSED_MAX; i--) {
        struct space *old = spaces->items[i - 1];
        if (old == new || old->is_retired || old->is_free || old->pid != new->pid)
            continue;
        looked_at++;
        if ((!old->jit || old->jit == jit) && holds(old, new)) {
            take_back(spaces, new);
            old->is_left = false;
            return old;
        }
    }
    return new;
}

int spaces_refresh(struct spaces *spaces, struct modules *modules, int proc_fd, pid_t tid,
                   int maps_fd, struct space **space, bool *ret_changed)
{
    struct maps_reading reading = {
        .space = *space, .modules = modules, .proc_fd = proc_fd, .tid = tid};
    int err = read_maps(&reading, maps_fd);
    *ret_changed = reading.changed;
    if (!err && !reading.lines)
        return -ESRCH;
    if (err != -ESTALE)
        return err;
    *ret_changed = true;
    struct space *before = *space;
    struct jit *jit = before->jit;
    err = spaces_add(spaces, modules, before->pid, proc_fd, tid, maps_fd, space);
    if (err)
        return err;
    before->is_left = true;
    *space = reuse(spaces, *space, jit);
    if (!(*space)->jit)
        (*space)->jit = jit;
    return 0;
}

int spaces_branch(struct spaces *spaces, struct space **space)
{
    struct space *from = *space;
    struct space *branch = calloc(1, sizeof *branch);
    struct mapping *mappings = calloc(from->mapping_count + 1, sizeof *mappings);
    if (!branch || !mappings) {
        free(mappings);
        free(branch);
        return -ENOMEM;
    }
    *branch = (struct space){.pid = from->pid,
                             .mappings = mappings,
                             .mapping_capacity = from->mapping_count + 1,
                             .has_context = from->has_context,
                             .jit = from->jit};
    int err = 0;
    for (size_t i = 0; i < from->mapping_count && !err; i++) {
        err = mapping_copy(&from->mappings[i], &mappings[i]);
        branch->mapping_count += !err;
    }
    if (err || put(spaces, branch)) {
        space_free(branch);
        return -ENOMEM;
    }
    from->is_left = true;
    *space = branch;
    return 0;
}

size_t spaces_with_jit(const struct spaces *spaces, const struct jit *jit)
{
    size_t count = 0;
    for (size_t i = 0; i < spaces->count; i++)
        count += spaces->items[i]->jit == jit;
    return count;
}

/* ---- The shared space ---- */

/* Each file has this much room, and its number says where. */
#define FILE_ROOM_BITS 40

static int get_shared(struct spaces *spaces, struct space **ret_space)
{
    if (!spaces->shared) {
        struct space *space = calloc(1, sizeof *space);
        if (!space || put(spaces, space)) {
            free(space);
            return -ENOMEM;
        }
        spaces->shared = space;
    }
    *ret_space = spaces->shared;
    return 0;
}

/* What is subtracted from the mapping's addresses in its own space. */
static uint64_t bias_of(const struct mapping *mapping)
{
    return mapping->has_bias ? mapping->bias : mapping->start - mapping->offset;
}

/* Adds the missing parts of the mapping, as it is in the shared space. */
static int add_shared(struct space *shared, const struct mapping *mapping, uint64_t base)
{
    uint64_t start = mapping->start - bias_of(mapping) + base;
    uint64_t end = mapping->end - bias_of(mapping) + base;
    size_t at = UPPER_BOUND(shared->mappings, shared->mapping_count, end, start);
    struct mapping *known = &shared->mappings[at];
    if (at < shared->mapping_count && known->start < end) {
        if (start < known->start) {
            known->offset = mapping->offset;
            known->start = start;
        }
        known->end = end > known->end ? end : known->end;
        return 0;
    }
    if (array_reserve(&shared->mappings, &shared->mapping_capacity, shared->mapping_count + 1))
        return -ENOMEM;
    struct mapping added;
    int err = mapping_copy(mapping, &added);
    if (err)
        return err;
    added.start = start;
    added.end = end;
    added.bias = mapping->has_bias ? base : mapping->bias;
    memmove(&shared->mappings[at + 1], &shared->mappings[at],
            (shared->mapping_count++ - at) * sizeof added);
    shared->mappings[at] = added;
    shared->last = NULL;
    return 0;
}

int spaces_share(struct spaces *spaces, struct space *space, uint64_t address,
                 uint64_t *ret_address)
{
    struct space *shared;
    const struct mapping *mapping = space_find(space, address);
    int err = get_shared(spaces, &shared);
    if (!mapping)
        mapping = space_find_memory(space, address);
    *ret_address = 0;
    if (err || !mapping || !mapping->module || (mapping->end - bias_of(mapping)) >> FILE_ROOM_BITS)
        return err;
    uint64_t place = 1 + 2 * (uint64_t)mapping->module->number + mapping->has_bias;
    uint64_t base = place << FILE_ROOM_BITS;
    *ret_address = address - bias_of(mapping) + base;
    return add_shared(shared, mapping, base);
}

/* ---- What goes ---- */

static bool is_of_use(const struct spaces *spaces, const struct renumber *rows, size_t number)
{
    const struct space *space = spaces->items[number];
    return (!space->is_retired && !space->is_left && !space->is_free) ||
           renumber_of(rows, (uint32_t)number) != ROW_GONE;
}

/* Generated code goes with the last space that is of use and shares it. */
static void leave_jit(struct spaces *spaces, const struct renumber *rows, struct space *owner)
{
    struct jit *jit = owner->jit;
    for (size_t i = 0; i < spaces->count; i++) {
        if (spaces->items[i]->jit != jit || !is_of_use(spaces, rows, i))
            continue;
        spaces->items[i]->owns_jit = true;
        owner->owns_jit = false;
        return;
    }
    owner->owns_jit = false;
    jit_free(jit);
}

void spaces_forget(struct spaces *spaces, const struct renumber *rows)
{
    spaces->first_free = 0;
    for (size_t i = 0; i < spaces->count; i++) {
        struct space *space = spaces->items[i];
        if (space->is_free || is_of_use(spaces, rows, i))
            continue;
        space_empty(space);
        if (space->owns_jit)
            leave_jit(spaces, rows, space);
        space->jit = NULL;
        space->is_free = true;
        spaces->free_count++;
    }
    if (spaces->shared)
        space_keep_sampled(spaces->shared, false);
}

void spaces_free(struct spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++)
        space_free(spaces->items[i]);
    free(spaces->items);
    *spaces = (struct spaces){0};
}

static int copy_mappings(const struct space *space, struct space *copy)
{
    copy->mappings = calloc(space->mapping_count + 1, sizeof *copy->mappings);
    if (!copy->mappings)
        return -ENOMEM;
    int err = 0;
    for (size_t i = 0; i < space->mapping_count && !err; i++) {
        err = mapping_copy(&space->mappings[i], &copy->mappings[i]);
        copy->mapping_count += !err;
    }
    return err;
}

static int copy_space(const struct space *space, struct spaces *copies)
{
    struct space *copy = calloc(1, sizeof *copy);
    if (!copy)
        return -ENOMEM;
    copies->items[copies->count++] = copy;
    copy->id = space->id;
    copy->pid = space->pid;
    int err = copy_mappings(space, copy);
    if (!err && space->owns_jit) {
        err = jit_copy(space->jit, &copy->jit);
        copy->owns_jit = !err;
    }
    return err;
}

/* Spaces that share another's generated code share its copy. */
static void share_jit(const struct spaces *spaces, struct spaces *copies)
{
    for (size_t owner = 0; owner < spaces->count; owner++) {
        if (!spaces->items[owner]->owns_jit)
            continue;
        for (size_t i = 0; i < spaces->count; i++) {
            if (spaces->items[i]->jit == spaces->items[owner]->jit)
                copies->items[i]->jit = copies->items[owner]->jit;
        }
    }
}

int spaces_copy(const struct spaces *spaces, struct spaces *ret_copy)
{
    struct spaces copy = {.items = calloc(spaces->count + 1, sizeof *copy.items)};
    int err = copy.items ? 0 : -ENOMEM;
    for (size_t i = 0; i < spaces->count && !err; i++)
        err = copy_space(spaces->items[i], &copy);
    if (err) {
        spaces_free(&copy);
        return err;
    }
    share_jit(spaces, &copy);
    *ret_copy = copy;
    return 0;
}
