#include "profile/allocators.h"
#include "base/text.h"

/* Names in the symbol table. */
static const char *const names[] = {
    /* C's, POSIX's and glibc's. */
    "aligned_alloc",
    "calloc",
    "malloc",
    "memalign",
    "mmap",
    "mmap64",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "reallocarray",
    "valloc",
    "__calloc",
    "__libc_calloc",
    "__libc_malloc",
    "__libc_memalign",
    "__libc_pvalloc",
    "__libc_realloc",
    "__libc_reallocarray",
    "__libc_valloc",
    "__malloc",
    "__mmap",
    "__mmap64",
    "__posix_memalign",
    "__realloc",
    /* tcmalloc's for C++. */
    "tc_new",
    "tc_new_nothrow",
    "tc_newarray",
    "tc_newarray_nothrow",
    /* Rust's shims around its allocator. */
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rdl_realloc",
    "__rg_alloc",
    "__rg_alloc_zeroed",
    "__rg_realloc",
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
};

/* C++'s operator new and new[], as the Itanium C++ ABI mangles them, whatever else they take. */
static const char *const operators[] = {"_Znwm", "_Znam"};

/* Prefixes of jemalloc, tcmalloc and mimalloc. */
static const char *const prefixes[] = {"je_", "tc_", "mi_"};

static bool is_allocator(const char *name)
{
    bool is_it = text_is_any(name, names, COUNT_OF(names)) ||
                 text_begins_any(name, operators, COUNT_OF(operators));
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        is_it |= text_begins(name, prefixes[i]) &&
                 text_is_any(name + strlen(prefixes[i]), names, COUNT_OF(names));
    return is_it;
}

/* Counts a location's innermost allocating functions. Their callers may be inlined at the same
 * location. */
static uint32_t count_lines(const struct fgprof_profile *profile, uint32_t number)
{
    const struct profile_location *location = &profile->locations[number];
    uint32_t count = 0;
    for (; count < location->line_count && !location->is_note; count++) {
        const struct profile_line *line = &profile->lines[location->first_line + count];
        uint32_t name = profile->functions[line->function].system_name;
        if (!is_allocator(strings_get(&profile->strings, name)))
            break;
    }
    return count;
}

static bool is_in_allocators(const struct fgprof_profile *profile, uint32_t number)
{
    uint32_t count = count_lines(profile, number);
    return count && count == profile->locations[number].line_count;
}

uint32_t allocators_count_leading(const struct fgprof_profile *profile, uint32_t stack)
{
    const uint32_t *locations = &profile->stack_locations[profile->stacks[stack].first_location];
    uint32_t count = 0;
    while (count + 1 < profile->stacks[stack].depth && is_in_allocators(profile, locations[count]))
        count++;
    return count;
}

void allocators_trim_first(struct fgprof_profile *profile, uint32_t stack)
{
    const struct profile_stack *trimmed = &profile->stacks[stack];
    if (!trimmed->depth)
        return;
    uint32_t number = profile->stack_locations[trimmed->first_location];
    struct profile_location *location = &profile->locations[number];
    uint32_t count = count_lines(profile, number);
    if (count < location->line_count) {
        location->first_line += count;
        location->line_count -= count;
    }
}
