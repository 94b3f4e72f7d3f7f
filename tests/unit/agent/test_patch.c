/* Calls from a library with full RELRO: its symbols are bound at load time, and its pointers are
 * read-only afterwards. */
#include "unit.h"
#include "agent/patch.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>

static unsigned calls;
static void *(*next_malloc)(size_t bytes);
static void *(*allocate)(size_t bytes);
static void (*give_back)(void *object);
static void *(*find)(const char *name);
static bool fails_once;

int __real_mprotect(void *address, size_t bytes, int protection);
int __wrap_mprotect(void *address, size_t bytes, int protection);

int __wrap_mprotect(void *address, size_t bytes, int protection)
{
    if (!fails_once)
        return __real_mprotect(address, bytes, protection);
    fails_once = false;
    errno = ENOMEM;
    return -1;
}

static void *count_malloc(size_t bytes)
{
    calls++;
    return next_malloc(bytes);
}

static const struct hook rows[] = {{"malloc", (void *)count_malloc, &next_malloc}};
static const struct hooks hooks = HOOKS(rows), none = {0};

static unsigned calls_seen(void)
{
    unsigned before = calls;
    give_back(allocate(100));
    return calls - before;
}

/* Sets the protection of the library's RELRO pages. */
static int protect(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    for (unsigned i = 0; strstr(info->dlpi_name, "fixture-user") && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t start = (info->dlpi_addr + segment->p_vaddr) & ~(page_bytes - 1);
        uint64_t limit =
            (info->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page_bytes - 1);
        if (segment->p_type == PT_GNU_RELRO)
            assert_int_equal(mprotect((void *)start, limit - start, *(int *)context), 0);
    }
    return 0;
}

static int load(void **state)
{
    void *library = *state = dlopen(USER, RTLD_NOW);
    assert_non_null(library);
    *(void **)&allocate = dlsym(library, "user_allocate");
    *(void **)&give_back = dlsym(library, "user_free");
    *(void **)&find = dlsym(library, "user_find");
    *(void **)&next_malloc = dlsym(RTLD_DEFAULT, "malloc");
    return 0;
}

static int unload(void **state)
{
    return dlclose(*state);
}

/* Another thread may still be relocating the pointers: they are left alone, and set later. */
static void test_words_of_a_library_that_is_being_loaded(void **state)
{
    (void)state;
    dl_iterate_phdr(protect, &(int){PROT_READ | PROT_WRITE});
    patch(&hooks);
    assert_int_equal(calls_seen(), 0);
    /* They are still writable. */
    dl_iterate_phdr(protect, &(int){PROT_READ | PROT_WRITE});
    patch(&none);
    assert_int_equal(calls_seen(), 0);
    dl_iterate_phdr(protect, &(int){PROT_READ});
    patch(&none);
    assert_int_equal(calls_seen(), 1);
    assert_int_equal(calls_seen(), 1);
}

/* Patching is retried when a library is loaded next, or when a function is looked up in one. The
 * library's first pointer is that of malloc. */
static void test_a_page_that_can_not_be_written(void **state)
{
    (void)state;
    fails_once = true;
    patch(&none);
    assert_false(fails_once);
    assert_int_equal(calls_seen(), 0);
    assert_non_null(find("free"));
    assert_int_equal(calls_seen(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words_of_a_library_that_is_being_loaded, load, unload),
        cmocka_unit_test_setup_teardown(test_a_page_that_can_not_be_written, load, unload),
    };
    return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
