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

/* Copies the environment, with room for one more entry and the end, and puts the agent first in
 * LD_PRELOAD. `variable` has room for it. */
static void add_agent(char *const environment[], size_t count, char *variable, char **ret_copy)
{
    size_t at;
    const char *others = others_in(environment, count, &at);
    memcpy(ret_copy, environment, count * sizeof *ret_copy);
    ret_copy[count] = ret_copy[count + 1] = NULL;
    ret_copy[at] = variable;
    put(&variable, VARIABLE);
    put(&variable, own_path);
    if (*others)
        put(&variable, ":");
    put(&variable, others);
}

#define VARIABLE_BYTES (sizeof VARIABLE + PATH_MAX + OTHERS_MAX + 1)

EXPORT int execve(const char *path, char *const argv[], char *const environment[])
{
    size_t count = count_of(environment);
    if (!goes_along(environment, count))
        return (int)syscall(SYS_execve, path, argv, environment);
    char variable[VARIABLE_BYTES], *copy[count + 2];
    add_agent(environment, count, variable, copy);
    return (int)syscall(SYS_execve, path, argv, copy);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const environment[])
{
    int (*next)(const char *, char *const[], char *const[]) = NULL;
    void *found = dlsym(RTLD_NEXT, "execvpe");
    size_t count = count_of(environment);
    memcpy(&next, &found, sizeof next);
    if (!next) {
        errno = ENOSYS;
        return -1;
    }
    if (!goes_along(environment, count))
        return next(file, argv, environment);
    char variable[VARIABLE_BYTES], *copy[count + 2];
    add_agent(environment, count, variable, copy);
    return next(file, argv, copy);
}

EXPORT int fexecve(int fd, char *const argv[], char *const environment[])
{
    size_t count = count_of(environment);
    if (!goes_along(environment, count))
        return (int)syscall(SYS_execveat, fd, "", argv, environment, AT_EMPTY_PATH);
    char variable[VARIABLE_BYTES], *copy[count + 2];
    add_agent(environment, count, variable, copy);
    return (int)syscall(SYS_execveat, fd, "", argv, copy, AT_EMPTY_PATH);
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
