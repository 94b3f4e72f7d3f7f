/* How the agent begins: with the first call of any of its functions, which may be the dynamic
 * linker's, long before constructors run; and again as a constructor, when libraries can be used.
 */
#include "agent/hook.h"
#include "agent/modules.h"
#include "agent/next.h"
#include "agent/objects.h"
#include "agent/patch.h"
#include "agent/provider.h"
#include "agent/segment.h"
#include "agent/settings.h"
#include "agent/symbols.h"
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

/* The first call. */
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
        settings_read(&start);
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

/* Whether calls of other files go to the agent: asked by a function of libc's that allocates. */
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

/* Where calls go to another file first, they are made to come here. The program's own calls of its
 * own malloc cannot be. */
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

static bool is_needed_by(const struct module *module, void *context)
{
    return symbols_need(module, context);
}

static enum agent_way find_way(const char *path, bool comes_first)
{
    const char *slash = strrchr(path, '/');
    if (settings_preload_has(path))
        return AGENT_PRELOADED;
    if (modules_visit(is_needed_by, (void *)(uintptr_t)(slash ? slash + 1 : path)))
        return AGENT_LINKED;
    return comes_first ? AGENT_PRELOADED : AGENT_LOADED; /* the former by /etc/ld.so.preload */
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
    segment_describe(find_way(agent.dli_fname, comes_first), provider.name);
    if (settings_leave_children_alone(agent.dli_fname))
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
