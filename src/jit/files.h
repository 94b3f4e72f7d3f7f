/* The files in which a process describes the code that it generates: /tmp/perf-PID.map and
 * jit-PID.dump, as perf reads them (Documentation/jit-interface.txt and
 * Documentation/jitdump-specification.txt of the kernel's tools/perf).
 *
 * Anybody can write to /tmp. So a file counts only if it is a regular file and not a symbolic link,
 * belongs to the process's effective user or to root, and was written after the process began. Then
 * neither another user nor an earlier process with the same id can name the process's code. */
#ifndef FGPROF_JIT_FILES_H
#define FGPROF_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What must be known about a process to find its files and to believe them. */
struct jit_owner {
    int root_fd;        /* its root directory, kept because a JVM writes its map when it exits; -1:
                           none */
    pid_t pid;          /* as the process sees it: of the innermost namespace */
    uid_t user;         /* effective user */
    int64_t began_s;    /* its start, in seconds since 1970 */
    bool has_slow_maps; /* /tmp may never answer: maps there do not count */
};

/* Parses the text of /proc/PID/status. Returns false if it lacks either. */
bool jit_owner_parse(const char *status, uid_t *ret_user, pid_t *ret_pid);

/* `tid` is the id of a live thread. Returns 0 or a negative errno. */
int jit_owner_open(int proc_fd, pid_t tid, struct jit_owner *ret_owner);
void jit_owner_close(struct jit_owner *owner);

/* Opens the process's perf map. Returns a descriptor; -ENOENT if there is none; -EACCES if there is
 * one that does not count; or another negative errno. */
int jit_owner_open_map(const struct jit_owner *owner);

/* Whether an open file counts. */
bool jit_owner_believes(const struct jit_owner *owner, int fd);

/* Whether a file with this path has the name of the process's jitdump. */
bool jit_owner_names_dump(const struct jit_owner *owner, const char *path);

#endif
