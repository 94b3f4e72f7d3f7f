#include "agent/hook.h"
#include "base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "LD_PRELOAD="
/* A program executed with more strings than this runs without the agent: the arrays are on the
 * stack here, because a child of vfork must not allocate. */
#define STRINGS_MAX 8192u
#define OTHERS_MAX 4096u

static pid_t own_pid; /* not of a child, also of vfork, which has this memory */
static char own_path[PATH_MAX];

void exec_go_along(const char *path)
{
    size_t length = strlen(path);
    if (length >= sizeof own_path)
        return;
    memcpy(own_path, path, length + 1);
    own_pid = getpid();
}

static size_t count_of(char *const strings[])
{
    size_t count = 0;
    while (strings && strings[count])
        count++;
    return count;
}

/* The variable's value among these, or ""; *ret_at: where it is, or the end. */
static const char *others_in(char *const environment[], size_t count, size_t *ret_at)
{
    for (*ret_at = 0; *ret_at < count; ++*ret_at) {
        if (text_begins(environment[*ret_at], VARIABLE))
            return environment[*ret_at] + strlen(VARIABLE);
    }
    return "";
}

/* Whether the program that is executed with this environment gets the agent. */
static bool goes_along(char *const environment[], size_t count)
{
    size_t at;
    const char *others = others_in(environment, count, &at);
    return own_pid && own_pid == getpid() && count && count < STRINGS_MAX &&
           strlen(others) < OTHERS_MAX && !strstr(others, own_path);
}

static void put(char **to, const char *text)
{
    size_t length = strlen(text);
    memcpy(*to, text, length + 1);
    *to += length;
}

/* Executes a program. `what` is its path, its name, or a pointer to its descriptor. */
typedef int execute_fn(const void *what, char *const argv[], char *const environment[]);

/* Puts the agent first in LD_PRELOAD. A function of its own, with arrays no larger than needed: the
 * caller's stack may be a small one. */
static __attribute__((noinline)) int execute_with_agent(execute_fn *function, const void *what,
                                                        char *const argv[],
                                                        char *const environment[], size_t count)
{
    size_t at;
    const char *others = others_in(environment, count, &at);
    /* The environment gets one more entry, or another one in place of its own, and its end. */
    char variable[sizeof VARIABLE + strlen(own_path) + 1 + strlen(others)], *to = variable;
    char *copy[count + 2];
    memcpy(copy, environment, count * sizeof *copy);
    copy[count] = copy[count + 1] = NULL;
    copy[at] = variable;
    put(&to, VARIABLE);
    put(&to, own_path);
    if (*others)
        put(&to, ":");
    put(&to, others);
    return function(what, argv, copy);
}

static int execute(execute_fn *function, const void *what, char *const argv[],
                   char *const environment[])
{
    size_t count = count_of(environment);
    return goes_along(environment, count)
               ? execute_with_agent(function, what, argv, environment, count)
               : function(what, argv, environment);
}

static int by_path(const void *path, char *const argv[], char *const environment[])
{
    return (int)syscall(SYS_execve, path, argv, environment);
}

static int by_name(const void *file, char *const argv[], char *const environment[])
{
    int (*next)(const char *, char *const[], char *const[]) = NULL;
    void *found = dlsym(RTLD_NEXT, "execvpe");
    memcpy(&next, &found, sizeof next);
    if (next)
        return next(file, argv, environment);
    errno = ENOSYS;
    return -1;
}

static int by_descriptor(const void *fd, char *const argv[], char *const environment[])
{
    return (int)syscall(SYS_execveat, *(const int *)fd, "", argv, environment, AT_EMPTY_PATH);
}

EXPORT int execve(const char *path, char *const argv[], char *const environment[])
{
    return execute(by_path, path, argv, environment);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const environment[])
{
    return execute(by_name, file, argv, environment);
}

EXPORT int fexecve(int fd, char *const argv[], char *const environment[])
{
    return execute(by_descriptor, &fd, argv, environment);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* How many arguments there are, of which the first is given. */
static size_t count_arguments(const char *first, va_list arguments)
{
    size_t count = 0;
    for (const char *at = first; at; at = va_arg(arguments, const char *))
        count++;
    return count;
}

/* Leaves what follows the NULL to be read. A va_list itself is a copy on some architectures. */
static void copy_arguments(const char *first, va_list *arguments, char **ret_argv)
{
    const char *at = first;
    for (; at; at = va_arg(*arguments, const char *))
        *ret_argv++ = (char *)(uintptr_t)at;
    *ret_argv = NULL;
}

EXPORT int execl(const char *path, const char *first, ...)
{
    va_list arguments;
    va_start(arguments, first);
    char *argv[count_arguments(first, arguments) + 1];
    va_end(arguments);
    va_start(arguments, first);
    copy_arguments(first, &arguments, argv);
    va_end(arguments);
    return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list arguments;
    va_start(arguments, first);
    char *argv[count_arguments(first, arguments) + 1];
    va_end(arguments);
    va_start(arguments, first);
    copy_arguments(first, &arguments, argv);
    va_end(arguments);
    return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    va_list arguments;
    va_start(arguments, first);
    char *argv[count_arguments(first, arguments) + 1];
    va_end(arguments);
    va_start(arguments, first);
    copy_arguments(first, &arguments, argv);
    char *const *environment = va_arg(arguments, char *const *);
    va_end(arguments);
    return execve(path, argv, environment);
}
