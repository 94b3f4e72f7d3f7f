/* How the agent starts: at the first call of any of its functions, which may come from the dynamic
 * linker, long before constructors run; and again as a constructor, when libraries can be used. */
#include "agent/hook.h"
#include "agent/modules.h"
#include "agent/next.h"
#include "agent/objects.h"
#include "agent/patch.h"
#include "agent/provider.h"
#include "agent/segment.h"
#include "agent/this_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- What the environment says ---- */

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

/* Whether somebody reads what this process reports. FGPROF_AGENT_PARENT is the profiler's process:
 * it reads the program that it has started, and whatever that executes, but not other processes
 * with the same variables. A parent in another PID namespace has no id here (getppid(2)). */
static bool has_reader(void)
{
    uint64_t reader = number_of("FGPROF_AGENT_PARENT"), parent = (uint64_t)getppid();
    return has_children() || !reader || !parent || reader == parent;
}

/* FGPROF_AGENT_WANTED is a sum of AGENT_WANTS_*, and FGPROF_AGENT_HEAP_RATE asks for the heap at
 * this rate: without a reader, from the program's first allocation on. */
static void read_settings(struct segment_start *start)
{
    start->wanted = (uint32_t)number_of("FGPROF_AGENT_WANTED");
    start->rate = number_of("FGPROF_AGENT_HEAP_RATE");
    start->has_children = has_children();
    if (start->rate)
        start->wanted |= AGENT_WANTS_HEAP;
    else
        start->rate = AGENT_RATE_DEFAULT;
    if (!has_reader())
        start->wanted = 0;
}

/* The length of the entry that `at` begins with: entries end at spaces and colons (ld.so(8)). */
static size_t entry_length(const char *at)
{
    return strcspn(at, " :");
}

/* Compares files by base name: the linker may have found them elsewhere. */
static bool is_entry_of(const char *entry, size_t length, const char *path)
{
    const char *name = file_name(path);
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

/* Removes this file from LD_PRELOAD unless FGPROF_AGENT_CHILDREN is 1, so that programs started by
 * this one do not have the agent. Other entries stay. Returns whether it did. */
static bool leave_children_alone(const char *path)
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

/* ---- The first call ---- */

static atomic_bool has_begun;

static bool find_code(const struct module *module, void *context)
{
    struct segment_start *start = context;
    if (!module_has(module, (uintptr_t)find_code))
        return false;
    start->code_start = module->code_start;
    start->code_limit = module->code_limit;
    return true;
}

static void begin(void)
{
    struct segment_start start = {0};
    uint32_t was_inside = this_thread.is_inside;
    if (atomic_exchange(&has_begun, true))
        return;
    /* What is called from here on may allocate: those calls get memory of the arena. */
    this_thread.is_inside = 1;
    next_find(RTLD_NEXT, &next);
    if (!getauxval(AT_SECURE) && modules_visit(find_code, &start)) {
        read_settings(&start);
        segment_open(&start);
    }
    this_thread.is_inside = was_inside;
}

/* Each is called until `begin` has found the next one, and while it does. */

static void *first_malloc(size_t bytes)
{
    begin();
    return next.malloc == first_malloc ? next_arena_alloc(bytes) : next.malloc(bytes);
}

static void *first_calloc(size_t count, size_t bytes)
{
    size_t all;
    begin();
    if (next.calloc != first_calloc)
        return next.calloc(count, bytes);
    return __builtin_mul_overflow(count, bytes, &all) ? NULL : next_arena_alloc(all);
}

static void *first_realloc(void *object, size_t bytes)
{
    begin();
    return next.realloc == first_realloc ? NULL : next.realloc(object, bytes);
}

static int first_posix_memalign(void **ret_object, size_t alignment, size_t bytes)
{
    begin();
    return next.posix_memalign == first_posix_memalign
               ? ENOMEM
               : next.posix_memalign(ret_object, alignment, bytes);
}

static void *first_aligned_alloc(size_t alignment, size_t bytes)
{
    begin();
    return next.aligned_alloc == first_aligned_alloc ? NULL : next.aligned_alloc(alignment, bytes);
}

static void *first_memalign(size_t alignment, size_t bytes)
{
    begin();
    return next.memalign == first_memalign ? NULL : next.memalign(alignment, bytes);
}

static void *first_valloc(size_t bytes)
{
    begin();
    return next.valloc == first_valloc ? NULL : next.valloc(bytes);
}

static void *first_pvalloc(size_t bytes)
{
    begin();
    return next.pvalloc == first_pvalloc ? NULL : next.pvalloc(bytes);
}

static void first_free(void *object)
{
    begin();
    if (next.free != first_free)
        next.free(object);
}

/* The dynamic linker may want these before others can be looked for. */

static void *first_mmap(void *address, size_t bytes, int protection, int flags, int fd,
                        off_t offset)
{
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

static int first_munmap(void *address, size_t bytes)
{
    return (int)syscall(SYS_munmap, address, bytes);
}

static void *first_mremap(void *address, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    return (void *)syscall(SYS_mremap, address, old_bytes, bytes, flags, to);
}

/* No thread is created while functions are looked up. */

static int first_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                void *(*start)(void *), void *argument)
{
    begin();
    return next.pthread_create == first_pthread_create
               ? EAGAIN
               : next.pthread_create(thread, attributes, start, argument);
}

static int first_thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    begin();
    return next.thrd_create == first_thrd_create ? thrd_error
                                                 : next.thrd_create(thread, start, argument);
}

struct next next = {.malloc = first_malloc,
                    .calloc = first_calloc,
                    .realloc = first_realloc,
                    .posix_memalign = first_posix_memalign,
                    .aligned_alloc = first_aligned_alloc,
                    .memalign = first_memalign,
                    .valloc = first_valloc,
                    .pvalloc = first_pvalloc,
                    .free = first_free,
                    .mmap = first_mmap,
                    .munmap = first_munmap,
                    .mremap = first_mremap,
                    .pthread_create = first_pthread_create,
                    .thrd_create = first_thrd_create};

static void on_fork_in_child(void)
{
    objects_forget_thread();
    segment_renew();
}

static bool was_called;
static void *(*probed_calloc)(size_t count, size_t bytes);

static void *probe_calloc(size_t count, size_t bytes)
{
    was_called = true;
    return probed_calloc(count, bytes);
}

/* Whether calls from other files reach the agent, tried with a libc function that allocates. */
static bool is_called(void)
{
    struct hsearch_data table = {0};
    probed_calloc = next.calloc;
    next.calloc = probe_calloc;
    if (hcreate_r(1, &table))
        hdestroy_r(&table);
    next.calloc = probed_calloc;
    return was_called;
}

/* If calls are bound to another file first, patches them to come here. The program's own calls of
 * its own malloc can't be patched. */
static void come_before(void *handle)
{
    struct next found;
    next_find(handle, &found);
    next = found;
    patch(&malloc_hooks);
    patch(&mmap_hooks);
    patch(&thread_hooks);
}

static void meet_provider(const struct provider *provider, bool comes_first)
{
    void *handle = provider->is_program ? NULL : dlopen(provider->path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return;
    if (!comes_first)
        come_before(handle);
    operators_patch(provider, handle);
    mmap_leave_out(provider->start, provider->limit);
}

static void meet_libraries(void)
{
    static struct provider provider;
    Dl_info agent;
    begin();
    if (getauxval(AT_SECURE) || !dladdr(&has_begun, &agent))
        return;
    pthread_atfork(NULL, NULL, on_fork_in_child);
    bool comes_first = is_called();
    if (comes_first ? provider_at((uintptr_t)next.malloc, &provider)
                    : provider_before_agent(&provider))
        meet_provider(&provider, comes_first);
    segment_describe(provider.name);
    if (leave_children_alone(agent.dli_fname))
        exec_go_along(agent.dli_fname);
}

/* What is allocated for that is no doing of the program. */
static __attribute__((constructor)) void construct(void)
{
    this_thread.is_inside = 1;
    meet_libraries();
    this_thread.is_inside = 0;
}

static __attribute__((destructor)) void finish(void)
{
    segment_await_reader();
}
