/* fgprof_label.h - labels the calling thread with what it works on, for profilers to read.
 *
 *     static void handle(const struct request *request)
 *     {
 *         struct fgprof_label_scope scope;
 *         fgprof_label_begin(&scope, "route", request->route);
 *         ...
 *         fgprof_label_end(&scope);
 *     }
 *
 * In C++ the end of the block ends the label, too:
 *
 *     fgprof::label route("route", request.route);
 *
 * Everything is in this header, for C99 and C++11 with GCC or Clang on Linux: there is no library
 * to link with. C code that is compiled with -std=c99 or -std=c11, and not as gnu11, must define
 * _GNU_SOURCE before it includes any header. Labels are published as OpenTelemetry specifies: OTEP
 * 4947 (thread context) and OTEP 4719 (process context) of
 * open-telemetry/opentelemetry-specification. Profilers such as fgprof-c read them from outside;
 * without one, a label costs some tens of nanoseconds.
 *
 * Programs should be linked with -Wl,--export-dynamic-symbol=otel_thread_ctx_v1 (or -rdynamic), so
 * that profilers find the labels even if the program is stripped. Libraries export the symbol
 * anyway. -mtls-dialect=gnu2 is the model that OTEP 4947 prefers on x86-64.
 *
 * A process has one publisher. A program and the libraries that it loads with dlopen(3) share one
 * if the program exports the symbols of this header (-rdynamic). If the process has an
 * OpenTelemetry SDK that publishes thread contexts, use that: the functions here return -EEXIST.
 *
 * Keys are shown as they are; up to 256 may be used, of at most 63 bytes each. There should be few
 * distinct values, such as a route and not a request's id; they are UTF-8. Of a longer value, 255
 * bytes are kept.
 *
 * Any thread may call these functions, and so may signal handlers. Only the first use of a key
 * takes a lock. */
#ifndef FGPROF_LABEL_H
#define FGPROF_LABEL_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_DONTFORK
#error "fgprof_label.h needs -std=gnu11 or so, or _GNU_SOURCE defined before the first #include"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FGPROF_LABEL_KEYS_MAX 256
#define FGPROF_LABEL_KEY_BYTES_MAX 63
#define FGPROF_LABEL_RECORD_BYTES 640 /* as OTEP 4947 recommends */

/* A set of labels. Zeroed, it has none. It must not change while it is attached to a thread. */
struct fgprof_labels {
    uint8_t trace_id[16], span_id[8];
    uint8_t is_valid, trace_flags;
    uint16_t bytes; /* of `attributes` that are used */
    uint8_t attributes[FGPROF_LABEL_RECORD_BYTES - 28];
};

/* ---- For a block of code, as Go's pprof.Do ---- */

struct fgprof_label_scope {
    const struct fgprof_labels *previous;
    struct fgprof_labels labels;
};

/* Adds a label to those of the calling thread, until fgprof_label_end. `scope` must live until
 * then, and scopes end in the reverse order in which they began. A label with the same key is
 * hidden until then. Returns 0; -EINVAL if `key` is empty or too long; -ENOSPC if there is no room
 * for another key or label; -EEXIST if there is another publisher; -EBUSY if a signal handler uses
 * a new key while a thread is adding one; or another negative errno. After an error the thread
 * keeps its labels, and fgprof_label_end may still be called. */
static inline int fgprof_label_begin(struct fgprof_label_scope *scope, const char *key,
                                     const char *value);
static inline void fgprof_label_end(const struct fgprof_label_scope *scope);

/* ---- For threads that work on several things in turn, as Go's pprof.SetGoroutineLabels ---- */

/* Sets `labels` to those of the calling thread. */
static inline void fgprof_labels_get(struct fgprof_labels *labels);

/* Adds a label, and replaces one with the same key; if `value` is NULL, only removes that. `labels`
 * must not be attached. Returns as fgprof_label_begin; after an error nothing has changed. */
static inline int fgprof_labels_put(struct fgprof_labels *labels, const char *key,
                                    const char *value);

/* Gives the calling thread these labels, or none if NULL, and returns those that it had, to be
 * attached again later; NULL: none. This is a single store, so an event loop may do it for each
 * event. `labels` must live as long as they are attached to any thread. */
static inline const struct fgprof_labels *fgprof_labels_attach(const struct fgprof_labels *labels);

/* ---- How it works ---- */

#if defined(__GNUC__) || defined(__clang__)
#define FGPROF_LABEL_SHARED __attribute__((weak, visibility("default")))
#else
#error "fgprof_label.h needs GCC or Clang"
#endif

/* The symbol that readers look for: the labels that are attached to the thread. All files that
 * include this header share it. */
FGPROF_LABEL_SHARED __thread const struct fgprof_labels *volatile otel_thread_ctx_v1;

/* The header of a process's context (OTEP 4719). */
struct fgprof_label_context {
    char signature[8];
    uint32_t version, payload_bytes;
    uint64_t published_at;
    uint64_t payload;
};

#define FGPROF_LABEL_CONTEXT_BYTES 32768u /* with its payload: all keys, of their longest */

/* State of this process alone: a page that is zeroed in a child of fork, because a thread that the
 * child does not have may hold the parent's lock then. */
struct fgprof_label_process {
    uint32_t lock;
    uint32_t is_published;
    int error; /* why it can't be published; 0: it can, or is */
};

struct fgprof_label_keys {
    char names[FGPROF_LABEL_KEYS_MAX][FGPROF_LABEL_KEY_BYTES_MAX + 1];
    uint32_t count;
    struct fgprof_label_context *context; /* valid if it is published */
    struct fgprof_label_process *process; /* NULL until the first use */
};

FGPROF_LABEL_SHARED struct fgprof_label_keys fgprof_label_keys;

/* Whether the process has a context from another publisher: looks for its mapping's name in
 * /proc/self/maps. */
static inline int fgprof_label_has_other(void)
{
    static const char name[] = "OTEL_CTX";
    char buffer[512];
    size_t matched = 0;
    int found = 0, fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t bytes;
    while (fd >= 0 && !found && (bytes = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < bytes && !found; i++) {
            matched = buffer[i] == name[matched] ? matched + 1 : buffer[i] == name[0];
            found = matched == sizeof name - 1;
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* Makes the file to map; -1: the kernel can't, or the limit of a file's size is lower, beyond which
 * ftruncate(2) would end the program (SIGXFSZ). */
static inline int fgprof_label_file(void)
{
    int fd = -1;
#ifdef SYS_memfd_create
    struct rlimit limit;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < FGPROF_LABEL_CONTEXT_BYTES)
        return -1;
    fd = (int)syscall(SYS_memfd_create, "OTEL_CTX", 3u | 8u); /* CLOEXEC, sealing, NOEXEC_SEAL */
    if (fd < 0)
        fd = (int)syscall(SYS_memfd_create, "OTEL_CTX", 3u);
    if (fd >= 0 && ftruncate(fd, FGPROF_LABEL_CONTEXT_BYTES)) {
        close(fd);
        fd = -1;
    }
#endif
    return fd;
}

/* Makes the mapping, still without contents. */
static inline struct fgprof_label_context *fgprof_label_map(void)
{
    int fd = fgprof_label_file();
    void *memory = mmap(NULL, FGPROF_LABEL_CONTEXT_BYTES, PROT_READ | PROT_WRITE,
                        fd >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED)
        return NULL;
    if (madvise(memory, FGPROF_LABEL_CONTEXT_BYTES, MADV_DONTFORK)) {
        munmap(memory, FGPROF_LABEL_CONTEXT_BYTES);
        return NULL;
    }
    return (struct fgprof_label_context *)memory;
}

#define FGPROF_LABEL_FIELD_BYTES 4u /* of a field without its contents */

/* Appends a field of bytes to a protobuf message (protobuf.dev/programming-guides/encoding): its
 * number and type, its length in three bytes, and the contents, or only the head if `bytes` is
 * NULL. */
static inline uint8_t *fgprof_label_field(uint8_t *at, unsigned field, const void *bytes,
                                          size_t length)
{
    *at++ = (uint8_t)(field << 3 | 2);
    *at++ = (uint8_t)(0x80 | (length & 0x7f));
    *at++ = (uint8_t)(0x80 | (length >> 7 & 0x7f));
    *at++ = (uint8_t)(length >> 14);
    if (bytes)
        memcpy(at, bytes, length);
    return bytes ? at + length : at;
}

/* Writes a ProcessContext: two attributes (field 2), each with a key (1) and a value (2), which is
 * a string (1) or an array (5) of values (1). Returns its length. */
static inline size_t fgprof_label_encode(const struct fgprof_label_keys *keys, uint8_t *payload)
{
    static const char version_key[] = "threadlocal.schema_version", version[] = "tls_v1";
    static const char map_key[] = "threadlocal.attribute_key_map";
    const size_t head = FGPROF_LABEL_FIELD_BYTES;
    size_t all = 0;
    uint8_t *at = payload;
    for (uint32_t i = 0; i < keys->count; i++)
        all += 2 * head + strlen(keys->names[i]);
    at = fgprof_label_field(at, 2, NULL, sizeof version_key - 1 + 3 * head + sizeof version - 1);
    at = fgprof_label_field(at, 1, version_key, sizeof version_key - 1);
    at = fgprof_label_field(at, 2, NULL, head + sizeof version - 1);
    at = fgprof_label_field(at, 1, version, sizeof version - 1);
    at = fgprof_label_field(at, 2, NULL, sizeof map_key - 1 + 3 * head + all);
    at = fgprof_label_field(at, 1, map_key, sizeof map_key - 1);
    at = fgprof_label_field(at, 2, NULL, head + all);
    at = fgprof_label_field(at, 5, NULL, all);
    for (uint32_t i = 0; i < keys->count; i++) {
        at = fgprof_label_field(at, 1, NULL, head + strlen(keys->names[i]));
        at = fgprof_label_field(at, 1, keys->names[i], strlen(keys->names[i]));
    }
    return (size_t)(at - payload);
}

/* Publishes the keys, for the first time or again: readers ignore a context whose time is 0, or
 * that changes while they read. */
static inline void fgprof_label_write(const struct fgprof_label_keys *keys)
{
    struct fgprof_label_context *context = keys->context;
    uint8_t *payload = (uint8_t *)(context + 1);
    uint64_t before = __atomic_load_n(&context->published_at, __ATOMIC_RELAXED), now;
    struct timespec time;
    __atomic_store_n(&context->published_at, 0, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    memcpy(context->signature, "OTEL_CTX", sizeof context->signature);
    context->version = 2;
    context->payload = (uint64_t)(uintptr_t)payload;
    context->payload_bytes = (uint32_t)fgprof_label_encode(keys, payload);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    clock_gettime(7 /* CLOCK_BOOTTIME */, &time);
    now = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    __atomic_store_n(&context->published_at, now > before ? now : before + 1, __ATOMIC_SEQ_CST);
    /* PR_SET_VMA, PR_SET_VMA_ANON_NAME: not every kernel can. */
    prctl(0x53564d41, 0UL, (unsigned long)(uintptr_t)context,
          (unsigned long)FGPROF_LABEL_CONTEXT_BYTES, (unsigned long)(uintptr_t) "OTEL_CTX");
}

/* Makes the page, or takes the one that another thread has just made. NULL: no memory, or the
 * kernel can't zero it in a child (before Linux 4.14). */
static inline struct fgprof_label_process *fgprof_label_process(struct fgprof_label_keys *keys)
{
    struct fgprof_label_process *process = __atomic_load_n(&keys->process, __ATOMIC_ACQUIRE);
    void *page;
    if (process)
        return process;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, 4096, 18 /* MADV_WIPEONFORK */)) {
        munmap(page, 4096);
        return NULL;
    }
    if (__atomic_compare_exchange_n(&keys->process, &process, (struct fgprof_label_process *)page,
                                    0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return (struct fgprof_label_process *)page;
    munmap(page, 4096);
    return process;
}

/* With the lock: publishes what there is. A child of fork has no context, and publishes its own. */
static inline int fgprof_label_publish(struct fgprof_label_keys *keys)
{
    if (!keys->process->is_published) {
        if (fgprof_label_has_other())
            return -EEXIST;
        keys->context = fgprof_label_map();
        if (!keys->context)
            return -ENOMEM;
    }
    fgprof_label_write(keys);
    __atomic_store_n(&keys->process->is_published, 1u, __ATOMIC_RELEASE);
    return 0;
}

/* The number of a key that is known and published; -ENOENT if the lock is needed to find it; or
 * another negative errno if taking the lock would not help: that costs no more than finding a key.
 */
static inline int fgprof_label_find_key(const struct fgprof_label_keys *keys, const char *name)
{
    const struct fgprof_label_process *process = __atomic_load_n(&keys->process, __ATOMIC_ACQUIRE);
    uint32_t count = __atomic_load_n(&keys->count, __ATOMIC_ACQUIRE);
    int error = process ? __atomic_load_n(&process->error, __ATOMIC_ACQUIRE) : 0;
    if (error)
        return error;
    if (!process || !__atomic_load_n(&process->is_published, __ATOMIC_ACQUIRE))
        return -ENOENT;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(keys->names[i], name) == 0)
            return (int)i;
    }
    return count == FGPROF_LABEL_KEYS_MAX ? -ENOSPC : -ENOENT;
}

/* With the lock. */
static inline int fgprof_label_add_key(struct fgprof_label_keys *keys, const char *name)
{
    uint32_t number = 0;
    int err;
    while (number < keys->count && strcmp(keys->names[number], name) != 0)
        number++;
    if (number == FGPROF_LABEL_KEYS_MAX)
        return -ENOSPC;
    if (number == keys->count) {
        strcpy(keys->names[number], name);
        __atomic_store_n(&keys->count, number + 1, __ATOMIC_RELEASE);
    }
    err = fgprof_label_publish(keys);
    if (err)
        __atomic_store_n(&keys->process->error, err, __ATOMIC_RELEASE);
    return err ? err : (int)number;
}

/* The number of a key, which is taken into use if it is new; or a negative errno. */
static inline int fgprof_label_key(const char *name)
{
    struct fgprof_label_keys *keys = &fgprof_label_keys;
    struct fgprof_label_process *process;
    int number;
    if (!name[0] || strlen(name) > FGPROF_LABEL_KEY_BYTES_MAX)
        return -EINVAL;
    number = fgprof_label_find_key(keys, name);
    if (number != -ENOENT)
        return number;
    process = fgprof_label_process(keys);
    if (!process)
        return -ENOMEM;
    /* A signal handler must not wait for the thread that it interrupted. */
    for (int tries = 0; __atomic_exchange_n(&process->lock, 1u, __ATOMIC_ACQUIRE); tries++) {
        const struct timespec moment = {0, 100000};
        if (tries == 1000)
            return -EBUSY;
        nanosleep(&moment, NULL);
    }
    number = process->error ? process->error : fgprof_label_add_key(keys, name);
    __atomic_store_n(&process->lock, 0u, __ATOMIC_RELEASE);
    return number;
}

static inline void fgprof_labels_get(struct fgprof_labels *labels)
{
    const struct fgprof_labels *attached = otel_thread_ctx_v1;
    size_t head = sizeof *labels - sizeof labels->attributes;
    memset(labels, 0, head);
    if (!attached || attached->is_valid != 1)
        return;
    memcpy(labels, attached, head);
    if (labels->bytes > sizeof labels->attributes)
        labels->bytes = 0; /* of another publisher, and longer than ours */
    memcpy(labels->attributes, attached->attributes, labels->bytes);
}

/* Where the attribute is; labels->bytes: nowhere. */
static inline size_t fgprof_labels_find(const struct fgprof_labels *labels, int key)
{
    size_t at = 0;
    while (at + 2 <= labels->bytes && labels->attributes[at] != key)
        at += 2u + labels->attributes[at + 1];
    return at + 2 <= labels->bytes ? at : labels->bytes;
}

/* How much of a value is kept: no part of a character (UTF-8). */
static inline size_t fgprof_label_length(const char *value)
{
    size_t length = strlen(value);
    if (length <= 255)
        return length;
    for (length = 255; length && ((unsigned char)value[length] & 0xc0) == 0x80;)
        length--;
    return length;
}

static inline int fgprof_labels_put(struct fgprof_labels *labels, const char *key,
                                    const char *value)
{
    int number = fgprof_label_key(key);
    size_t length = value ? fgprof_label_length(value) : 0, at, old_bytes, end;
    if (number < 0)
        return number;
    at = fgprof_labels_find(labels, number);
    old_bytes = at < labels->bytes ? 2u + labels->attributes[at + 1] : 0;
    if (value && labels->bytes - old_bytes + 2 + length > sizeof labels->attributes)
        return -ENOSPC;
    labels->is_valid = 1;
    memmove(&labels->attributes[at], &labels->attributes[at + old_bytes],
            labels->bytes - at - old_bytes);
    end = labels->bytes - old_bytes;
    if (value) {
        labels->attributes[end] = (uint8_t)number;
        labels->attributes[end + 1] = (uint8_t)length;
        memcpy(&labels->attributes[end + 2], value, length);
        end += 2 + length;
    }
    labels->bytes = (uint16_t)end;
    return 0;
}

static inline const struct fgprof_labels *fgprof_labels_attach(const struct fgprof_labels *labels)
{
    const struct fgprof_labels *previous = otel_thread_ctx_v1;
    /* A reader that stops the thread sees the labels whole, or not at all. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    otel_thread_ctx_v1 = labels;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return previous;
}

static inline int fgprof_label_begin(struct fgprof_label_scope *scope, const char *key,
                                     const char *value)
{
    int err;
    scope->previous = otel_thread_ctx_v1;
    fgprof_labels_get(&scope->labels);
    err = fgprof_labels_put(&scope->labels, key, value);
    if (!err)
        fgprof_labels_attach(&scope->labels);
    return err;
}

static inline void fgprof_label_end(const struct fgprof_label_scope *scope)
{
    fgprof_labels_attach(scope->previous);
}

#ifdef __cplusplus
}

namespace fgprof
{
/* A label of the calling thread, until the end of the block. */
class label
{
  public:
    label(const char *key, const char *value)
    {
        fgprof_label_begin(&scope_, key, value);
    }
    /* A std::string, or what else has c_str(). */
    template <class String, class = decltype(static_cast<const String *>(nullptr)->c_str())>
    label(const char *key, const String &value) : label(key, value.c_str())
    {
    }
    ~label()
    {
        fgprof_label_end(&scope_);
    }
    label(const label &) = delete;
    label &operator=(const label &) = delete;

  private:
    fgprof_label_scope scope_;
};
} // namespace fgprof
#endif

#endif
