#include "profile/place.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Names in glibc (csu/, nptl/, sysdeps/), musl, libstdc++ and Go's runtime. */
static const char *const starts[] = {
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "call_init",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__GI___clone",
    "__GI___clone3",
    "start_thread",
    "thread_start",
    "execute_native_thread_routine",
    "runtime.goexit",
    "runtime.main",
    "runtime.mstart",
};

/* Parts of the names of functions that wait for a lock, in glibc, musl, Rust's std and parking_lot,
 * absl and PostgreSQL, whose processes wait for each other. Condition variables are not locks, but
 * acquire their lock again. */
static const char *const locks[] = {
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_mutex_cond_lock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_timedrd",
    "pthread_rwlock_timedwr",
    "pthread_rwlock_clock",
    "lll_lock_wait",
    "Mutex::lock_contended",
    "RwLock::read_contended",
    "RwLock::write_contended",
    "RawMutex::lock_slow",
    "RawRwLock::lock_shared_slow",
    "RawRwLock::lock_exclusive_slow",
    "absl::Mutex::LockSlow",
    "absl::Mutex::Lock",
    "LockAcquire",
};

/* Prefixes of functions that call those for others. */
static const char *const wrappers[] = {
    "__gthread",
    "__invoke",
    "_M_invoke",
    "std::__invoke",
    "std::thread::_Invoker",
    "std::thread::_State_impl",
    "std::_Function_handler",
    "std::mutex",
    "std::timed_mutex",
    "std::recursive_mutex",
    "std::shared_mutex",
    "std::__shared_",
    "std::shared_lock",
    "std::lock",
    "std::scoped_lock",
    "std::unique_lock",
    "std::sync::",
    "std::sys::",
    "parking_lot",
    "lock_api::",
    "absl::MutexLock",
    "absl::ReaderMutexLock",
    "absl::WriterMutexLock",
    "sync.(",
    "internal/sync.(",
};

static bool is_start(const char *function)
{
    return text_is_any(function, starts, COUNT_OF(starts)) ||
           text_begins(function, "__libc_start_main"); /* with "_impl" or a version behind it */
}

unsigned place_roles(const char *function)
{
    unsigned roles = is_start(function) ? LABEL_START : 0u;
    for (size_t i = 0; i < COUNT_OF(locks); i++)
        roles |= strstr(function, locks[i]) ? LABEL_LOCK : 0u;
    return roles | (text_begins_any(function, wrappers, COUNT_OF(wrappers)) ? LABEL_WRAPPER : 0u);
}

/* Go's are in the program itself, so the name of the function at the address tells. */
static bool is_in_go_runtime(const struct fgprof_profile *profile,
                             const struct profile_location *location)
{
    static const char *const packages[] = {"runtime.", "internal/poll.", "sync.(", "sync.runtime_",
                                           "internal/sync.("};
    if (!location->line_count)
        return false;
    const struct profile_line *outermost =
        &profile->lines[location->first_line + location->line_count - 1];
    const char *name = strings_get(&profile->strings, profile->functions[outermost->function].name);
    return text_begins_any(name, packages, COUNT_OF(packages)) && !is_start(name);
}

bool place_is_in_library(const struct fgprof_profile *profile,
                         const struct profile_location *location, unsigned libraries)
{
    static const struct {
        const char *prefix;
        unsigned library;
    } files[] = {
        {"libc.so.", PLACE_C_LIBRARY},       {"libc-2.", PLACE_C_LIBRARY},
        {"libpthread", PLACE_C_LIBRARY},     {"ld-musl-", PLACE_C_LIBRARY},
        {"libstdc++.so", PLACE_CXX_LIBRARY}, {"libc++", PLACE_CXX_LIBRARY},
    };
    if (location->mapping == PROFILE_NO_MAPPING)
        return false;
    if (libraries & PLACE_GO_RUNTIME && is_in_go_runtime(profile, location))
        return true;
    const char *path = strings_get(&profile->strings, profile->mappings[location->mapping].path);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        if (libraries & files[i].library && text_begins(basename(path), files[i].prefix))
            return true;
    }
    return false;
}

enum { NOT_KNOWN, IS_OWN, IS_NOT_OWN };

int places_init(struct places *places, const struct fgprof_profile *profile)
{
    *places = (struct places){
        .profile = profile,
        .of_frame = calloc(frame_numbers(profile) + 1, sizeof *places->of_frame),
    };
    return places->of_frame ? 0 : -ENOMEM;
}

void places_free(struct places *places)
{
    free(places->of_frame);
    *places = (struct places){0};
}

static bool is_own(const struct places *places, const struct profile_frame *frame)
{
    const struct fgprof_profile *profile = places->profile;
    if (frame->location->is_kernel || frame->location->is_note ||
        place_is_in_library(profile, frame->location,
                            PLACE_C_LIBRARY | PLACE_CXX_LIBRARY | PLACE_GO_RUNTIME))
        return false;
    if (frame->location->mapping != PROFILE_NO_MAPPING &&
        strcmp(strings_get(&profile->strings, profile->mappings[frame->location->mapping].path),
               "[vdso]") == 0)
        return false;
    uint32_t name = frame->line ? profile->functions[frame->line->function].name : 0;
    return !place_roles(strings_get(&profile->strings, name));
}

size_t place_of_stack(struct places *places, const struct profile_stack *stack,
                      struct profile_frame *ret_frame)
{
    const struct fgprof_profile *profile = places->profile;
    struct frame_walk walk = {0};
    struct profile_frame frame;
    for (size_t nearer = 0; frame_next_from_leaf(profile, stack, &walk, &frame); nearer++) {
        unsigned char *known = &places->of_frame[frame_number(profile, &frame)];
        if (*known == NOT_KNOWN)
            *known = is_own(places, &frame) ? IS_OWN : IS_NOT_OWN;
        if (*known == IS_OWN) {
            *ret_frame = frame;
            return nearer;
        }
    }
    walk = (struct frame_walk){0};
    return frame_next_from_leaf(profile, stack, &walk, ret_frame) ? 0 : PLACE_NONE;
}
