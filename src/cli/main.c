/* fgprof-c: samples the stacks of all threads of running processes, on and off the CPU. */
#include "commands.h"
#include "fgprof.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"attach", command_attach, "sample running processes"},
    {"run", command_run, "start a command and sample it"},
    {"top", command_top, "show live where the time goes"},
    {"dump", command_dump, "show every thread's stack, once, and what it waits for"},
    {"convert", command_convert, "write a kept recording in another format"},
    {"diff", command_diff, "show how two kept recordings differ"},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void usage(FILE *to)
{
    fprintf(to, "usage: fgprof-c COMMAND [options]\n"
                "\n"
                "Shows where the wall-clock time of a process goes, running and waiting.\n"
                "\n"
                "  fgprof-c attach -p PID -d 30s | flamegraph.pl > wall.svg\n"
                "  fgprof-c run -o wall.pb.gz -- ./cmd\n"
                "\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n`fgprof-c COMMAND --help` lists the options; `fgprof-c --version` tells the\n"
                "version; see also fgprof-c(1).\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    /* A reader that goes away and a file that may not grow are errors of write(2), which are said.
     */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return EXIT_WRITTEN;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("fgprof-c %s\n", fgprof_version());
        return EXIT_WRITTEN;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "fgprof-c: no command '%s': see fgprof-c --help\n", argv[1]);
    return EXIT_USAGE;
}
