#include "symbol/debug_fetch.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* The types of debuginfod_find_debuginfo(3). */
typedef int progress_fn(void *client, long done, long all);
struct library {
    void *handle;
    void *(*begin)(void);
    void (*end)(void *client);
    int (*find)(void *client, const unsigned char *id, int id_bytes, char **ret_path);
    void (*set_progress)(void *client, progress_fn *progress);
    void (*set_user_data)(void *client, void *data);
    void *(*get_user_data)(void *client);
};

static void *(*get_user_data)(void *client); /* a progress_fn gets nothing else */

static bool load(struct library *library)
{
    const struct {
        const char *name;
        void *place; /* of a pointer to a function */
    } functions[] = {
        {"debuginfod_begin", &library->begin},
        {"debuginfod_end", &library->end},
        {"debuginfod_find_debuginfo", &library->find},
        {"debuginfod_set_progressfn", &library->set_progress},
        {"debuginfod_set_user_data", &library->set_user_data},
        {"debuginfod_get_user_data", &library->get_user_data},
    };
    library->handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        return false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library->handle, functions[i].name);
        if (!function) {
            dlclose(library->handle);
            return false;
        }
        memcpy(functions[i].place, &function, sizeof function);
    }
    get_user_data = library->get_user_data;
    return true;
}

bool debug_fetch_is_possible(void)
{
    struct library library;
    bool is_possible = load(&library);
    if (is_possible)
        dlclose(library.handle);
    return is_possible;
}

/* Called at least once a second, even while the server is silent. Returns 1 to end the wait. */
static int on_progress(void *client, long done, long all)
{
    struct debug_fetch *fetch = get_user_data(client);
    if (fetch->progress)
        fetch->progress(fetch->path, all > 0 ? (double)done / (double)all : 0,
                        fetch->progress_context);
    return fetch->spent_ns + (monotonic_ns() - fetch->begin_ns) >= fetch->limit_ns;
}

/* Returns an open file, or a negative errno. */
static int find(struct debug_fetch *fetch, const unsigned char *build_id, size_t bytes,
                char **ret_path)
{
    struct library library;
    if (!load(&library))
        return -ENOSYS;
    void *client = library.begin();
    int fd = -ENOMEM;
    if (client) {
        library.set_user_data(client, fetch);
        library.set_progress(client, on_progress);
        fd = library.find(client, build_id, (int)bytes, ret_path);
        library.end(client);
    }
    /* libcurl can't be unloaded safely: the handle is kept. */
    return fd;
}

int debug_fetch(struct debug_fetch *fetch, const unsigned char *build_id, size_t bytes,
                const char *module_path, char **ret_path)
{
    *ret_path = NULL;
    if (!fetch || fetch->spent_ns >= fetch->limit_ns)
        return -ENOENT;
    fetch->path = module_path;
    fetch->begin_ns = monotonic_ns();
    int fd = find(fetch, build_id, bytes, ret_path);
    fetch->spent_ns += monotonic_ns() - fetch->begin_ns;
    return fd < 0 ? -ENOENT : fd;
}
