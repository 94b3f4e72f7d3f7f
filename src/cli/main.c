/* fgprof-c: samples the stacks of all threads of running processes, on and off the CPU. */
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options/parse.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(const struct cli_options *options);
    const char *summary;
} commands[COMMAND_COUNT] = {
    [COMMAND_ATTACH] = {"attach", command_attach, "sample running processes"},
    [COMMAND_RUN] = {"run", command_run, "start a command and sample it"},
    [COMMAND_TOP] = {"top", command_top, "show live where the time goes"},
    [COMMAND_SERVE] = {"serve", command_serve, "serve profiles over HTTP, as Go programs do"},
    [COMMAND_RECORD] = {"record", command_record, "keep the last minute, write it when it matters"},
    [COMMAND_DUMP] = {"dump", command_dump, "show each thread's stack once, and what it waits for"},
    [COMMAND_CONVERT] = {"convert", command_convert, "write a recording in another format"},
    [COMMAND_DIFF] = {"diff", command_diff, "show how two recordings differ"},
    [COMMAND_REPORT] = {"report", command_convert, "sum up a recording on one page of text"},
};

static void usage(FILE *to)
{
    fprintf(to, "usage: fgprof-c COMMAND [options]\n"
                "\n"
                "  fgprof-c attach -p \"$(pgrep -o redis)\" -d 30s -o wall.html  # a flame graph\n"
                "  fgprof-c run -o wall.html -- ./cmd arg         # a command from its start\n"
                "  fgprof-c top -p 1234                           # live: where time goes\n"
                "  fgprof-c dump -p 1234                          # what each thread waits for\n"
                "\n"
                "Shows where processes spend their wall-clock time, running and waiting.\n"
                "\n"
                "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n"
                "Run fgprof-c COMMAND --help for the options of a command, and fgprof-c --version\n"
                "for the version. See also fgprof-c(1).\n");
}

/* `argv` begins with the command's name. */
static int run(enum cli_command command, int argc, char **argv)
{
    struct cli_options options;
    switch (options_parse(argc, argv, command, &options)) {
    case PARSE_HELP:
        help(command);
        return EXIT_WRITTEN;
    case PARSE_WRONG:
        return command == COMMAND_RUN ? EXIT_SAMPLER_FAILED : EXIT_USAGE;
    default:
        break;
    }
    int status = commands[command].run(&options);
    options_free(&options);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    /* If a reader goes away or a file may not grow, write(2) fails, and we report that. */
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
    /* Not for people: a program that profiles itself runs it. */
    if (strcmp(argv[1], "helper") == 0)
        return fgprof_helper(argc - 1, argv + 1, serve_once) ? EXIT_NOT_WRITTEN : EXIT_WRITTEN;
    for (enum cli_command i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return run(i, argc - 1, argv + 1);
    }
    fprintf(stderr, "fgprof-c: unknown command '%s': see fgprof-c --help\n", argv[1]);
    return EXIT_USAGE;
}
