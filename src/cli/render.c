#include "render.h"
#include "commands.h"
#include "formats.h"
#include "output_file.h"
#include "values.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_LINES = 256, OPTION_PROCESSES, OPTION_STATE, OPTION_ON_CPU, OPTION_OFF_CPU };

/* The first is of `convert`, the second of `diff`. */
static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"normalize", no_argument, NULL, 'n'},
    {"output", required_argument, NULL, 'o'},
    {"threads", optional_argument, NULL, 't'},
    {"lines", no_argument, NULL, OPTION_LINES},
    {"processes", no_argument, NULL, OPTION_PROCESSES},
    {"state", no_argument, NULL, OPTION_STATE},
    {"on-cpu", no_argument, NULL, OPTION_ON_CPU},
    {"off-cpu", no_argument, NULL, OPTION_OFF_CPU},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool parse_option(struct render_options *options, int option, const char *value)
{
    switch (option) {
    case 'f':
        options->has_format = true;
        return format_named(value, &options->format);
    case 'n':
        options->is_normalized = true;
        return true;
    case 'o':
        options->output = value;
        return *value || complain("output", value, "give a file name, or - for standard output");
    case 't':
        options->folded_flags |= FGPROF_FOLDED_THREADS;
        return threads_parse(value, &options->threads);
    case OPTION_LINES:
        options->folded_flags |= FGPROF_FOLDED_LINES;
        return true;
    case OPTION_PROCESSES:
        options->folded_flags |= FGPROF_FOLDED_PROCESSES;
        return true;
    case OPTION_STATE:
        options->folded_flags |= FGPROF_FOLDED_STATE;
        return true;
    case OPTION_ON_CPU:
        return kept_set(&options->kept, FGPROF_KEPT_ON_CPU);
    case OPTION_OFF_CPU:
        return kept_set(&options->kept, FGPROF_KEPT_OFF_CPU);
    default: /* getopt has said what is wrong */
        return false;
    }
}

static bool check(struct render_options *options, int input_count, bool is_difference)
{
    bool to_stdout = strcmp(options->output, "-") == 0;
    if (is_difference && input_count != 2) {
        fprintf(stderr, "fgprof-c: diff takes two recordings: diff BEFORE.fgprof AFTER.fgprof\n");
        return false;
    }
    if (!is_difference && input_count != 1) {
        fprintf(stderr, "fgprof-c: convert takes one recording: convert FILE.fgprof\n");
        return false;
    }
    if (is_difference)
        return true;
    if (!options->has_format && !to_stdout && !format_of_file(options->output, &options->format))
        return false;
    if (format_is_binary(options->format) && to_stdout && isatty(STDOUT_FILENO)) {
        fprintf(stderr, "fgprof-c: this format is binary and is not written to a terminal: give -o "
                        "FILE\n");
        return false;
    }
    return true;
}

enum render_parsed render_parse(int argc, char **argv, bool is_difference,
                                struct render_options *ret_options)
{
    struct render_options options = {.output = "-"};
    int option;
    static char program[] = "fgprof-c";
    argv[0] = program; /* what getopt puts before its messages */
    /* `diff` has one format, and what is normalized are two. */
    while ((option = getopt_long(argc, argv, is_difference ? "no:th" : "f:o:th",
                                 is_difference ? long_options + 1 : long_options, NULL)) != -1) {
        if (option == 'h')
            return RENDER_HELP;
        if (option == 'n' && !is_difference) {
            fprintf(stderr, "fgprof-c: --normalize is for diff\n");
            return RENDER_WRONG;
        }
        if (!parse_option(&options, option, optarg))
            return RENDER_WRONG;
    }
    options.inputs = argv + optind;
    if (!check(&options, argc - optind, is_difference))
        return RENDER_WRONG;
    *ret_options = options;
    return RENDER_OK;
}

static const char *why_unread(int error)
{
    switch (error) {
    case -ENOEXEC:
        return "it is no regular file";
    case -EILSEQ:
        return "it is not a recording of fgprof-c (as of -o FILE.fgprof)";
    case -EBADMSG:
        return "it is damaged";
    case -ENODATA:
        return "it is cut short";
    case -EFBIG:
        return "it is too large: more than 256 MiB inflated";
    default:
        return strerror(-error);
    }
}

static void complain_of_version(const char *path)
{
    unsigned version;
    if (fgprof_recording_version(path, &version))
        version = FGPROF_RECORDING_VERSION + 1;
    fprintf(stderr,
            "fgprof-c: %s can't be read: it has version %u of the format, and this program knows "
            "version %u: use a newer one\n",
            path, version, FGPROF_RECORDING_VERSION);
}

fgprof_profile *render_read(const struct render_options *options, const char *path)
{
    fgprof_profile *profile;
    int err = fgprof_profile_read(path, &profile);
    if (err) {
        if (err == -EPROTONOSUPPORT)
            complain_of_version(path);
        else
            fprintf(stderr, "fgprof-c: %s can't be read: %s\n", path, why_unread(err));
        return NULL;
    }
    fgprof_profile_set_folded_flags(profile, options->folded_flags);
    /* A page tells threads of equal name apart, and joins them again. */
    fgprof_profile_set_threads(profile, options->format == FGPROF_HTML ? FGPROF_THREADS_BY_ID
                                                                       : options->threads);
    fgprof_profile_set_kept(profile, options->kept);
    return profile;
}

int render_write(const struct render_options *options, render_fn *write, void *context)
{
    struct output_file file;
    int err = output_file_open(&file, options->output);
    if (!err)
        err = write(options, context, file.fd);
    if (!err)
        err = output_file_commit(&file);
    if (err) {
        if (err == -ENODATA)
            fprintf(stderr,
                    "fgprof-c: %s has no timeline, which speedscope is to show: record anew with "
                    "-o FILE.fgprof, which keeps one\n",
                    options->inputs[0]);
        else
            fprintf(stderr, "fgprof-c: %s can't be written: %s\n",
                    strcmp(options->output, "-") == 0 ? "standard output" : options->output,
                    strerror(-err));
        output_file_abandon(&file);
    }
    return err ? EXIT_NOT_WRITTEN : EXIT_WRITTEN;
}
