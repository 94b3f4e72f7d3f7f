#include "runtime/go/find.h"
#include "proc/memory.h"
#include "runtime/go/reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- The version: the linker leaves it in every program (debug/buildinfo/buildinfo.go) ---- */

#define BUILD_INFO_ALIGNMENT 16
#define BUILD_INFO_VERSION 32 /* since Go 1.18: the length, and the text of runtime.Version() */
#define HAS_INLINE_STRINGS 2

static unsigned minor_of(const char *text)
{
    const char *at = strstr(text, "go1.");
    unsigned minor = 0;
    for (at = at ? at + 4 : ""; *at >= '0' && *at <= '9' && minor < 1000; at++)
        minor = 10 * minor + (unsigned)(*at - '0');
    return minor;
}

static unsigned version_of(struct module *module)
{
    static const char magic[] = "\xff Go buildinf:";
    unsigned char info[BUILD_INFO_VERSION + 1 + 64];
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        uint64_t end = segment->offset + segment->file_bytes;
        uint64_t at =
            (segment->offset + BUILD_INFO_ALIGNMENT - 1) & ~(uint64_t)(BUILD_INFO_ALIGNMENT - 1);
        while (!segment->executable &&
               image_find(&module->image, at, end, magic, 8, BUILD_INFO_ALIGNMENT, &at)) {
            if (image_read(&module->image, at, info, sizeof info) &&
                memcmp(info, magic, sizeof magic - 1) == 0 && info[15] & HAS_INLINE_STRINGS &&
                info[BUILD_INFO_VERSION] < 64) {
                info[BUILD_INFO_VERSION + 1 + info[BUILD_INFO_VERSION]] = '\0';
                return minor_of((const char *)info + BUILD_INFO_VERSION + 1);
            }
            at += BUILD_INFO_ALIGNMENT;
        }
    }
    return 0;
}

/* ---- Functions by name ---- */

/* A thread without a goroutine sleeps in one of these (runtime/proc.go). */
static const char *const idle_names[] = {
    "runtime.schedule", "runtime.findRunnable",   "runtime.findrunnable", "runtime.stopm",
    "runtime.sysmon",   "runtime.templateThread", "runtime.stoplockedm",  "runtime.gcstopm",
};
_Static_assert(sizeof idle_names / sizeof *idle_names == GO_IDLE_FUNCTIONS_MAX, "one each");

#define NAME_BYTES_MAX 32 /* longer than all that are looked for */

/* Reads the name, cut to fit; "" if it is not that of a function of the runtime. */
static void read_name(const struct pclntab *table, const struct pclntab_function *function,
                      char name[NAME_BYTES_MAX])
{
    static const char prefix[] = "runtime.";
    char whole[PCLNTAB_STRING_MAX] = "";
    *name = '\0';
    if (module_read(table->module, table->names + function->name, whole, sizeof prefix - 1) &&
        strcmp(whole, prefix) == 0 && pclntab_name(table, function->name, whole))
        snprintf(name, NAME_BYTES_MAX, "%.*s", NAME_BYTES_MAX - 1, whole);
}

static void note_function(struct go *go, const struct pclntab_function *function)
{
    char name[NAME_BYTES_MAX];
    read_name(&go->table, function, name);
    if (strcmp(name, "runtime.allgadd") == 0)
        go->adding = (struct function_range){function->start, function->end};
    for (size_t i = 0; i < GO_IDLE_FUNCTIONS_MAX && go->idle_count < GO_IDLE_FUNCTIONS_MAX; i++) {
        if (strcmp(name, idle_names[i]) == 0)
            go->idle[go->idle_count++] = (struct function_range){function->start, function->end};
    }
}

/* Finds the functions that are wanted. */
static void find_functions(struct go *go)
{
    const struct pclntab *table = &go->table;
    struct pclntab_function function;
    for (uint64_t i = 0; i < table->function_count; i++) {
        if (pclntab_function(table, i, &function))
            note_function(go, &function);
    }
}

/* ---- The list of goroutines ---- */

/* runtime/proc.go has allgs, a slice, and for those that read it without a lock, as is done here,
 * allgptr and allglen: copies of its first two words. All are found by the code of allgadd, which
 * sets them: a stripped program has no other name for them. */
#define CODE_BYTES_MAX 2048
#define REFERENCES_MAX 128
#define SLICE_WORDS 3
#define SLICE_ROOM_MAX ((uint64_t)1 << 32)
#define GOROUTINES_TRIED 4
#define LIST_TRIES 4 /* the program may be changing it */
#define STATUS_MAX 15u
#define ADDRESS_MAX ((uint64_t)1 << 47)

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
    const struct function_range *adding = &go->adding;
    return reference_may_be_at(code + at, bytes - at, adding->start + at, way, ret_data) &&
           *ret_data % sizeof(uint64_t) == 0 && module_has_memory(go->module, *ret_data) &&
           (*ret_data < adding->start || *ret_data >= adding->end);
}

static void read_references(const struct go *go, pid_t tid, const struct stack_areas *areas,
                            struct references *ret_references)
{
    unsigned char code[CODE_BYTES_MAX];
    size_t bytes = go->adding.end - go->adding.start;
    uint64_t data;
    ret_references->count = 0;
    bytes = bytes < sizeof code ? bytes : sizeof code;
    if (!bytes || !module_read(go->module, go->adding.start, code, bytes))
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

/* Whether the list begins with goroutines that make sense, and functions of the program began some
 * of these. */
static bool has_goroutines(const struct go *go, const struct referred *slice, pid_t tid,
                           const struct stack_areas *areas)
{
    uint64_t items[GOROUTINES_TRIED];
    struct goroutine goroutine;
    struct pclntab_function function;
    size_t seen = 0,
           count = slice->words[1] < GOROUTINES_TRIED ? slice->words[1] : GOROUTINES_TRIED;
    if (memory_read(tid, areas, slice->words[0], items, count * sizeof *items) !=
        count * sizeof *items)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!items[i] || items[i] > ADDRESS_MAX || items[i] % sizeof *items ||
            !goroutine_read(go->layout, items[i], tid, areas, &goroutine))
            return false;
        enum goroutine_where where = goroutine_where(&goroutine);
        if (where == GOROUTINE_SENSELESS || goroutine.status > STATUS_MAX ||
            goroutine.id > ADDRESS_MAX)
            return false;
        seen += where != GOROUTINE_NOWHERE &&
                pclntab_find(&go->table, goroutine.start - go->bias, &function) &&
                function.start == goroutine.start - go->bias;
    }
    return seen > 0;
}

/* Every program has several goroutines; a word of 1 is nothing special. */
static bool may_be_list(const struct referred *slice)
{
    uint64_t first = slice->words[0], count = slice->words[1], room = slice->words[2];
    return first && first <= ADDRESS_MAX && first % sizeof first == 0 && count > 1 &&
           count <= room && room <= SLICE_ROOM_MAX;
}

static bool find_list(struct go *go, pid_t tid, const struct stack_areas *areas)
{
    struct references references;
    read_references(go, tid, areas, &references);
    for (size_t i = 0; i < references.count; i++) {
        const struct referred *slice = &references.items[i];
        if (!may_be_list(slice))
            continue;
        const struct go_place place = {go->layout, find_copy(&references, slice, slice->words[0]),
                                       find_copy(&references, slice, slice->words[1])};
        if (place.first && place.count && has_goroutines(go, slice, tid, areas)) {
            go->place = place;
            return true;
        }
    }
    return false;
}

void go_find_list(struct go *go, pid_t tid, const struct stack_areas *areas)
{
    bool may_find = go->layout && go->idle_count && !go->place.layout;
    for (int i = 0; may_find && i < LIST_TRIES && !find_list(go, tid, areas); i++)
        ;
}

/* Returns whether the module has a runtime. */
static bool look_into(struct module *module, uint64_t bias, pid_t tid,
                      const struct stack_areas *areas, struct go *go)
{
    if ((module->go.has_sections && !module->go.is_go) || !pclntab_open(&go->table, module))
        return false;
    go->module = module;
    go->bias = bias;
    go->minor = version_of(module);
    go->layout = go_layout_of(go->minor);
    if (go->layout)
        find_functions(go);
    go_find_list(go, tid, areas);
    return true;
}

void go_find(struct space *space, pid_t tid, const struct stack_areas *areas, struct go *ret_go)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    *ret_go = (struct go){0};
    while ((mapping = space_next_module(space, &walk))) {
        if (look_into(mapping->module, mapping->bias, tid, areas, ret_go))
            return;
        *ret_go = (struct go){0};
    }
}

bool go_is_idle(const struct go *go, const uint64_t *addresses, size_t depth)
{
    for (size_t i = 0; i < depth; i++) {
        uint64_t address = addresses[i] - go->bias;
        for (size_t j = 0; j < go->idle_count; j++) {
            if (address >= go->idle[j].start && address < go->idle[j].end)
                return true;
        }
    }
    return false;
}

char *go_describe(const struct go *go, uint64_t address)
{
    char name[PCLNTAB_STRING_MAX], file[PCLNTAB_STRING_MAX], *text;
    struct pclntab_function function;
    uint32_t line;
    if (!pclntab_find(&go->table, address - go->bias, &function) ||
        !pclntab_name(&go->table, function.name, name))
        return NULL;
    bool has_line = pclntab_line(&go->table, &function, address - go->bias, file, &line);
    int length = has_line ? asprintf(&text, "%s (%s:%" PRIu32 ")", name, file, line)
                          : asprintf(&text, "%s", name);
    return length < 0 ? NULL : text;
}

/* Until Go 1.20 or 1.24, the reason does not tell which it is. */
enum go_wait_kind go_lock_of_caller(const struct go *go, uint64_t address)
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
    struct pclntab_function function;
    struct pclntab_inlined inlined;
    char name[PCLNTAB_STRING_MAX];
    uint64_t own = address - go->bias - 1;
    if (!pclntab_find(&go->table, own, &function))
        return GO_WAIT_SEMAPHORE;
    bool is_inlined = pclntab_inlined(&go->table, &function, own, &inlined);
    if (!pclntab_name(&go->table, is_inlined ? inlined.name : function.name, name))
        return GO_WAIT_SEMAPHORE;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(name, functions[i].name) == 0)
            return functions[i].kind;
    }
    return GO_WAIT_SEMAPHORE;
}

/* As isSystemGoroutine of runtime/traceback.go, which shows the one of finalizers while it runs
 * some. */
bool go_is_own(const struct go *go, uint64_t start)
{
    struct pclntab_function function;
    char name[NAME_BYTES_MAX];
    if (!pclntab_find(&go->table, start - go->bias, &function))
        return false;
    read_name(&go->table, &function, name);
    return *name && strcmp(name, "runtime.main") != 0 &&
           strcmp(name, "runtime.handleAsyncEvent") != 0 && strcmp(name, "runtime.corostart") != 0;
}
