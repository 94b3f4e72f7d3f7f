/* A call site is a function's name and a hash of the innermost return addresses, each relative to
 * its module, so that it is the same in each run. Threads may reach their calls in any order, so
 * the Nth call of all would not be the same one in each run.
 *
 *   FAULT_LOG=FILE                   each site, when it is first reached, as "FUNCTION HASH"; with
 *                                    FAULT, the stack of the call that failed; the stack of a
 *                                    crash. Zeros follow.
 *   FAULT=FUNCTION:HASH:ERRNO[+]     the first call there fails with the number ERRNO; with +, so
 *                                    do all later calls of the function, anywhere. ERRNO 0: it
 *                                    transfers half of what was requested. HASH nN means the Nth
 *                                    call of the function.
 *   FAULT_PROGRAM=NAME               only programs of this name: children inherit the environment
 *
 * The file is mapped, and contains the state of all calls, so that all processes created by fork(2)
 * share it: they may have closed all descriptors, and may be permitted hardly any system call. */
#include "site.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_BYTES (4u << 20)
#define SITES_MAX 65536 /* a power of 2 */
#define MODULES_MAX 64
#define DEPTH 7      /* return addresses that identify a site, */
#define OWN_FRAMES 3 /* after those in this library */
#define NAME_BYTES 32

static struct module {
    uintptr_t begin, end;
    bool is_own, is_sanitizer;
} modules[MODULES_MAX];
static size_t module_count;

/* The contents of FAULT_LOG. */
static struct shared {
    char text[TEXT_BYTES];
    atomic_size_t text_bytes;
    _Atomic uint64_t sites[SITES_MAX];
    atomic_bool has_failed;
    atomic_ulong calls;
} * shared;

static struct {
    bool is_set, is_lasting;
    char function[NAME_BYTES];
    uint64_t hash, number;
    int error;
} fault;

static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

void *next_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* NULL: none. */
static const struct module *module_of(const void *address)
{
    for (size_t i = 0; i < module_count; i++) {
        if ((uintptr_t)address >= modules[i].begin && (uintptr_t)address < modules[i].end)
            return &modules[i];
    }
    return NULL;
}

/* Whether a sanitizer has called this library: it needs files to name what it reports. */
static bool is_by_sanitizer(void *const *stack, int depth)
{
    const struct module *module = NULL, *before;
    for (int i = 0; i < depth; i++) {
        before = module;
        module = module_of(stack[i]);
        if (before && before->is_own && module != before)
            return module && module->is_sanitizer;
    }
    return false;
}

static uint64_t hash_of(const char *function, void *const *stack, int depth)
{
    uint64_t hash = 1;
    for (const char *at = function; *at; at++)
        hash = mix(hash, (unsigned char)*at);
    for (int i = OWN_FRAMES; i < depth && i < OWN_FRAMES + DEPTH; i++) {
        const struct module *module = module_of(stack[i]);
        if (module)
            hash =
                mix(mix(hash, (uint64_t)(module - modules)), (uintptr_t)stack[i] - module->begin);
    }
    return hash ? hash : 1;
}

/* Whether the site is reached for the first time. */
static bool is_new(uint64_t hash)
{
    for (size_t i = hash % SITES_MAX;; i = (i + 1) % SITES_MAX) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&shared->sites[i], &there, hash))
            return true;
        if (there == hash)
            return false;
    }
}

static void write_log(const char *text, size_t bytes)
{
    size_t at = atomic_fetch_add(&shared->text_bytes, bytes);
    if (at + bytes > TEXT_BYTES)
        abort();
    memcpy(shared->text + at, text, bytes);
}

static void log_site(const char *function, uint64_t hash)
{
    char line[2 * NAME_BYTES];
    int bytes = snprintf(line, sizeof line, "%s %016" PRIx64 "\n", function, hash);
    write_log(line, (size_t)bytes);
}

/* Like backtrace_symbols_fd(3), which calls write. */
static void log_stack(void *const *stack, int depth)
{
    char line[512];
    for (int i = 0; i < depth; i++) {
        Dl_info info = {0};
        dladdr(stack[i], &info);
        uintptr_t base = (uintptr_t)(info.dli_saddr ? info.dli_saddr : info.dli_fbase);
        snprintf(line, sizeof line, "%s(%s+0x%" PRIxPTR ")[%p]\n",
                 info.dli_fname ? info.dli_fname : "", info.dli_sname ? info.dli_sname : "",
                 (uintptr_t)stack[i] - base, stack[i]);
        write_log(line, strlen(line));
    }
}

static bool is_this(const char *function, uint64_t hash)
{
    if (strcmp(function, fault.function) != 0)
        return false;
    if (atomic_load(&shared->has_failed))
        return fault.is_lasting;
    bool is_due =
        fault.number ? atomic_fetch_add(&shared->calls, 1) + 1 == fault.number : hash == fault.hash;
    bool expected = false;
    return is_due && atomic_compare_exchange_strong(&shared->has_failed, &expected, true);
}

static __attribute__((noinline)) bool is_due_here(const char *function)
{
    void *stack[OWN_FRAMES + 3 * DEPTH];
    if (!shared || is_inside)
        return false;
    if (fault.is_set && strcmp(function, fault.function) != 0)
        return false;
    int saved_errno = errno;
    is_inside = true;
    int depth = backtrace(stack, sizeof stack / sizeof *stack);
    uint64_t hash = hash_of(function, stack, depth);
    bool is_ours = !is_by_sanitizer(stack, depth);
    bool is_due = is_ours && fault.is_set && is_this(function, hash);
    if (is_ours && !fault.is_set && is_new(hash))
        log_site(function, hash);
    if (is_due && is_new(1))
        log_stack(stack, depth);
    is_inside = false;
    errno = saved_errno;
    return is_due;
}

bool fault_is_due(const char *function)
{
    if (!is_due_here(function) || !fault.error)
        return false;
    errno = fault.error;
    return true;
}

bool fault_is_short(const char *function)
{
    return fault.is_set && !fault.error && is_due_here(function);
}

static int note_module(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    uintptr_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && header->p_vaddr + header->p_memsz > end)
            end = header->p_vaddr + header->p_memsz;
    }
    if (module_count == MODULES_MAX)
        return 1;
    struct module *module = &modules[module_count++];
    *module = (struct module){info->dlpi_addr, info->dlpi_addr + end, false, false};
    module->is_own =
        (uintptr_t)note_module >= module->begin && (uintptr_t)note_module < module->end;
    module->is_sanitizer =
        strstr(info->dlpi_name, "/libasan.so") || strstr(info->dlpi_name, "/libubsan.so");
    return 0;
}

static void read_fault(const char *text)
{
    char hash[NAME_BYTES] = "", lasting = 0;
    if (sscanf(text, "%31[^:]:%31[^:]:%d%c", fault.function, hash, &fault.error, &lasting) < 3) {
        fputs("FAULT: expected FUNCTION:HASH:ERRNO[+]\n", stderr);
        _exit(2);
    }
    if (hash[0] == 'n')
        fault.number = strtoull(hash + 1, NULL, 10);
    else
        fault.hash = strtoull(hash, NULL, 16);
    fault.is_lasting = lasting == '+';
    fault.is_set = true;
}

/* Logged, because the main process survives a crash of its helper processes. */
static void note_crash(int number)
{
    void *stack[OWN_FRAMES + 3 * DEPTH];
    char line[NAME_BYTES];
    is_inside = true;
    write_log(line, (size_t)snprintf(line, sizeof line, "crash by signal %d\n", number));
    log_stack(stack, backtrace(stack, sizeof stack / sizeof *stack));
}

static void watch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGABRT, SIGFPE};
    const struct sigaction action = {.sa_handler = note_crash, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}

static struct shared *map_log(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shared) != 0)
        abort();
    void *mapped = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        abort();
    return mapped;
}

__attribute__((constructor)) static void arm(void)
{
    const char *path = getenv("FAULT_LOG"), *text = getenv("FAULT");
    const char *program = getenv("FAULT_PROGRAM");
    void *first[1];
    if (!path || !program || strcmp(program_invocation_short_name, program) != 0)
        return;
    dl_iterate_phdr(note_module, NULL);
    backtrace(first, 1); /* loads what backtrace needs */
    if (text)
        read_fault(text);
    shared = map_log(path);
    watch_crashes();
}
