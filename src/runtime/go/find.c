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

static void note_function(struct go *go, const struct pclntab_function *function,
                          struct function_range *ret_adding)
{
    char name[NAME_BYTES_MAX];
    read_name(&go->table, function, name);
    if (strcmp(name, "runtime.allgadd") == 0)
        *ret_adding = (struct function_range){function->start, function->end};
    for (size_t i = 0; i < GO_IDLE_FUNCTIONS_MAX && go->idle_count < GO_IDLE_FUNCTIONS_MAX; i++) {
        if (strcmp(name, idle_names[i]) == 0)
            go->idle[go->idle_count++] = (struct function_range){function->start, function->end};
    }
}

/* Finds the functions that are wanted. *ret_adding: runtime.allgadd. */
static void find_functions(struct go *go, struct function_range *ret_adding)
{
    const struct pclntab *table = &go->table;
    struct pclntab_function function;
    for (uint64_t i = 0; i < table->function_count; i++) {
        if (pclntab_function(table, i, &function))
            note_function(go, &function, ret_adding);
    }
}

/* ---- The list of goroutines ---- */

#define CODE_BYTES_MAX 2048
#define GOROUTINES_TRIED 4
#define ADDRESS_MAX ((uint64_t)1 << 47)

/* Whether there is a slice of pointers to struct g at the address. */
static bool is_list(const struct go_layout *layout, uint64_t address, pid_t tid,
                    const struct stack_areas *areas)
{
    uint64_t slice[3], items[GOROUTINES_TRIED];
    unsigned char bytes[GOROUTINE_BYTES_MAX];
    struct goroutine goroutine;
    size_t seen = 0;
    if (memory_read(tid, areas, address, slice, sizeof slice) != sizeof slice || !slice[0] ||
        slice[0] > ADDRESS_MAX || slice[0] % sizeof *items || !slice[1] || slice[1] > slice[2] ||
        slice[2] > ((uint64_t)1 << 32))
        return false;
    size_t count = slice[1] < GOROUTINES_TRIED ? slice[1] : GOROUTINES_TRIED;
    if (memory_read(tid, areas, slice[0], items, count * sizeof *items) != count * sizeof *items)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!items[i] || items[i] > ADDRESS_MAX || items[i] % sizeof *items ||
            memory_read(tid, areas, items[i], bytes, goroutine_bytes(layout)) !=
                goroutine_bytes(layout))
            return false;
        goroutine_parse(layout, bytes, &goroutine);
        if (goroutine.status > UINT8_MAX || goroutine.id > ADDRESS_MAX)
            return false;
        seen += goroutine.id && goroutine.stack_low < goroutine.stack_high;
    }
    return seen > 0;
}

/* Finds allgs by the code of the function that appends to it: a stripped program has no other name
 * for it. */
static uint64_t find_list(const struct go *go, const struct go_layout *layout,
                          const struct function_range *adding, pid_t tid,
                          const struct stack_areas *areas)
{
    unsigned char code[CODE_BYTES_MAX];
    size_t bytes = adding->end - adding->start;
    bytes = bytes < sizeof code ? bytes : sizeof code;
    if (!bytes || !module_read(go->module, adding->start, code, bytes))
        return 0;
    for (size_t at = 0; at < bytes; at++) {
        for (unsigned way = 0; way < REFERENCE_WAYS; way++) {
            uint64_t data;
            if (reference_may_be_at(code + at, bytes - at, adding->start + at, way, &data) &&
                data % sizeof(uint64_t) == 0 && module_has_memory(go->module, data) &&
                (data < adding->start || data >= adding->end) &&
                is_list(layout, data + go->bias, tid, areas))
                return data + go->bias;
        }
    }
    return 0;
}

/* Returns whether the module has a runtime. */
static bool look_into(struct module *module, uint64_t bias, pid_t tid,
                      const struct stack_areas *areas, struct go *go)
{
    struct function_range adding = {0};
    if ((module->go.has_sections && !module->go.is_go) || !pclntab_open(&go->table, module))
        return false;
    go->module = module;
    go->bias = bias;
    go->minor = version_of(module);
    const struct go_layout *layout = go_layout_of(go->minor);
    if (!layout)
        return true;
    find_functions(go, &adding);
    go->place.all = find_list(go, layout, &adding, tid, areas);
    go->place.layout = go->place.all && go->idle_count ? layout : NULL;
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
