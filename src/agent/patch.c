#include "agent/patch.h"
#include "agent/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_CALL(type) ((type) == R_X86_64_JUMP_SLOT)
#define IS_ADDRESS(type) ((type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_CALL(type) ((type) == R_AARCH64_JUMP_SLOT)
#define IS_ADDRESS(type) ((type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif

#define SETS_MAX 8u

static struct hooks sets[SETS_MAX];
static unsigned set_count;
/* How many files had been loaded when all were patched. */
static _Atomic uint64_t patched_loads;

static struct {
    void *(*dlopen)(const char *path, int mode);
    void *(*dlsym)(void *handle, const char *name);
} next_loading;

static void patch_new(void);

/* The caller of dlopen matters if the path is a name to be searched for by the caller's settings
 * (DT_RUNPATH, $ORIGIN). So calling the next dlopen is the last thing done here, as a tail call,
 * which keeps the caller's return address, and the new files are patched when dlsym is called. */
static void *patched_dlopen(const char *path, int mode)
{
    if (path && (!strchr(path, '/') || strchr(path, '$')))
        return next_loading.dlopen(path, mode);
    void *handle = next_loading.dlopen(path, mode);
    patch_new();
    return handle;
}

/* As above: what RTLD_NEXT means depends on the caller. */
static void *patched_dlsym(void *handle, const char *name)
{
    patch_new();
    return next_loading.dlsym(handle, name);
}

static const struct hook loading[] = {
    {"dlopen", (void *)patched_dlopen, &next_loading.dlopen},
    {"dlsym", (void *)patched_dlsym, &next_loading.dlsym},
};

static const struct hook *find_hook(const char *name)
{
    for (unsigned i = 0; i < set_count; i++) {
        for (size_t n = 0; n < sets[i].count; n++) {
            if (strcmp(sets[i].rows[n].name, name) == 0)
                return &sets[i].rows[n];
        }
    }
    return NULL;
}

/* ---- Pages ---- */

/* Reads a line of /proc/self/maps byte by byte, "START-END rw..." in hexadecimal numbers. */
struct maps_line {
    uint64_t start, end;
    unsigned field; /* 0 and 1: the numbers; 2 and 3: may be read, may be written; 4: the rest */
};

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Takes the next byte. Returns true at the letter that says whether the range can be written. */
static bool take(struct maps_line *line, char c)
{
    if (line->field == 3 || (line->field < 2 && c == (line->field ? ' ' : '-')) ||
        line->field == 2) {
        line->field++;
        return line->field == 4;
    }
    if (line->field == 0)
        line->start = line->start * 16 + digit(c);
    else if (line->field == 1)
        line->end = line->end * 16 + digit(c);
    else if (c == '\n')
        *line = (struct maps_line){0};
    return false;
}

/* Whether the page is read-only, as the dynamic linker leaves it once all of a file is relocated.
 * Nothing else shows whether relocation has finished. */
static bool find_read_only(uint64_t page)
{
    char bytes[1024];
    struct maps_line line = {0};
    bool is_read_only = false;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && line.start <= page && (got = read(fd, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (take(&line, bytes[i]) && page >= line.start && page < line.end)
                is_read_only = bytes[i] == '-';
        }
    }
    if (fd >= 0)
        close(fd);
    return is_read_only;
}

/* ---- Words ---- */

struct patching {
    uint64_t page; /* the last that was looked up */
    bool is_read_only;
    bool is_unfinished; /* another thread still loads a file, or memory is short */
};

static bool is_protected(const struct module *module, const uint64_t *word, uint64_t page_bytes)
{
    for (unsigned i = 0; i < module->segment_count; i++) {
        const ElfW(Phdr) *segment = &module->segments[i];
        uint64_t start = module->base + segment->p_vaddr, limit = start + segment->p_memsz;
        if (segment->p_type == PT_GNU_RELRO && (uintptr_t)word >= start &&
            (uintptr_t)word < (limit & ~(page_bytes - 1)))
            return true;
    }
    return false;
}

/* Stores a word in a page that may be read-only since the file was loaded (PT_GNU_RELRO). Until it
 * is, another thread may be relocating its contents. */
static void store(struct patching *patching, const struct module *module, uint64_t *word,
                  uint64_t value)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t page = (uintptr_t)word & ~(page_bytes - 1);
    bool was_protected = is_protected(module, word, page_bytes);
    if (was_protected && page != patching->page)
        *patching = (struct patching){page, find_read_only(page), patching->is_unfinished};
    if (was_protected && !patching->is_read_only) {
        patching->is_unfinished = true;
        return;
    }
    if (was_protected && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE)) {
        if (errno == ENOMEM) /* too many mappings; what is sealed (mseal(2)) never changes */
            patching->is_unfinished = true;
        return;
    }
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (was_protected)
        mprotect((void *)page, page_bytes, PROT_READ);
}

/* Before the first call, a word points to code of the module itself, which looks up the function.
 * That function may be one of the module's own. */
static void patch_word(struct patching *patching, const struct module *module, uint64_t *word,
                       const struct hook *hook, bool may_be_unbound)
{
    uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE), next;
    memcpy(&next, hook->next, sizeof next);
    if (value == next || (may_be_unbound && module_has(module, value)))
        store(patching, module, word, (uintptr_t)hook->function);
}

static void patch_words(struct patching *patching, const struct module *module,
                        const struct symbols *symbols, const ElfW(Rela) * relocations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(relocations[i].r_info);
        const ElfW(Sym) *symbol = &symbols->table[ELF64_R_SYM(relocations[i].r_info)];
        if (!IS_CALL(type) && !(IS_ADDRESS(type) && relocations[i].r_addend == 0))
            continue;
        const struct hook *hook = find_hook(symbols->names + symbol->st_name);
        if (hook)
            patch_word(patching, module, (uint64_t *)(module->base + relocations[i].r_offset), hook,
                       IS_CALL(type) && symbol->st_shndx == SHN_UNDEF);
    }
}

static bool patch_module(const struct module *module, void *context)
{
    struct symbols symbols;
    struct patching *patching = context;
    if (module_has(module, (uintptr_t)patch_module) || !symbols_of(module, &symbols))
        return false;
    patch_words(patching, module, &symbols, symbols.calls, symbols.call_count);
    patch_words(patching, module, &symbols, symbols.others, symbols.other_count);
    return false;
}

static bool get_loads(const struct module *module, void *context)
{
    *(uint64_t *)context = module->loads;
    return true;
}

static void patch_new(void)
{
    struct patching patching = {0};
    uint64_t loads = 0;
    int saved_errno = errno;
    modules_visit(get_loads, &loads);
    if (atomic_exchange(&patched_loads, loads) != loads)
        modules_visit(patch_module, &patching);
    if (patching.is_unfinished)
        atomic_store(&patched_loads, 0); /* the next call tries again */
    errno = saved_errno;
}

void patch(const struct hooks *hooks)
{
    static const struct hooks loading_hooks = HOOKS(loading);
    if (!set_count) {
        next_loading.dlopen = dlopen;
        next_loading.dlsym = dlsym;
        sets[set_count++] = loading_hooks;
    }
    if (set_count < SETS_MAX)
        sets[set_count++] = *hooks;
    atomic_store(&patched_loads, 0);
    patch_new();
}
