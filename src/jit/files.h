/* The files by which a process tells profilers what code it generates: /tmp/perf-PID.map and
 * jit-PID.dump, as perf reads them (Documentation/jit-interface.txt and
 * Documentation/jitdump-specification.txt of the kernel's tools/perf).
 *
 * /tmp is everybody's: a file counts only where it is a regular one, is no symbolic link, belongs
 * to the process's effective user or to root, and was written since the process began, so that no
 * other user can name its code, nor a process before it that had the same id. */
#ifndef FGPROF_JIT_FILES_H
#define FGPROF_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What must be known of a process to find its files and to believe them. */
struct jit_owner {
    int root_fd;     /* its root directory, kept: a JVM writes the map when it ends; -1: none */
    pid_t pid;       /* as it sees itself: of the innermost namespace */
    uid_t user;      /* effective */
    int64_t began_s; /* since 1970 */
};

/* Parses the text of a /proc/PID/status. Returns false where it lacks one of the two. */
bool jit_owner_parse(const char *status, uid_t *ret_user, pid_t *ret_pid);

/* Returns 0 or a negative errno. `tid` is of a live thread. */
int jit_owner_open(int proc_fd, pid_t tid, struct jit_owner *ret_owner);
void jit_owner_close(struct jit_owner *owner);

/* Opens its perf map. Returns a descriptor; -ENOENT where there is none; -EACCES where there is one
 * that does not count; or another negative errno. */
int jit_owner_open_map(const struct jit_owner *owner);

/* Whether an open file is one that counts. */
bool jit_owner_believes(const struct jit_owner *owner, int fd);

/* Whether a file of this path is the process's jitdump by its name. */
bool jit_owner_names_dump(const struct jit_owner *owner, const char *path);

#endif
