/* fgprof-c: samples the stacks of all threads of running processes, on and off the CPU. */
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/options/formats.h"
#include "cli/options/table.h"
#include "cli/options/options.h"
#include "cli/privileges.h"
#include "cli/select_pids.h"
#include "cli/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WIDTH 80
/* Where an option's text begins, unless its name is too long: */
#define HELP_COLUMN 24     /* of the common options, */
#define HELP_ALL_COLUMN 27 /* and of all */
#define FORMATS_COLUMN 2   /* where the formats begin: they take two lines */
#define OPTIONS_FEW 15     /* --help shows all of them */

/* The commands, and the text around their options, which are in options/table.c. */
static const struct {
    const char *name;
    int (*run)(const struct cli_options *options);
    const char *summary, *words, *examples, *about, *status;
} commands[COMMAND_COUNT] = {
    [COMMAND_ATTACH] =
        {"attach", command_attach, "sample running processes", "NAME|PID... [options]",
         "  fgprof-c attach redis-server                              # a page, at Ctrl-C\n"
         "  fgprof-c attach 1234 -d 30s --off-cpu -o waits.html       # why it waits\n"
         "  fgprof-c attach 1234 -d 30s -t | flamegraph.pl >wall.svg  # by thread\n",
         "Samples all threads until TIME has passed, the processes have exited, or Ctrl-C.\n"
         "Writes a page in this directory, or if stdout is a pipe or file, stacks to it.\n",
         "Exit status: 0 the profile was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_RUN] =
        {"run", command_run, "start a command and sample it", "[options] -- CMD [ARG...]",
         "  fgprof-c run -o wall.html -- ./cmd arg           # a flame graph\n"
         "  fgprof-c run -o wall.speedscope.json -- ./cmd    # what it did when\n"
         "  fgprof-c run --children -o make.html -- make     # and all it starts\n",
         "Starts CMD and samples all its threads until it exits, or for TIME. Then it\n"
         "writes the profile, as attach does, and waits for CMD to exit. CMD has this\n"
         "terminal's stdin, stdout and stderr. If the profile goes to stdout, CMD's stdout\n"
         "goes to stderr.\n",
         "Exit status: CMD's, or 128+N if signal N ended it; 125 the profiler failed or\n"
         "its command line is wrong, 126 CMD can't be executed, 127 CMD was not found.\n"},
    [COMMAND_TOP] =
        {"top", command_top, "show live where the time goes", "NAME|PID... [options]",
         "  fgprof-c top redis-server                     # a running process\n"
         "  fgprof-c top --pgrep '^postgres$' --children  # all processes with that name\n"
         "  fgprof-c top 1234 --thread '^io-'             # some of its threads\n",
         "Shows live which functions threads spend their time in, running and waiting, in\n"
         "the last second and since the start. 100 % is one thread all the time: four\n"
         "waiting threads make 400 %.\n"
         "\n"
         "Keys: s t n sort by self, total, name (again: last second or since the start);\n"
         "T lists threads, Enter shows the marked thread's functions, Esc those of all;\n"
         "W lists what threads wait for, how many do, and which thread has it; / filters;\n"
         "x shows idle threads; i shows time on a CPU only; arrows, PgUp, PgDn, Home and\n"
         "End scroll; space holds the view; r counts from now; w writes the profile to a\n"
         "file; h shows help; q quits.\n",
         "Exit status: 0 the view was shown, 1 it could not be, 2 bad command line.\n"},
    [COMMAND_SERVE] =
        {"serve", command_serve, "serve profiles over HTTP, as Go programs do",
         "NAME|PID... [options]",
         "  fgprof-c serve 1234                                # then open 127.0.0.1:6060\n"
         "  fgprof-c serve redis-server --wait -F 19           # also after a restart\n"
         "  go tool pprof http://127.0.0.1:6060/debug/fgprof?seconds=10\n",
         "Samples all threads and serves profiles over HTTP, at the paths of Go's\n"
         "programs: /debug/fgprof?seconds=N, or last=60s for the time before;\n"
         "/debug/pprof/; /metrics; / for a browser. Ends with the processes, or Ctrl-C.\n",
         "Exit status: 0 it served until the end, 1 it could not, 2 bad command line.\n"},
    [COMMAND_RECORD] =
        {"record", command_serve, "keep the last minute, write it when it matters",
         "NAME|PID... -o DIR [options]",
         "  fgprof-c record 1234 -o /var/tmp/stalls --trigger 'any blocked 2s'\n"
         "  fgprof-c record redis-server --wait --keep 5m -o DIR --trigger exit\n"
         "  kill -USR1 RECORDER_PID                       # write what is kept now\n",
         "Samples all threads and keeps the last minute. Writes it to a file in DIR on\n"
         "SIGUSR1, and when a trigger fires: 'thread NAME in FUNCTION for TIME', 'any\n"
         "blocked TIME', 'runnable N%', 'cpu above N%', 'cpu below N%', 'deadlock', 'exit'\n"
         "or 'command CMD', joined by 'and'. It ends when the processes have exited, or\n"
         "with Ctrl-C.\n",
         "Exit status: 0 it recorded until the end, 1 it could not, 2 bad command line.\n"},
    [COMMAND_DUMP] =
        {"dump", command_dump, "show each thread's stack once, and what it waits for",
         "NAME|PID... [options]",
         "  fgprof-c dump 1234                    # where is each thread, and why?\n"
         "  fgprof-c dump 1234 --group | less     # the same for a thousand threads\n"
         "  fgprof-c dump 1234 --json             # for other programs\n",
         "Shows each thread's stack once, the system call it waits in, and what it waits\n"
         "for: a lock and its owner, a file, a socket or a time. Threads that wait for\n"
         "each other in a circle are shown first, as a deadlock. Sleeping threads are not\n"
         "stopped.\n",
         "Exit status: 0 the dump was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_CONVERT] =
        {"convert", command_convert, "write a recording in another format", "FILE.fgprof [options]",
         "  fgprof-c convert kept.fgprof -o wall.html             # a flame graph\n"
         "  fgprof-c convert kept.fgprof --off-cpu -o wait.pb.gz  # for go tool pprof\n"
         "  fgprof-c convert kept.fgprof -t | flamegraph.pl >wall.svg\n",
         "Writes a recording, such as attach -o kept.fgprof makes, in another format, as\n"
         "attach or run would have written it with these options.\n",
         "Exit status: 0 the file was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_DIFF] =
        {"diff", command_diff, "show how two recordings differ",
         "BEFORE.fgprof AFTER.fgprof [options]",
         "  fgprof-c diff before.fgprof after.fgprof -o diff.html     # a page\n"
         "  fgprof-c diff before.fgprof after.fgprof -f report        # in words\n"
         "  fgprof-c diff before.fgprof after.fgprof | flamegraph.pl >diff.svg\n"
         "  fgprof-c diff --on-cpu before.fgprof after.fgprof -o diff.folded\n",
         "Writes how two recordings differ: as a page that shows what grew in red and what\n"
         "shrank in blue, or as stacks, each with its samples in BEFORE and in AFTER, for\n"
         "flamegraph.pl.\n",
         "Exit status: 0 the file was written, 1 it was not, 2 bad command line.\n"},
    [COMMAND_REPORT] =
        {"report", command_convert, "sum up a recording on one page of text",
         "FILE.fgprof [options]",
         "  fgprof-c report kept.fgprof                      # what to look at first\n"
         "  fgprof-c report --json kept.fgprof -o kept.json  # for other programs\n",
         "Sums up a recording, such as attach -o kept.fgprof makes, in at most 100 lines:\n"
         "how good it is, what is worth a look, where time went on a CPU and in waits,\n"
         "what is idle, and which command shows more. attach -f report writes it at once.\n",
         "Exit status: 0 the report was written, 1 it was not, 2 bad command line.\n"},
};

static const char *const headings[OPTION_GROUP_COUNT] = {
    [OPTIONS_WHICH] = "Which processes and threads:",
    [OPTIONS_WHEN] = "How it samples:",
    [OPTIONS_SHOWN] = "What is shown:",
    [OPTIONS_OUTPUT] = "Output:",
};

/* Prints a name such as "-d, --duration TIME". Returns how many characters were printed. */
static int print_name(const struct cli_option *option)
{
    int count = option->letter ? printf("-%c, --%s", option->letter, option->name)
                               : printf("    --%s", option->name);
    if (option->value)
        count += printf("%s%s", option->value[0] == '[' ? "" : " ", option->value);
    return count;
}

static void print_option(const struct cli_option *option, int help_column)
{
    int column = printf("  ");
    column += print_name(option);
    int pad = column + 2 <= help_column ? help_column - column : 2;
    for (const char *line = option->help; line; pad = help_column) {
        const char *rest = strchr(line, '\n');
        printf("%*s%.*s\n", pad, "", rest ? (int)(rest - line) : (int)strlen(line), line);
        line = rest ? rest + 1 : NULL;
    }
    if (strcmp(option->name, "format") == 0 && !option_is_of(option, COMMAND_DIFF))
        formats_print(FORMATS_COLUMN, WIDTH);
}

/* Prints the options of the command, or the common ones, by groups. */
static void print_options(enum cli_command command, bool is_all, int help_column)
{
    enum option_group group = OPTION_GROUP_COUNT;
    for (size_t i = 0; i < option_count; i++) {
        const struct cli_option *option = &option_table[i];
        if (!option_is_of(option, command) || !(is_all || option->is_common))
            continue;
        if (option->group != group)
            puts(headings[option->group]);
        group = option->group;
        print_option(option, help_column);
    }
}

static size_t count_options(enum cli_command command)
{
    size_t count = 0;
    for (size_t i = 0; i < option_count; i++)
        count += option_is_of(&option_table[i], command);
    return count;
}

static void help(enum cli_command command)
{
    bool is_all = count_options(command) <= OPTIONS_FEW;
    printf("usage: fgprof-c %s %s\n\n%s\n%s\n", commands[command].name, commands[command].words,
           commands[command].examples, commands[command].about);
    print_options(command, is_all, HELP_COLUMN);
    puts("  -h, --help            show this help");
    if (!is_all)
        puts("      --help-all        show all options");
    fputs(commands[command].status, stdout);
}

static void help_all(enum cli_command command)
{
    printf("usage: fgprof-c %s %s\n\n", commands[command].name, commands[command].words);
    print_options(command, true, HELP_ALL_COLUMN);
}

static void usage(FILE *to)
{
    fprintf(to, "usage: fgprof-c COMMAND [options]\n"
                "\n"
                "  fgprof-c attach redis-server   # a page of a running process, at Ctrl-C\n"
                "  fgprof-c run -- ./cmd arg      # a page of a command from its start\n"
                "  fgprof-c top 1234              # live: where time goes\n"
                "  fgprof-c dump 1234             # what each thread waits for\n"
                "\n"
                "Shows where processes spend their wall-clock time, running and waiting.\n"
                "\n"
                "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n"
                "fgprof-c NAME and fgprof-c PID are short for attach. fgprof-c help COMMAND has\n"
                "the options of a command, fgprof-c version the version. See also fgprof-c(1).\n");
}

/* `argv` begins with the command's name. */
static int run(enum cli_command command, int argc, char **argv)
{
    struct cli_options options;
    switch (options_parse(argc, argv, command, &options)) {
    case PARSE_HELP:
        help(command);
        return EXIT_WRITTEN;
    case PARSE_HELP_ALL:
        help_all(command);
        return EXIT_WRITTEN;
    case PARSE_WRONG:
        return command == COMMAND_RUN ? EXIT_SAMPLER_FAILED : EXIT_USAGE;
    case PARSE_NO_MEMORY:
        return command == COMMAND_RUN ? EXIT_SAMPLER_FAILED : EXIT_NOT_WRITTEN;
    default:
        break;
    }
    /* The command that `run` starts has all that its user may; recordings are read without any. */
    bool keeps_all = command == COMMAND_RUN || options.inputs;
    int status = EXIT_NOT_WRITTEN;
    if ((keeps_all || privileges_limit(&options)) && find_targets(&options))
        status = commands[command].run(&options);
    options_free(&options);
    return status;
}

/* The command with this name; COMMAND_COUNT: there is none. */
static enum cli_command find_command(const char *name)
{
    enum cli_command command = 0;
    while (command < COMMAND_COUNT && strcmp(name, commands[command].name) != 0)
        command++;
    return command;
}

static int complain_of_command(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *near = suggest(word, names, COMMAND_COUNT);
    if (near)
        say("no command or process is called '%s': did you mean %s?", word, near);
    else
        say("no command or process is called '%s': see fgprof-c --help", word);
    return EXIT_USAGE;
}

/* Becomes man(1) if the command's manual page is installed. Returns if it is not. */
static void show_manual(const char *command)
{
    char page[32], question[64];
    snprintf(page, sizeof page, "fgprof-c-%s", command);
    snprintf(question, sizeof question, "man -w 1 %s 2>/dev/null", page);
    FILE *answer = popen(question, "re");
    bool is_installed = answer && fgetc(answer) == '/';
    if (answer)
        pclose(answer);
    if (!is_installed)
        return;
    signal(SIGPIPE, SIG_DFL);
    execlp("man", "man", "1", page, (char *)NULL);
}

/* `help`, or `help COMMAND`. */
static int show_help(int argc, char **argv)
{
    if (argc < 2) {
        usage(stdout);
        return EXIT_WRITTEN;
    }
    enum cli_command command = find_command(argv[1]);
    if (command == COMMAND_COUNT)
        return complain_of_command(argv[1]);
    if (isatty(STDOUT_FILENO))
        show_manual(commands[command].name);
    help(command);
    return EXIT_WRITTEN;
}

/* Opens the standard descriptors that are closed. Otherwise a file of ours would get one of their
 * numbers, and messages would go into it. Programs that we start still do not have them. */
static void open_standard_files(void)
{
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY}; /* writing output fails, as before */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", modes[fd] | O_CLOEXEC); /* gets the first number that is free */
    }
}

int main(int argc, char **argv)
{
    open_standard_files();
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    /* If a reader goes away or a file may not grow, write(2) fails, and we report that. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* or what we start would leave no exit status */
    const char *word = argv[1];
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0)
        return show_help(argc - 1, argv + 1);
    if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("fgprof-c %s\n", fgprof_version());
        return EXIT_WRITTEN;
    }
    /* Not for people: a program that profiles itself runs it. */
    if (strcmp(word, "helper") == 0)
        return fgprof_helper(argc - 1, argv + 1, serve_once) ? EXIT_NOT_WRITTEN : EXIT_WRITTEN;
    enum cli_command command = find_command(word);
    if (command != COMMAND_COUNT)
        return run(command, argc - 1, argv + 1);
    if (*word != '-' && !is_target(word))
        return complain_of_command(word);
    argv[0] = (char *)commands[COMMAND_ATTACH].name;
    return run(COMMAND_ATTACH, argc, argv);
}
