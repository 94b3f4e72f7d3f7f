/* Failing system calls, at libc's wrappers. */
#include "site.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <errno.h>
#include <unistd.h>

/* Wraps NAME, which fails as FAULT says, and then returns FAILED. */
#define WRAP_AS(TYPE, NAME, FAULT, FAILED, PARAMETERS, ARGUMENTS)                                  \
    TYPE NAME PARAMETERS;                                                                          \
    TYPE NAME PARAMETERS                                                                           \
    {                                                                                              \
        static TYPE(*next) PARAMETERS;                                                             \
        if (fault_is_due(FAULT))                                                                   \
            return FAILED;                                                                         \
        if (!next)                                                                                 \
            *(void **)&next = next_function(#NAME);                                                \
        return next ARGUMENTS;                                                                     \
    }
#define WRAP(TYPE, NAME, FAILED, PARAMETERS, ARGUMENTS)                                            \
    WRAP_AS(TYPE, NAME, #NAME, FAILED, PARAMETERS, ARGUMENTS)

/* Wraps a transfer, whose count may also be halved. */
#define WRAP_TRANSFER(NAME, FAULT, PARAMETERS, ARGUMENTS)                                          \
    ssize_t NAME PARAMETERS;                                                                       \
    ssize_t NAME PARAMETERS                                                                        \
    {                                                                                              \
        static ssize_t(*next) PARAMETERS;                                                          \
        if (fault_is_due(FAULT))                                                                   \
            return -1;                                                                             \
        if (bytes > 1 && fault_is_short(FAULT))                                                    \
            bytes /= 2;                                                                            \
        if (!next)                                                                                 \
            *(void **)&next = next_function(#NAME);                                                \
        return next ARGUMENTS;                                                                     \
    }

/* Wraps a variadic function with one optional argument. */
#define WRAP_VARIADIC(NAME, FAULT, PARAMETERS, LAST, ARGUMENTS)                                    \
    int NAME PARAMETERS;                                                                           \
    int NAME PARAMETERS                                                                            \
    {                                                                                              \
        static int(*next) PARAMETERS;                                                              \
        va_list list;                                                                              \
        if (fault_is_due(FAULT))                                                                   \
            return -1;                                                                             \
        if (!next)                                                                                 \
            *(void **)&next = next_function(#NAME);                                                \
        va_start(list, LAST);                                                                      \
        long more = va_arg(list, long);                                                            \
        va_end(list);                                                                              \
        return next ARGUMENTS;                                                                     \
    }

WRAP_VARIADIC(open, "open", (const char *path, int flags, ...), flags, (path, flags, more))
WRAP_VARIADIC(open64, "open", (const char *path, int flags, ...), flags, (path, flags, more))
WRAP_VARIADIC(openat, "open", (int at, const char *path, int flags, ...), flags,
              (at, path, flags, more))
WRAP_VARIADIC(openat64, "open", (int at, const char *path, int flags, ...), flags,
              (at, path, flags, more))
WRAP_VARIADIC(fcntl, "fcntl", (int fd, int command, ...), command, (fd, command, more))
WRAP_VARIADIC(ioctl, "ioctl", (int fd, unsigned long request, ...), request, (fd, request, more))

WRAP_AS(FILE *, fopen, "fopen", NULL, (const char *path, const char *mode), (path, mode))
WRAP_AS(FILE *, fopen64, "fopen", NULL, (const char *path, const char *mode), (path, mode))
WRAP_AS(FILE *, fdopen, "fopen", NULL, (int fd, const char *mode), (fd, mode))
WRAP_AS(FILE *, open_memstream, "fopen", NULL, (char **text, size_t *bytes), (text, bytes))
WRAP_AS(DIR *, opendir, "opendir", NULL, (const char *path), (path))
WRAP_AS(DIR *, fdopendir, "opendir", NULL, (int fd), (fd))
WRAP(struct dirent *, readdir, NULL, (DIR * directory), (directory))
WRAP_AS(ssize_t, __getdelim, "getdelim", -1, (char **line, size_t *room, int delimiter, FILE *file),
        (line, room, delimiter, file))

WRAP_TRANSFER(read, "read", (int fd, void *to, size_t bytes), (fd, to, bytes))
WRAP_TRANSFER(pread, "pread", (int fd, void *to, size_t bytes, off_t offset),
              (fd, to, bytes, offset))
WRAP_TRANSFER(pread64, "pread", (int fd, void *to, size_t bytes, off64_t offset),
              (fd, to, bytes, offset))
WRAP_TRANSFER(write, "write", (int fd, const void *from, size_t bytes), (fd, from, bytes))
WRAP_TRANSFER(recv, "recv", (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags))
WRAP_TRANSFER(send, "send", (int fd, const void *from, size_t bytes, int flags),
              (fd, from, bytes, flags))
WRAP(ssize_t, sendmsg, -1, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
WRAP(ssize_t, process_vm_readv, -1,
     (pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
      unsigned long remote_count, unsigned long flags),
     (pid, local, local_count, remote, remote_count, flags))
WRAP(ssize_t, readlink, -1, (const char *path, char *to, size_t bytes), (path, to, bytes))
WRAP_AS(ssize_t, readlinkat, "readlink", -1, (int at, const char *path, char *to, size_t bytes),
        (at, path, to, bytes))
WRAP(ssize_t, getrandom, -1, (void *to, size_t bytes, unsigned flags), (to, bytes, flags))

WRAP_AS(void *, mmap, "mmap", MAP_FAILED,
        (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
        (at, bytes, protection, flags, fd, offset))
WRAP_AS(void *, mmap64, "mmap", MAP_FAILED,
        (void *at, size_t bytes, int protection, int flags, int fd, off64_t offset),
        (at, bytes, protection, flags, fd, offset))

WRAP_AS(int, stat, "stat", -1, (const char *path, struct stat *to), (path, to))
WRAP_AS(int, stat64, "stat", -1, (const char *path, struct stat64 *to), (path, to))
WRAP_AS(int, lstat, "stat", -1, (const char *path, struct stat *to), (path, to))
WRAP_AS(int, fstat, "stat", -1, (int fd, struct stat *to), (fd, to))
WRAP_AS(int, fstat64, "stat", -1, (int fd, struct stat64 *to), (fd, to))
WRAP_AS(int, fstatat, "stat", -1, (int at, const char *path, struct stat *to, int flags),
        (at, path, to, flags))
WRAP_AS(int, statx, "stat", -1,
        (int at, const char *path, int flags, unsigned mask, struct statx *to),
        (at, path, flags, mask, to))

WRAP_AS(int, poll, "poll", -1, (struct pollfd * fds, nfds_t count, int timeout),
        (fds, count, timeout))
WRAP_AS(int, ppoll, "poll", -1,
        (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
        (fds, count, timeout, mask))
WRAP_AS(int, epoll_wait, "poll", -1, (int fd, struct epoll_event *events, int max, int timeout),
        (fd, events, max, timeout))
WRAP_AS(int, epoll_create1, "epoll", -1, (int flags), (flags))
WRAP_AS(int, epoll_ctl, "epoll", -1, (int fd, int operation, int other, struct epoll_event *event),
        (fd, operation, other, event))

WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP_AS(int, bind, "socket", -1, (int fd, const struct sockaddr *address, socklen_t bytes),
        (fd, address, bytes))
WRAP_AS(int, listen, "socket", -1, (int fd, int backlog), (fd, backlog))
WRAP_AS(int, accept4, "accept", -1, (int fd, struct sockaddr *address, socklen_t *bytes, int flags),
        (fd, address, bytes, flags))
WRAP_AS(int, setsockopt, "sockopt", -1,
        (int fd, int level, int name, const void *value, socklen_t bytes),
        (fd, level, name, value, bytes))
WRAP_AS(int, getsockopt, "sockopt", -1,
        (int fd, int level, int name, void *value, socklen_t *bytes),
        (fd, level, name, value, bytes))
WRAP_AS(int, getsockname, "sockopt", -1, (int fd, struct sockaddr *address, socklen_t *bytes),
        (fd, address, bytes))
WRAP_AS(int, getpeername, "sockopt", -1, (int fd, struct sockaddr *address, socklen_t *bytes),
        (fd, address, bytes))

WRAP_AS(int, eventfd, "eventfd", -1, (unsigned value, int flags), (value, flags))
WRAP_AS(int, signalfd, "eventfd", -1, (int fd, const sigset_t *signals, int flags),
        (fd, signals, flags))
WRAP_AS(int, memfd_create, "eventfd", -1, (const char *name, unsigned flags), (name, flags))
WRAP_AS(int, pidfd_open, "eventfd", -1, (pid_t pid, unsigned flags), (pid, flags))
WRAP_AS(int, dup, "eventfd", -1, (int fd), (fd))
WRAP_AS(int, pipe2, "eventfd", -1, (int fds[2], int flags), (fds, flags))

WRAP_AS(int, ftruncate, "disk", -1, (int fd, off_t bytes), (fd, bytes))
WRAP_AS(int, fsync, "disk", -1, (int fd), (fd))
WRAP_AS(int, fchmod, "disk", -1, (int fd, mode_t mode), (fd, mode))
WRAP_AS(int, linkat, "disk", -1,
        (int from_at, const char *from, int to_at, const char *to, int flags),
        (from_at, from, to_at, to, flags))
WRAP_AS(int, rename, "disk", -1, (const char *from, const char *to), (from, to))
WRAP_AS(int, renameat, "disk", -1, (int from_at, const char *from, int to_at, const char *to),
        (from_at, from, to_at, to))
WRAP_AS(int, mkostemp, "disk", -1, (char *name, int flags), (name, flags))
WRAP_AS(int, access, "access", -1, (const char *path, int mode), (path, mode))
WRAP_AS(int, faccessat, "access", -1, (int at, const char *path, int mode, int flags),
        (at, path, mode, flags))

WRAP_AS(int, waitid, "wait", -1, (idtype_t type, id_t id, siginfo_t *info, int options),
        (type, id, info, options))
WRAP_AS(pid_t, waitpid, "wait", -1, (pid_t pid, int *status, int options), (pid, status, options))

/* These return the error number. */
WRAP(int, pthread_create, errno,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
     (thread, attributes, run, argument))
WRAP_AS(int, posix_spawn, "spawn", errno,
        (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
         const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]),
        (pid, path, actions, attributes, argv, environment))
WRAP_AS(int, posix_spawnp, "spawn", errno,
        (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
         const posix_spawnattr_t *attributes, char *const argv[], char *const environment[]),
        (pid, path, actions, attributes, argv, environment))

/* glibc declares the request as an enum. */
long ptrace(int request, ...);
long ptrace(int request, ...)
{
    static long (*next)(int, ...);
    va_list list;
    if (fault_is_due("ptrace"))
        return -1;
    if (!next)
        *(void **)&next = next_function("ptrace");
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    return next(request, pid, address, data);
}

/* perf_event_open, bpf, openat2 and others have no wrapper. */
long syscall(long number, ...);
long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long arguments[6];
    va_list list;
    if (!next)
        *(void **)&next = next_function("syscall");
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_write || number == SYS_futex || !fault_is_due("syscall"))
        return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                    arguments[5]);
    return -1;
}
