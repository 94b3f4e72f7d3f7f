/* fgprof_profiles.h - profiles of what a program holds: files, sockets, locks, requests.
 *
 *     static fgprof_custom_profile *files;
 *     ...
 *     fgprof_custom_new("example.com/files", &files);
 *     ...
 *     FILE *file = fopen(path, "r");
 *     fgprof_custom_add(files, file, 0);
 *     ...
 *     fgprof_custom_remove(files, file);
 *     fclose(file);
 *
 * As with Go's runtime/pprof.NewProfile, the profile shows how many values exist, by the stacks
 * that added them. fgprof-c reads it from outside, at any time:
 *
 *     fgprof-c attach -p PID --kind example.com/files -f text
 *
 * and `fgprof-c serve` has it at /debug/pprof/example.com/files. fgprof_custom_write writes it from
 * inside.
 *
 * Link with -lfgprof-agent, which needs nothing but libc. The functions begin with fgprof_custom_,
 * because fgprof.h uses fgprof_profile_ for something else; a program may use both headers.
 *
 * Any thread may call the functions, but a signal handler may not. Functions that return int return
 * 0 or a negative errno. A child of fork(2) begins with empty profiles of the same names.
 *
 * An add copies the thread's stack, up to 16 KiB, and takes about as long as a few malloc(3). All
 * profiles together have 64 MiB for stacks; memory is allocated only as it is used. When that is
 * full, values are still counted, but without a stack, and the profile says so. */
#ifndef FGPROF_PROFILES_H
#define FGPROF_PROFILES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FGPROF_API
#define FGPROF_API __attribute__((visibility("default")))
#endif

/* A profile stays for as long as the process does. */
typedef struct fgprof_custom_profile fgprof_custom_profile;

/* Makes a profile. The name is copied. By convention it begins with who made it, like an import
 * path: "example.com/files". Errors:
 *   -EINVAL  the name is empty or longer than 63 bytes, has spaces or control characters, or is not
 *            UTF-8
 *   -EPERM   it is one of fgprof-c's own: fgprof, wall, cpu, profile, block, mutex, blame, heap,
 *            allocs, growth, threadcreate, goroutine, trace, symbol, cmdline
 *   -EEXIST  there is such a profile: see fgprof_custom_lookup
 *   -ENOSPC  there are already 1000
 *   -ENOMEM, -EFBIG if RLIMIT_FSIZE is very small, those of memfd_create(2) */
FGPROF_API int fgprof_custom_new(const char *name, fgprof_custom_profile **ret_profile);

/* Returns the profile of this name; NULL: there is none. */
FGPROF_API fgprof_custom_profile *fgprof_custom_lookup(const char *name);

typedef void fgprof_custom_fn(fgprof_custom_profile *profile, void *context);

/* Calls `function` for each profile, sorted by name. It may call all functions of this header. */
FGPROF_API void fgprof_custom_each(fgprof_custom_fn *function, void *context);

/* Adds a value, with the stack of the calling thread. The value identifies what is held, and is
 * never dereferenced: a pointer to it, or a number such as a descriptor, cast to a pointer. `skip`
 * is how many of the innermost functions are left out of the stack: with 0 it begins with the
 * function that calls fgprof_custom_add, with 1 with that one's caller; inlined functions do not
 * count. Errors: -EEXIST if the profile already has this value, and -ENOMEM. The first value of a
 * child of fork(2) needs memory as the first profile does, with the same errors: -ENOMEM, -EFBIG,
 * those of memfd_create(2). */
FGPROF_API int fgprof_custom_add(fgprof_custom_profile *profile, const void *value, unsigned skip);

/* Removes a value. If the profile does not have it, nothing happens. */
FGPROF_API void fgprof_custom_remove(fgprof_custom_profile *profile, const void *value);

/* Returns how many values the profile has. */
FGPROF_API size_t fgprof_custom_count(const fgprof_custom_profile *profile);

/* Returns its name, which stays valid. */
FGPROF_API const char *fgprof_custom_name(const fgprof_custom_profile *profile);

/* Writes the profile to `fd`, as Go's Profile.WriteTo does: with `debug` 0 as gzipped
 * profile.proto, with 1 as text, with the names of functions. A helper process, fgprof-c, does the
 * work: it is searched for next to the agent's library, then in PATH. As with fgprof_start of
 * fgprof.h, it is not a child of the calling process, and is declared to Yama (prctl(2),
 * PR_SET_PTRACER) until it is done: if kernel.yama.ptrace_scope is 1, that ends the rights of a
 * session of fgprof_start. Errors:
 *   -EBUSY            another thread is writing a profile
 *   -ENOENT           there is no fgprof-c
 *   -EPROTONOSUPPORT  it is of another version
 *   -EPERM            the process may not be read, for example because it has more rights
 *   -EBADF, -EINVAL   no such descriptor, or value of `debug`
 *   -ENOMEM, -EAGAIN, -EMFILE, those of execve(2) and write(2)
 *   -ECONNRESET       the helper was killed */
FGPROF_API int fgprof_custom_write(fgprof_custom_profile *profile, int fd, int debug);

#ifdef __cplusplus
}
#endif

#endif
