#include "runtime/go/find.h"
#include "proc/memory.h"
#include "runtime/go/reference.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- The list of goroutines ---- */

/* runtime/proc.go has allgs, a slice, and for readers without a lock, such as this one, allgptr and
 * allglen: copies of its first two words. All are found through the code of allgadd, which sets
 * them: in a stripped program nothing else leads to them. */
#define CODE_BYTES_MAX 2048
#define REFERENCES_MAX 128
#define SLICE_WORDS 3
#define SLICE_ROOM_MAX ((uint64_t)1 << 32)
#define GOROUTINES_TRIED 4
#define LIST_TRIES 4 /* the program may be changing it */
#define STATUS_MAX 15u
#define ID_MAX ((uint64_t)1 << 47)

/* Data that the code may refer to, in the order of the code. */
struct references {
    size_t count;
    struct referred {
        uint64_t address, words[SLICE_WORDS]; /* what is there */
    } items[REFERENCES_MAX];
};

/* Whether the code at `at` may refer to data, of this address. */
static bool refers_to_data(const struct go *go, const unsigned char *code, size_t bytes, size_t at,
                           unsigned way, uint64_t *ret_data)
{
    const struct function_range *adding = &go->runtime.adding;
    return reference_may_be_at(code + at, bytes - at, adding->start + at, way, ret_data) &&
           *ret_data % sizeof(uint64_t) == 0 && module_has_memory(go->module, *ret_data) &&
           (*ret_data < adding->start || *ret_data >= adding->end);
}

static void read_references(const struct go *go, pid_t tid, const struct stack_areas *areas,
                            struct references *ret_references)
{
    unsigned char code[CODE_BYTES_MAX];
    size_t bytes = go->runtime.adding.end - go->runtime.adding.start;
    uint64_t data;
    ret_references->count = 0;
    bytes = bytes < sizeof code ? bytes : sizeof code;
    if (!bytes || !module_read(go->module, go->runtime.adding.start, code, bytes))
        return;
    for (size_t at = 0; at < bytes; at++) {
        for (unsigned way = 0; way < REFERENCE_WAYS; way++) {
            if (ret_references->count == REFERENCES_MAX ||
                !refers_to_data(go, code, bytes, at, way, &data))
                continue;
            struct referred *item = &ret_references->items[ret_references->count];
            *item = (struct referred){.address = data + go->bias};
            ret_references->count += memory_read(tid, areas, item->address, item->words,
                                                 sizeof item->words) >= sizeof *item->words;
        }
    }
}

/* The last word of this value that is not in the slice; 0: there is none. */
static uint64_t find_copy(const struct references *references, const struct referred *slice,
                          uint64_t value)
{
    for (size_t i = references->count; i-- > 0;) {
        const struct referred *item = &references->items[i];
        if (item->words[0] == value && item->address - slice->address >= sizeof slice->words)
            return item->address;
    }
    return 0;
}

/* Returns 0 if a function of the program begins at the address; -ENOENT if none does; -EAGAIN or
 * -ENOMEM. */
static int find_start(struct queries *queries, const struct go *go, uint64_t address)
{
    const struct query at = {.kind = QUERY_GO_FUNCTION, .address = address - go->bias};
    union query_answer answer;
    int err = query_ask(queries, go->module, &at, &answer);
    return err || answer.function.start == at.address ? err : -ENOENT;
}

/* Returns 0 if the list begins with plausible goroutines, some of which were started by functions
 * of the program; -ENOENT if not; -EAGAIN or -ENOMEM. */
static int check_goroutines(struct queries *queries, const struct go *go,
                            const struct referred *slice, pid_t tid,
                            const struct stack_areas *areas)
{
    uint64_t items[GOROUTINES_TRIED];
    struct goroutine goroutine;
    size_t count = slice->words[1] < GOROUTINES_TRIED ? slice->words[1] : GOROUTINES_TRIED;
    int err = -ENOENT;
    if (memory_read(tid, areas, slice->words[0], items, count * sizeof *items) !=
        count * sizeof *items)
        return -ENOENT;
    for (size_t i = 0; i < count; i++) {
        if (!items[i] || items[i] >= MEMORY_END || items[i] % sizeof *items ||
            !goroutine_read(go->layout, items[i], tid, areas, &goroutine))
            return -ENOENT;
        enum goroutine_where where = goroutine_where(&goroutine);
        if (where == GOROUTINE_SENSELESS || goroutine.status > STATUS_MAX || goroutine.id > ID_MAX)
            return -ENOENT;
        if (err == -ENOENT && where != GOROUTINE_NOWHERE)
            err = find_start(queries, go, goroutine.start);
    }
    return err;
}

/* Every program has several goroutines; a word of 1 is nothing special. */
static bool may_be_list(const struct referred *slice)
{
    uint64_t first = slice->words[0], count = slice->words[1], room = slice->words[2];
    return first && first < MEMORY_END && first % sizeof first == 0 && count > 1 && count <= room &&
           room <= SLICE_ROOM_MAX;
}

/* Returns 0; -ENOENT if there is none; -EAGAIN or -ENOMEM. */
static int find_list(struct queries *queries, struct go *go, pid_t tid,
                     const struct stack_areas *areas)
{
    struct references references;
    int err = -ENOENT;
    read_references(go, tid, areas, &references);
    for (size_t i = 0; i < references.count && err == -ENOENT; i++) {
        const struct referred *slice = &references.items[i];
        if (!may_be_list(slice))
            continue;
        const struct go_place place = {go->layout, find_copy(&references, slice, slice->words[0]),
                                       find_copy(&references, slice, slice->words[1])};
        if (place.first && place.count)
            err = check_goroutines(queries, go, slice, tid, areas);
        if (!err)
            go->place = place;
    }
    return err;
}

int go_find_list(struct queries *queries, struct go *go, pid_t tid, const struct stack_areas *areas)
{
    bool may_find = go->layout && go->runtime.idle_count && !go->place.layout;
    int err = -ENOENT;
    for (int i = 0; may_find && i < LIST_TRIES && err == -ENOENT; i++)
        err = find_list(queries, go, tid, areas);
    return err == -ENOENT ? 0 : err;
}

/* Returns 0; -ENOENT if the module has no runtime; -EAGAIN or -ENOMEM. */
static int look_into(struct queries *queries, const struct mapping *mapping, pid_t tid,
                     const struct stack_areas *areas, struct go *go)
{
    static const struct query runtime = {.kind = QUERY_GO};
    struct module *module = mapping->module;
    union query_answer answer;
    if (module->go.has_sections && !module->go.is_go)
        return -ENOENT;
    int err = query_ask(queries, module, &runtime, &answer);
    if (err)
        return err;
    *go = (struct go){.module = module,
                      .layout = go_layout_of(answer.go.minor),
                      .bias = mapping->bias,
                      .runtime = answer.go};
    return go_find_list(queries, go, tid, areas);
}

int go_find(struct queries *queries, struct space *space, pid_t tid,
            const struct stack_areas *areas, struct go *ret_go)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    int err = -ENOENT;
    *ret_go = (struct go){0};
    while (err == -ENOENT && (mapping = space_next_module(space, &walk)))
        err = look_into(queries, mapping, tid, areas, ret_go);
    return err == -ENOENT ? 0 : err;
}

bool go_is_idle(const struct go *go, const uint64_t *addresses, size_t depth)
{
    for (size_t i = 0; i < depth; i++) {
        uint64_t address = addresses[i] - go->bias;
        for (size_t j = 0; j < go->runtime.idle_count; j++) {
            if (address >= go->runtime.idle[j].start && address < go->runtime.idle[j].end)
                return true;
        }
    }
    return false;
}

/* As in isSystemGoroutine of runtime/traceback.go, which shows the finalizers' goroutine while it
 * runs some. */
static bool is_own(const char *name)
{
    return strncmp(name, "runtime.", strlen("runtime.")) == 0 &&
           strcmp(name, "runtime.main") != 0 && strcmp(name, "runtime.handleAsyncEvent") != 0 &&
           strcmp(name, "runtime.corostart") != 0;
}

/* Until Go 1.20 or 1.24, the reason does not tell which it is. */
static enum go_wait_kind lock_of(const char *name)
{
    static const struct {
        const char *name;
        enum go_wait_kind kind;
    } functions[] = {
        {"sync.(*Mutex).lockSlow", GO_WAIT_MUTEX},
        {"sync.(*RWMutex).RLock", GO_WAIT_READ_LOCK},
        {"sync.(*RWMutex).Lock", GO_WAIT_WRITE_LOCK},
        {"sync.(*WaitGroup).Wait", GO_WAIT_GROUP},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(name, functions[i].name) == 0)
            return functions[i].kind;
    }
    return GO_WAIT_SEMAPHORE;
}

int go_function_at(struct queries *queries, const struct go *go, uint64_t address,
                   struct go_function *ret_function)
{
    const struct query at = {.kind = QUERY_GO_FUNCTION, .address = address - go->bias};
    union query_answer answer;
    *ret_function = (struct go_function){.lock = GO_WAIT_SEMAPHORE};
    int err = query_ask(queries, go->module, &at, &answer);
    if (err)
        return err == -ENOENT ? 0 : err;
    const struct query_function *function = &answer.function;
    ret_function->start = function->start + go->bias;
    ret_function->is_own = is_own(function->name);
    ret_function->lock = lock_of(*function->innermost ? function->innermost : function->name);
    int length = function->line ? asprintf(&ret_function->text, "%s (%s:%" PRIu32 ")",
                                           function->name, function->file, function->line)
                                : asprintf(&ret_function->text, "%s", function->name);
    if (length >= 0)
        return 0;
    ret_function->text = NULL;
    return -ENOMEM;
}
