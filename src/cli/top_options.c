#include "top_options.h"
#include "duration.h"
#include "values.h"

#include <getopt.h>
#include <stdio.h>

enum { OPTION_KERNEL = 256, OPTION_FULL_NAMES, OPTION_NO_DEMANGLE, OPTION_MAX_PAUSE };

static bool parse_option(struct cli_options *options, int option, const char *value)
{
    uint64_t rate_hz;
    switch (option) {
    case 'p':
        return pids_parse(value, &options->pids, &options->pid_count);
    case 'd':
        return duration_parse(value, &options->duration_ns) ||
               complain("duration", value, "give a number with ms, s, m or h, as 30s");
    case 'F':
        if (!number_parse(value, 1, 1000, &rate_hz))
            return complain("rate", value, "give ticks a second, 1 to 1000");
        options->rate_hz = (unsigned)rate_hz;
        return true;
    case OPTION_KERNEL:
        options->has_kernel_stacks = true;
        return true;
    case OPTION_FULL_NAMES:
        options->names = FGPROF_NAMES_FULL;
        return true;
    case OPTION_NO_DEMANGLE:
        options->names = FGPROF_NAMES_RAW;
        return true;
    case OPTION_MAX_PAUSE:
        return percent_parse(value, &options->max_pause_percent) ||
               complain("pause", value, "give a share in percent, more than 0, at most 100");
    default: /* getopt has said what is wrong */
        return false;
    }
}

enum parse_result top_options_parse(int argc, char **argv, struct cli_options *options)
{
    static const struct option long_options[] = {
        {"pid", required_argument, NULL, 'p'},
        {"duration", required_argument, NULL, 'd'},
        {"rate", required_argument, NULL, 'F'},
        {"kernel", no_argument, NULL, OPTION_KERNEL},
        {"full-names", no_argument, NULL, OPTION_FULL_NAMES},
        {"no-demangle", no_argument, NULL, OPTION_NO_DEMANGLE},
        {"max-pause", required_argument, NULL, OPTION_MAX_PAUSE},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    static char program[] = "fgprof-c";
    int option;
    *options = (struct cli_options){.command = COMMAND_ATTACH,
                                    .rate_hz = 99,
                                    .max_depth = 1024,
                                    .max_pause_percent = 2,
                                    .threads = FGPROF_THREADS_BY_ID};
    argv[0] = program; /* what getopt puts before its messages */
    while ((option = getopt_long(argc, argv, "+p:d:F:h", long_options, NULL)) != -1) {
        if (option == 'h')
            return PARSE_HELP;
        if (!parse_option(options, option, optarg))
            return PARSE_WRONG;
    }
    if (optind < argc) {
        complain("argument", argv[optind], "give processes with -p PID");
        return PARSE_WRONG;
    }
    if (!options->pid_count) {
        fprintf(stderr, "fgprof-c: no process given: top -p PID\n");
        return PARSE_WRONG;
    }
    return PARSE_OK;
}
