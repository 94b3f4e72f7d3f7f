#include "commands.h"
#include "duration.h"
#include "help.h"
#include "new_recorder.h"
#include "options.h"
#include "output_file.h"
#include "values.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_DEFAULT 1024

enum { OPTION_JSON = 256, OPTION_MAX_DEPTH, OPTION_NO_DEMANGLE, OPTION_FULL_NAMES, OPTION_KERNEL };

static const struct option long_options[] = {
    {"pid", required_argument, NULL, 'p'},
    {"group", no_argument, NULL, 'g'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"output", required_argument, NULL, 'o'},
    {"max-depth", required_argument, NULL, OPTION_MAX_DEPTH},
    {"no-demangle", no_argument, NULL, OPTION_NO_DEMANGLE},
    {"full-names", no_argument, NULL, OPTION_FULL_NAMES},
    {"kernel", no_argument, NULL, OPTION_KERNEL},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool set_format(enum fgprof_dump_format *format, enum fgprof_dump_format wanted)
{
    if (*format != FGPROF_DUMP_TEXT && *format != wanted) {
        fprintf(stderr, "fgprof-c: --group and --json exclude each other: give one of them, or "
                        "none for a paragraph for each thread\n");
        return false;
    }
    *format = wanted;
    return true;
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

static bool parse_option(struct cli_options *options, enum fgprof_dump_format *format, int option,
                         const char *value)
{
    uint64_t number;
    switch (option) {
    case 'p':
        return pids_parse(value, &options->pids, &options->pid_count);
    case 'g':
        return set_format(format, FGPROF_DUMP_GROUPED);
    case OPTION_JSON:
        return set_format(format, FGPROF_DUMP_JSON);
    case 'o':
        options->output = value;
        return *value || complain("output", value, "give a file name, or - for standard output");
    case OPTION_MAX_DEPTH:
        if (!number_parse(value, 1, 1000000, &number))
            return complain("depth", value, "give a number of frames, 1 to 1000000");
        options->max_depth = number;
        return true;
    case OPTION_NO_DEMANGLE:
        return set_names(options, FGPROF_NAMES_RAW);
    case OPTION_FULL_NAMES:
        return set_names(options, FGPROF_NAMES_FULL);
    case OPTION_KERNEL:
        options->has_kernel_stacks = true;
        return true;
    default: /* getopt has said what is wrong */
        return false;
    }
}

static enum parse_result parse(int argc, char **argv, struct cli_options *options,
                               enum fgprof_dump_format *format)
{
    int option;
    static char program[] = "fgprof-c";
    argv[0] = program; /* what getopt puts before its messages */
    while ((option = getopt_long(argc, argv, "+p:go:h", long_options, NULL)) != -1) {
        if (option == 'h')
            return PARSE_HELP;
        if (!parse_option(options, format, option, optarg))
            return PARSE_WRONG;
    }
    if (optind < argc) {
        complain("argument", argv[optind], "give processes with -p PID");
        return PARSE_WRONG;
    }
    if (!options->pid_count) {
        fprintf(stderr, "fgprof-c: no process given: dump -p PID\n");
        return PARSE_WRONG;
    }
    return PARSE_OK;
}

static bool write_dump(fgprof_recorder *recorder, const struct cli_options *options,
                       enum fgprof_dump_format format, struct output_file *file)
{
    fgprof_dump *dump;
    int err = fgprof_recorder_dump(recorder, &dump);
    if (err) {
        fprintf(stderr, "fgprof-c: the dump failed: %s\n", strerror(-err));
        return false;
    }
    bool has_threads = fgprof_dump_threads(dump) > 0;
    err = has_threads ? fgprof_dump_write(dump, format, file->fd) : 0;
    if (!err && has_threads)
        err = output_file_commit(file);
    if (!has_threads)
        fprintf(stderr, "fgprof-c: no thread was left to be dumped: the process has exited\n");
    if (err)
        fprintf(stderr, "fgprof-c: %s can't be written: %s\n",
                strcmp(options->output, "-") == 0 ? "standard output" : options->output,
                strerror(-err));
    fgprof_dump_free(dump);
    return !err && has_threads;
}

static bool dump_all(const struct cli_options *options, const fgprof_options *library,
                     enum fgprof_dump_format format, struct output_file *file)
{
    fgprof_recorder *recorder = new_recorder(options, library);
    bool ok = recorder != NULL;
    for (size_t i = 0; i < options->pid_count && ok; i++) {
        int err = fgprof_recorder_attach(recorder, options->pids[i]);
        if (err) {
            char why[256];
            fgprof_explain(options->pids[i], err, why, sizeof why);
            fprintf(stderr, "fgprof-c: %s\n", why);
            ok = false;
        }
    }
    ok = ok && write_dump(recorder, options, format, file);
    fgprof_recorder_free(recorder);
    return ok;
}

int command_dump(int argc, char **argv)
{
    struct cli_options options = {
        .rate_hz = 99, .max_depth = DEPTH_DEFAULT, .max_pause_percent = 100, .output = "-"};
    enum fgprof_dump_format format = FGPROF_DUMP_TEXT;
    int status = EXIT_USAGE;
    enum parse_result parsed = parse(argc, argv, &options, &format);
    if (parsed == PARSE_HELP) {
        help_dump();
        status = EXIT_WRITTEN;
    } else if (parsed == PARSE_OK) {
        struct output_file file = {.fd = -1};
        fgprof_options *library = options_for_library(&options);
        int err = output_file_open(&file, options.output);
        if (err)
            fprintf(stderr, "fgprof-c: %s can't be written: %s\n", options.output, strerror(-err));
        else if (!library)
            fprintf(stderr, "fgprof-c: out of memory\n");
        bool written = !err && library && dump_all(&options, library, format, &file);
        status = written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
        output_file_abandon(&file);
        fgprof_options_free(library);
    }
    options_free(&options);
    return status;
}
