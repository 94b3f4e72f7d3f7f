#include "cli/help.h"
#include "cli/options/formats.h"
#include "cli/options/table.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 80
#define HELP_COLUMN 24 /* where the text of an option begins, unless its name is too long */

/* Around the options, which are in options/table.c. */
static const struct {
    const char *usage, *examples, *about, *status;
} texts[COMMAND_COUNT] = {
    [COMMAND_ATTACH] =
        {"attach -p PID[,PID...] [options]",
         "  fgprof-c attach -p \"$(pgrep -o redis)\" -d 30s -o wall.html   # a flame graph\n"
         "  fgprof-c attach -p 1234 -d 30s --off-cpu -o waits.html       # why it waits\n"
         "  fgprof-c attach -p 1234 -d 30s -t | flamegraph.pl >wall.svg  # by thread\n"
         "  fgprof-c attach --pgrep '^nginx' -d 1h -o kept.fgprof        # to be kept\n",
         "Samples all threads of running processes, whether they run or wait, for TIME,\n"
         "or until they have exited or Ctrl-C; then writes the profile.\n",
         "Exit status: 0 a profile was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_RUN] =
        {"run [options] -- CMD [ARG...]",
         "  fgprof-c run -o wall.html -- ./cmd arg           # a flame graph\n"
         "  fgprof-c run -o wall.speedscope.json -- ./cmd    # what it did when\n"
         "  fgprof-c run --children -o make.html -- make     # all that it starts, too\n",
         "Starts CMD and samples all its threads from its exec to its end, or for TIME,\n"
         "and waits for its end. CMD has this terminal's stdin, stdout and stderr; only\n"
         "where the profile goes to stdout does CMD's stdout go to stderr.\n",
         "Exit status: CMD's, 128+N where signal N ended it; 125 the profiler failed or\n"
         "its command line was wrong, 126 CMD can't be executed, 127 it was not found.\n"},
    [COMMAND_TOP] =
        {"top -p PID[,PID...] [options]",
         "  fgprof-c top -p 1234                          # a running process\n"
         "  fgprof-c top --pgrep '^postgres$' --children  # all processes of that name\n"
         "  fgprof-c top -p 1234 --thread '^io-'          # some of its threads\n",
         "Shows live in which functions threads spend their time, running and waiting: in\n"
         "the last second and since the start. 100 % is one thread, all the time: four\n"
         "threads that wait are 400 %.\n"
         "\n"
         "Keys: s t n sort by self, total, name (again: last second or since start);\n"
         "T threads, Enter the marked one's functions, Esc all; / filter; x leaves out\n"
         "idle threads; i on a CPU only; arrows, PgUp, PgDn, Home, End; space holds the\n"
         "view; r counts from now; w writes the profile to a file; h help; q quits.\n",
         "Exit status: 0 it was shown, 1 it could not be, 2 bad command line.\n"},
    [COMMAND_DUMP] =
        {"dump -p PID[,PID...] [options]",
         "  fgprof-c dump -p 1234                 # where is each thread, and why?\n"
         "  fgprof-c dump -p 1234 --group | less  # the same of a thousand threads\n"
         "  fgprof-c dump -p 1234 --json          # for a program\n",
         "Shows the stack of every thread once, with what the thread does: the call that\n"
         "it waits in, and for what: a mutex and its owner, a file or socket, a time.\n"
         "Threads that wait for each other's mutexes are shown first, as a deadlock.\n"
         "Threads that sleep are not stopped.\n",
         "Exit status: 0 a dump was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_CONVERT] =
        {"convert FILE.fgprof [options]",
         "  fgprof-c convert kept.fgprof -o wall.html             # a flame graph\n"
         "  fgprof-c convert kept.fgprof --off-cpu -o wait.pb.gz  # for go tool pprof\n"
         "  fgprof-c convert kept.fgprof -t | flamegraph.pl >wall.svg\n",
         "Writes a recording that was kept, as by attach -o kept.fgprof, in other formats:\n"
         "what attach or run would have written with these options.\n",
         "Exit status: 0 it was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_DIFF] =
        {"diff BEFORE.fgprof AFTER.fgprof [options]",
         "  fgprof-c diff -n before.fgprof after.fgprof -o diff.html  # a page\n"
         "  fgprof-c diff -n before.fgprof after.fgprof | flamegraph.pl >diff.svg\n"
         "  fgprof-c diff --on-cpu before.fgprof after.fgprof -o diff.folded\n",
         "Writes how two kept recordings differ: as a page that shows red what grew and\n"
         "blue what shrank, or as stacks, each with its samples in BEFORE and in AFTER,\n"
         "for flamegraph.pl.\n",
         "Exit status: 0 it was written, 1 it was not, 2 bad command line.\n"},
};

static const char *const headings[OPTION_GROUP_COUNT] = {
    [OPTIONS_WHICH] = "Which processes and threads:",
    [OPTIONS_WHEN] = "How long and how often:",
    [OPTIONS_SHOWN] = "What is shown:",
    [OPTIONS_OUTPUT] = "Output:",
};

/* As "-d, --duration TIME". Returns how many characters were printed. */
static int print_name(const struct cli_option *option)
{
    int count = option->letter ? printf("-%c, --%s", option->letter, option->name)
                               : printf("    --%s", option->name);
    if (option->value)
        count += printf("%s%s", option->value[0] == '[' ? "" : " ", option->value);
    return count;
}

/* Prints the option and those whose help is with it. */
static void print_option(const struct cli_option *option)
{
    const struct cli_option *end = option_table + option_count, *next = option + 1;
    int column = printf("  ");
    column += print_name(option);
    for (; next < end && !next->help; next++)
        column += printf(", --%s", next->name);
    int pad = column + 2 <= HELP_COLUMN ? HELP_COLUMN - column : 2;
    for (const char *line = option->help; line; pad = HELP_COLUMN) {
        const char *rest = strchr(line, '\n');
        printf("%*s%.*s\n", pad, "", rest ? (int)(rest - line) : (int)strlen(line), line);
        line = rest ? rest + 1 : NULL;
    }
    if (strcmp(option->name, "format") == 0 && !option_is_of(option, COMMAND_DIFF))
        formats_print(HELP_COLUMN, WIDTH);
}

void help(enum cli_command command)
{
    printf("usage: fgprof-c %s\n\n%s\n%s\n", texts[command].usage, texts[command].examples,
           texts[command].about);
    enum option_group group = OPTION_GROUP_COUNT;
    for (size_t i = 0; i < option_count; i++) {
        const struct cli_option *option = &option_table[i];
        if (!option->help || !option_is_of(option, command))
            continue;
        if (option->group != group)
            puts(headings[option->group]);
        group = option->group;
        print_option(option);
    }
    printf("  -h, --help            this text\n%s", texts[command].status);
}
