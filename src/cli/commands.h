/* The commands. Each gets its own argc and argv, argv[0] being its name, and returns the exit
 * status. */
#ifndef FGPROF_CLI_COMMANDS_H
#define FGPROF_CLI_COMMANDS_H

enum {
    EXIT_WRITTEN = 0,
    EXIT_NOT_WRITTEN = 1,
    EXIT_USAGE = 2,
    /* of `run`, as env(1) and timeout(1) have them */
    EXIT_SAMPLER_FAILED = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128,
};

int command_attach(int argc, char **argv);
int command_run(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_dump(int argc, char **argv);
int command_top(int argc, char **argv);

#endif
