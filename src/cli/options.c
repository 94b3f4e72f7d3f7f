#include "options.h"
#include "command_line.h"
#include "duration.h"
#include "formats.h"
#include "values.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE_DEFAULT_HZ 99
#define RATE_MAX_HZ 1000
#define DEPTH_DEFAULT 1024
#define DEBUGINFOD_DEFAULT_NS 60000000000u
#define MAX_PAUSE_DEFAULT_PERCENT 2

enum {
    OPTION_LINES = 256,
    OPTION_STATE,
    OPTION_ON_CPU,
    OPTION_OFF_CPU,
    OPTION_MAX_DEPTH,
    OPTION_MAX_PAUSE,
    OPTION_NO_DEMANGLE,
    OPTION_FULL_NAMES,
    OPTION_KERNEL,
    OPTION_DEBUGINFOD,
    OPTION_PGREP,
    OPTION_CHILDREN,
    OPTION_PROCESSES,
    OPTION_THREAD,
    OPTION_TID,
    OPTION_IDLE,
    OPTION_NO_IDLE
};

static const struct option long_options[] = {
    {"pid", required_argument, NULL, 'p'},
    {"duration", required_argument, NULL, 'd'},
    {"rate", required_argument, NULL, 'F'},
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"threads", optional_argument, NULL, 't'},
    {"lines", no_argument, NULL, OPTION_LINES},
    {"state", no_argument, NULL, OPTION_STATE},
    {"on-cpu", no_argument, NULL, OPTION_ON_CPU},
    {"off-cpu", no_argument, NULL, OPTION_OFF_CPU},
    {"max-depth", required_argument, NULL, OPTION_MAX_DEPTH},
    {"max-pause", required_argument, NULL, OPTION_MAX_PAUSE},
    {"no-demangle", no_argument, NULL, OPTION_NO_DEMANGLE},
    {"full-names", no_argument, NULL, OPTION_FULL_NAMES},
    {"kernel", no_argument, NULL, OPTION_KERNEL},
    {"debuginfod", optional_argument, NULL, OPTION_DEBUGINFOD},
    {"pgrep", required_argument, NULL, OPTION_PGREP},
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"processes", no_argument, NULL, OPTION_PROCESSES},
    {"thread", required_argument, NULL, OPTION_THREAD},
    {"tid", required_argument, NULL, OPTION_TID},
    {"idle", no_argument, NULL, OPTION_IDLE},
    {"no-idle", no_argument, NULL, OPTION_NO_IDLE},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool parse_debuginfod(struct cli_options *options, const char *value)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    if (!urls || !*urls) {
        fprintf(stderr, "fgprof-c: --debuginfod knows no server to ask: set DEBUGINFOD_URLS\n");
        return false;
    }
    options->debuginfod_limit_ns = DEBUGINFOD_DEFAULT_NS;
    return !value || duration_parse(value, &options->debuginfod_limit_ns) ||
           complain("time limit", value, "give seconds, or a time as 30s or 2m");
}

static bool set_names(struct cli_options *options, enum fgprof_names names)
{
    if (options->names != FGPROF_NAMES_SHORT && options->names != names) {
        fprintf(stderr, "fgprof-c: --no-demangle and --full-names exclude each other: give one of "
                        "them, or none for short names\n");
        return false;
    }
    options->names = names;
    return true;
}

static bool parse_option(struct cli_options *options, int option, const char *value)
{
    uint64_t number;
    switch (option) {
    case 'p':
        return pids_parse(value, &options->pids, &options->pid_count);
    case 'd':
        return duration_parse(value, &options->duration_ns) ||
               complain("duration", value, "give a number with ms, s, m or h, as 30s");
    case 'F':
        if (!number_parse(value, 1, RATE_MAX_HZ, &number))
            return complain("rate", value, "give ticks a second, 1 to 1000");
        options->rate_hz = (unsigned)number;
        return true;
    case 'f':
        return format_named(value, &options->format);
    case 'o':
        options->output = value;
        return *value || complain("output", value, "give a file name, or - for standard output");
    case 't':
        options->shows_threads = true;
        return threads_parse(value, &options->threads);
    case OPTION_LINES:
        options->shows_lines = true;
        return true;
    case OPTION_STATE:
        options->shows_state = true;
        return true;
    case OPTION_ON_CPU:
        return kept_set(&options->kept, FGPROF_KEPT_ON_CPU);
    case OPTION_OFF_CPU:
        return kept_set(&options->kept, FGPROF_KEPT_OFF_CPU);
    case OPTION_MAX_DEPTH:
        if (!number_parse(value, 1, 1000000, &number))
            return complain("depth", value, "give a number of frames, 1 to 1000000");
        options->max_depth = number;
        return true;
    case OPTION_MAX_PAUSE:
        return percent_parse(value, &options->max_pause_percent) ||
               complain("pause", value, "give a share in percent, more than 0, at most 100");
    case OPTION_NO_DEMANGLE:
        return set_names(options, FGPROF_NAMES_RAW);
    case OPTION_FULL_NAMES:
        return set_names(options, FGPROF_NAMES_FULL);
    case OPTION_KERNEL:
        options->has_kernel_stacks = true;
        return true;
    case OPTION_DEBUGINFOD:
        return parse_debuginfod(options, value);
    case OPTION_PGREP:
        options->pgrep = value;
        return *value || complain("name", value, "give a process's name, or an expression for it");
    case OPTION_CHILDREN:
        options->has_children = true;
        return true;
    case OPTION_PROCESSES:
        options->shows_processes = true;
        return true;
    case OPTION_THREAD:
        options->thread_regex = value;
        return regex_check(value);
    case OPTION_TID:
        return tids_parse(value, &options->tids, &options->tid_count);
    case OPTION_IDLE:
    case OPTION_NO_IDLE:
        options->drops_idle = option == OPTION_NO_IDLE;
        return true;
    case 'q':
        options->is_quiet = true;
        return true;
    default: /* getopt has said what is wrong */
        return false;
    }
}

static bool check(struct cli_options *options, int argc, char **argv, bool format_given)
{
    bool to_stdout = strcmp(options->output, "-") == 0;
    if (options->command == COMMAND_ATTACH) {
        if (optind < argc)
            return complain("argument", argv[optind], "give processes with -p PID");
        if (!options->pid_count && !options->pgrep) {
            fprintf(stderr, "fgprof-c: no process given: attach -p PID\n");
            return false;
        }
    } else {
        if (options->pid_count || options->pgrep) {
            fprintf(stderr, "fgprof-c: run takes a command, not %s\n",
                    options->pid_count ? "-p" : "--pgrep");
            return false;
        }
        if (options->tid_count) {
            fprintf(stderr, "fgprof-c: run takes no --tid: its command has no threads yet; give "
                            "--thread REGEX\n");
            return false;
        }
        if (optind >= argc) {
            fprintf(stderr, "fgprof-c: no command given: run -- CMD [ARG...]\n");
            return false;
        }
        options->command_argv = argv + optind;
    }
    if (!format_given && !to_stdout && !format_of_file(options->output, &options->format))
        return false;
    if (format_is_binary(options->format) && to_stdout && isatty(STDOUT_FILENO)) {
        fprintf(stderr, "fgprof-c: this format is binary and is not written to a terminal: give -o "
                        "FILE\n");
        return false;
    }
    return true;
}

enum parse_result options_parse(int argc, char **argv, enum cli_command command,
                                struct cli_options *ret_options)
{
    struct cli_options options = {
        .command = command,
        .rate_hz = RATE_DEFAULT_HZ,
        .max_depth = DEPTH_DEFAULT,
        .max_pause_percent = MAX_PAUSE_DEFAULT_PERCENT,
        .output = "-",
    };
    bool format_given = false, ok = true;
    int option;
    static char program[] = "fgprof-c";
    options.command_line = command_line_of(argc, argv);
    ok = options.command_line != NULL;
    argv[0] = program; /* what getopt puts before its messages */
    while (ok && (option = getopt_long(argc, argv, "+p:d:F:f:o:tqh", long_options, NULL)) != -1) {
        if (option == 'h') {
            options_free(&options);
            return PARSE_HELP;
        }
        format_given = format_given || option == 'f';
        ok = parse_option(&options, option, optarg);
    }
    if (!ok || !check(&options, argc, argv, format_given)) {
        options_free(&options);
        return PARSE_WRONG;
    }
    *ret_options = options;
    return PARSE_OK;
}

void options_free(struct cli_options *options)
{
    free(options->pids);
    free(options->tids);
    free(options->command_line);
}

fgprof_options *options_for_library(const struct cli_options *options)
{
    fgprof_options *library;
    if (fgprof_options_new(&library))
        return NULL;
    fgprof_options_set_rate(library, options->rate_hz);
    fgprof_options_set_duration_ns(library, options->duration_ns);
    fgprof_options_set_max_depth(library, options->max_depth);
    fgprof_options_set_max_pause(library, options->max_pause_percent);
    /* What is kept, and the page, can tell threads of equal name apart, and join them again. */
    bool keeps_all = options->format == FGPROF_RAW || options->format == FGPROF_HTML;
    fgprof_options_set_threads(library, keeps_all ? FGPROF_THREADS_BY_ID : options->threads);
    fgprof_options_set_names(library, options->names);
    fgprof_options_set_timeline(library, options->format == FGPROF_SPEEDSCOPE ||
                                             options->format == FGPROF_RAW);
    fgprof_options_set_kernel_stacks(library, options->has_kernel_stacks);
    fgprof_options_set_children(library, options->has_children);
    fgprof_options_set_idle(library, !options->drops_idle);
    int err =
        options->thread_regex ? fgprof_options_set_thread_name(library, options->thread_regex) : 0;
    for (size_t i = 0; i < options->tid_count && !err; i++)
        err = fgprof_options_add_thread_id(library, options->tids[i]);
    if (err) {
        fgprof_options_free(library);
        return NULL;
    }
    return library;
}
