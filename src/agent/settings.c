#include "agent/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the main thread began, in glibc: the program's arguments and its environment. */
extern void *__libc_stack_end __attribute__((weak));

/* The environment; before libc has set `environ`, that which the kernel made. */
static char **environment(void)
{
    static char *none[] = {NULL};
    if (environ)
        return environ;
    if (!&__libc_stack_end || !__libc_stack_end)
        return none;
    char **arguments = (char **)__libc_stack_end;
    long count;
    memcpy(&count, arguments++, sizeof count);
    return arguments[count] ? none : &arguments[count + 1];
}

/* The value of a variable; NULL: it is not set. */
static char *value_of(const char *name)
{
    size_t length = strlen(name);
    for (char **at = environment(); *at; at++) {
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    }
    return NULL;
}

/* The number that it has; 0 if it has none. */
static uint64_t number_of(const char *name)
{
    const char *value = value_of(name);
    uint64_t number = 0;
    for (; value && *value >= '0' && *value <= '9'; value++)
        number = number * 10 + (uint64_t)(*value - '0');
    return value && !*value ? number : 0;
}

static bool has_children(void)
{
    const char *children = value_of("FGPROF_AGENT_CHILDREN");
    return children && strcmp(children, "1") == 0;
}

void settings_read(struct segment_start *start)
{
    start->wanted = (uint32_t)number_of("FGPROF_AGENT_WANTED");
    start->rate = number_of("FGPROF_AGENT_HEAP_RATE");
    start->has_children = has_children();
    if (start->rate)
        start->wanted |= AGENT_WANTS_HEAP;
    else
        start->rate = AGENT_RATE_DEFAULT;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The length of the entry that `at` begins with: entries end at spaces and colons (ld.so(8)). */
static size_t entry_length(const char *at)
{
    return strcspn(at, " :");
}

/* Files are told apart by their base names: the linker may have found them elsewhere. */
static bool is_entry_of(const char *entry, size_t length, const char *path)
{
    const char *name = base_name(path);
    size_t name_length = strlen(name);
    return length >= name_length && strncmp(entry + length - name_length, name, name_length) == 0 &&
           (length == name_length || entry[length - name_length - 1] == '/');
}

/* The entry of that file in `value`; NULL: there is none. */
static char *find_entry(char *value, const char *path)
{
    while (value && *value) {
        size_t length = entry_length(value);
        if (length && is_entry_of(value, length, path))
            return value;
        value += length + (value[length] != '\0');
    }
    return NULL;
}

bool settings_preload_has(const char *path)
{
    return find_entry(value_of("LD_PRELOAD"), path);
}

static void remove_variable(const char *value)
{
    for (char **at = environment(); *at; at++) {
        if (*at + strlen("LD_PRELOAD=") != value)
            continue;
        for (; *at; at++)
            at[0] = at[1];
        return;
    }
}

bool settings_leave_children_alone(const char *path)
{
    char *value = value_of("LD_PRELOAD"), *entry = find_entry(value, path);
    if (!entry || has_children())
        return false;
    /* In place, since the program may use the environment that main is given. */
    size_t length = entry_length(entry);
    if (entry[length])
        length++;
    else if (entry != value)
        entry--, length++;
    memmove(entry, entry + length, strlen(entry + length) + 1);
    if (!*value)
        remove_variable(value);
    return true;
}
