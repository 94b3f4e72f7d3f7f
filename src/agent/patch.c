#include "agent/patch.h"
#include "agent/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
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

/* ---- Words ---- */

/* Whether the word's page is read-only, as the dynamic linker leaves it once all of a file is
 * relocated. Nothing else shows whether relocation has finished. The kernel adds 0 to the word,
 * atomically, and says whether it could (FUTEX_WAKE_OP of futex(2)); nobody waits for `none`. */
static bool is_read_only(const uint64_t *word)
{
    const uint32_t none = 0;
    const long wakes = 0;
    uint64_t aligned = (uintptr_t)word & ~(sizeof none - 1);
    return syscall(SYS_futex, &none, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, wakes, wakes, aligned,
                   FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) < 0 &&
           errno == EFAULT;
}

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
static void store(bool *is_unfinished, const struct module *module, uint64_t *word, uint64_t value)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t page = (uintptr_t)word & ~(page_bytes - 1);
    bool was_protected = is_protected(module, word, page_bytes);
    if (was_protected && !is_read_only(word)) {
        *is_unfinished = true;
        return;
    }
    if (was_protected && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE)) {
        if (errno == ENOMEM) /* too many mappings; what is sealed (mseal(2)) never changes */
            *is_unfinished = true;
        return;
    }
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (was_protected)
        mprotect((void *)page, page_bytes, PROT_READ);
}

/* Before the first call, a word points to code of the module itself, which looks up the function.
 * That function may be one of the module's own. */
static void patch_word(bool *is_unfinished, const struct module *module, uint64_t *word,
                       const struct hook *hook, bool may_be_unbound)
{
    uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE), next;
    memcpy(&next, hook->next, sizeof next);
    if (value == next || (may_be_unbound && module_has(module, value)))
        store(is_unfinished, module, word, (uintptr_t)hook->function);
}

static void patch_words(bool *is_unfinished, const struct module *module,
                        const struct symbols *symbols, const ElfW(Rela) * relocations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(relocations[i].r_info);
        const ElfW(Sym) *symbol = &symbols->table[ELF64_R_SYM(relocations[i].r_info)];
        if (!IS_CALL(type) && !(IS_ADDRESS(type) && relocations[i].r_addend == 0))
            continue;
        const struct hook *hook = find_hook(symbols->names + symbol->st_name);
        if (hook)
            patch_word(is_unfinished, module, (uint64_t *)(module->base + relocations[i].r_offset),
                       hook, IS_CALL(type) && symbol->st_shndx == SHN_UNDEF);
    }
}

static bool patch_module(const struct module *module, void *context)
{
    struct symbols symbols;
    if (module_has(module, (uintptr_t)patch_module) || !symbols_of(module, &symbols))
        return false;
    patch_words(context, module, &symbols, symbols.calls, symbols.call_count);
    patch_words(context, module, &symbols, symbols.others, symbols.other_count);
    return false;
}

static bool get_loads(const struct module *module, void *context)
{
    *(uint64_t *)context = module->loads;
    return true;
}

static void patch_new(void)
{
    bool is_unfinished = false; /* another thread still loads a file, or memory is short */
    uint64_t loads = 0;
    int saved_errno = errno;
    modules_visit(get_loads, &loads);
    if (atomic_exchange(&patched_loads, loads) != loads)
        modules_visit(patch_module, &is_unfinished);
    if (is_unfinished)
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
