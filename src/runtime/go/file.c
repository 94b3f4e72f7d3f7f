#include "runtime/go/file.h"
#include "base/text.h"

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
_Static_assert(COUNT_OF(idle_names) == GO_IDLE_FUNCTIONS_MAX, "one each");

/* Reads the name of a function of the runtime. Returns false for others, most of which are not read
 * as a whole. */
static bool read_name(const struct pclntab *table, const struct pclntab_function *function,
                      char name[PCLNTAB_STRING_MAX])
{
    static const char prefix[] = "runtime.";
    return module_read(table->module, table->names + function->name, name, sizeof prefix - 1) &&
           memcmp(name, prefix, sizeof prefix - 1) == 0 &&
           pclntab_name(table, function->name, name);
}

static void note_function(struct go_runtime *runtime, const struct pclntab *table,
                          const struct pclntab_function *function)
{
    const struct function_range range = {function->start, function->end};
    char name[PCLNTAB_STRING_MAX];
    if (!read_name(table, function, name))
        return;
    if (strcmp(name, "runtime.allgadd") == 0)
        runtime->adding = range;
    if (text_is_any(name, idle_names, COUNT_OF(idle_names)) &&
        runtime->idle_count < GO_IDLE_FUNCTIONS_MAX)
        runtime->idle[runtime->idle_count++] = range;
}

void go_file_read(const struct pclntab *table, struct go_runtime *ret_runtime)
{
    struct pclntab_function function;
    *ret_runtime = (struct go_runtime){.minor = version_of(table->module)};
    for (uint64_t i = 0; i < table->function_count; i++) {
        if (pclntab_function(table, i, &function))
            note_function(ret_runtime, table, &function);
    }
}
