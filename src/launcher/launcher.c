/* What a release has as bin/fgprof-c: starts the program with the system's glibc, or where that is
 * too old or missing, with the one that the release has. The program itself has all its other
 * libraries beside it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "lib/fgprof-c/fgprof-c"
#define GLIBC "lib/fgprof-c/glibc"
/* The loader has the program's name, by which ps(1) knows a process that it starts. */
#define LOADER GLIBC "/fgprof-c"
#define EXIT_NOT_STARTED 127

struct release {
    char launcher[PATH_MAX];
    char root[PATH_MAX];
};

static bool find_release(struct release *release)
{
    ssize_t length = readlink("/proc/self/exe", release->launcher, sizeof release->launcher - 1);
    if (length < 0)
        return false;
    release->launcher[length] = '\0';
    memcpy(release->root, release->launcher, (size_t)length + 1);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(release->root, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

/* Whether the system's loader and glibc can start it: those that can't say so and exit with 1. */
static bool runs(const char *program)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execl(program, program, "--version", NULL);
        _exit(EXIT_NOT_STARTED);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* By the release's own loader. It is called as this file, so that it finds what lies around it. */
static void execute_by_loader(const struct release *release, const char *glibc, const char *loader,
                              const char *program, char **words, int count)
{
    char **all = calloc((size_t)count + 7, sizeof *all);
    if (!all)
        return;
    const char *first[] = {loader, "--argv0", release->launcher, "--library-path", glibc, program};
    memcpy(all, first, sizeof first);
    memcpy(all + sizeof first / sizeof *first, words + 1, (size_t)count * sizeof *all);
    execv(loader, all);
    free(all);
}

int main(int argc, char **argv)
{
    static struct release release;
    static char program[2 * PATH_MAX], glibc[2 * PATH_MAX], loader[2 * PATH_MAX];
    if (!find_release(&release)) {
        fputs("fgprof-c: /proc is needed, and is not mounted\n", stderr);
        return EXIT_NOT_STARTED;
    }
    snprintf(program, sizeof program, "%s/%s", release.root, PROGRAM);
    snprintf(glibc, sizeof glibc, "%s/%s", release.root, GLIBC);
    snprintf(loader, sizeof loader, "%s/%s", release.root, LOADER);
    if (runs(program) && argc > 0) {
        argv[0] = release.launcher;
        execv(program, argv);
    }
    execute_by_loader(&release, glibc, loader, program, argv, argc);
    fprintf(stderr, "fgprof-c: %s can't be started: %s\n", program, strerror(errno));
    return EXIT_NOT_STARTED;
}
