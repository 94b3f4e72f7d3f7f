/* The functions of fgprof_profiles.h. */
#include "fgprof_profiles.h"
#include "agent/helper.h"
#include "agent/values.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_built_in(const char *name)
{
    static const char *const names[] = {
        "fgprof", "wall",   "cpu",          "profile",   "block", "mutex",  "blame",   "heap",
        "allocs", "growth", "threadcreate", "goroutine", "trace", "symbol", "cmdline",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

int fgprof_custom_new(const char *name, fgprof_custom_profile **ret_profile)
{
    if (!values_name_is_valid(name))
        return -EINVAL;
    if (is_built_in(name))
        return -EPERM;
    return values_new_profile(name, ret_profile);
}

fgprof_custom_profile *fgprof_custom_lookup(const char *name)
{
    fgprof_custom_profile *profile;
    for (uint32_t i = 0; (profile = values_profile(i)); i++) {
        if (strcmp(profile->name, name) == 0)
            return profile;
    }
    return NULL;
}

/* The profile with the least name that is greater than `name`; NULL: there is none. */
static fgprof_custom_profile *find_next(const char *name)
{
    fgprof_custom_profile *next = NULL, *profile;
    for (uint32_t i = 0; (profile = values_profile(i)); i++) {
        if (strcmp(profile->name, name) > 0 && (!next || strcmp(profile->name, next->name) < 0))
            next = profile;
    }
    return next;
}

void fgprof_custom_each(fgprof_custom_fn *function, void *context)
{
    fgprof_custom_profile *profile = find_next("");
    for (; profile; profile = find_next(profile->name))
        function(profile, context);
}

int fgprof_custom_add(fgprof_custom_profile *profile, const void *value, unsigned skip)
{
    struct capture capture;
    capture_begin(&capture);
    return values_add(profile, (uintptr_t)value, skip, &capture);
}

void fgprof_custom_remove(fgprof_custom_profile *profile, const void *value)
{
    values_remove(profile, (uintptr_t)value);
}

size_t fgprof_custom_count(const fgprof_custom_profile *profile)
{
    return values_count(profile);
}

const char *fgprof_custom_name(const fgprof_custom_profile *profile)
{
    return profile->name;
}

int fgprof_custom_write(fgprof_custom_profile *profile, int fd, int debug)
{
    const char *const words[] = {HELPER_WRITES, profile->name, debug ? "text" : "pprof"};
    struct helper helper;
    if (debug != 0 && debug != 1)
        return -EINVAL;
    int err = helper_begin(fd, words, &helper);
    if (!err)
        helper_dismiss(&helper);
    return err;
}
