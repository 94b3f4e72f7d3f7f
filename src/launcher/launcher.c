/* The release's bin/fgprof-c: starts the program with the system's glibc or, if that is too old or
 * missing, with the glibc in the release. All its other libraries are installed next to the
 * program. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_STARTED 127

struct release {
    char launcher[PATH_MAX]; /* this file */
    char program[2 * PATH_MAX];
    char glibc[2 * PATH_MAX];
    char loader[2 * PATH_MAX];
};

static bool find_release(struct release *release)
{
    char root[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", release->launcher, sizeof release->launcher - 1);
    if (length < 0)
        return false;
    release->launcher[length] = '\0';
    memcpy(root, release->launcher, (size_t)length + 1);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(root, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    snprintf(release->program, sizeof release->program, "%s/lib/fgprof-c/fgprof-c", root);
    snprintf(release->glibc, sizeof release->glibc, "%s/lib/fgprof-c/glibc", root);
    /* It has the program's name, by which ps(1) knows a process that it starts. */
    snprintf(release->loader, sizeof release->loader, "%s/lib/fgprof-c/glibc/fgprof-c", root);
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
static void execute_by_loader(const struct release *release, char **words, int count)
{
    const char *first[] = {release->loader,  "--argv0",      release->launcher,
                           "--library-path", release->glibc, release->program};
    size_t first_count = sizeof first / sizeof *first;
    char **all = calloc(first_count + (size_t)count + 1, sizeof *all);
    if (!all)
        return;
    memcpy(all, first, sizeof first);
    memcpy(all + first_count, words + 1, (size_t)count * sizeof *all);
    execv(release->loader, all);
    free(all);
}

int main(int argc, char **argv)
{
    static struct release release;
    if (!find_release(&release)) {
        fputs("fgprof-c: /proc is needed, and is not mounted\n", stderr);
        return EXIT_NOT_STARTED;
    }
    if (runs(release.program) && argc > 0) {
        argv[0] = release.launcher;
        execv(release.program, argv);
    }
    execute_by_loader(&release, argv, argc);
    fprintf(stderr, "fgprof-c: %s can't be started: %s\n", release.program, strerror(errno));
    return EXIT_NOT_STARTED;
}
