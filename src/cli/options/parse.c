#include "cli/options/options.h"
#include "base/buffer.h"
#include "cli/options/formats.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/suggest.h"
#include "cli/record/trigger.h"
#include "cli/say.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RATE_DEFAULT_HZ 99
#define HEAP_RATE_DEFAULT (512u << 10) /* as in Go */
#define DEPTH_DEFAULT 1024
#define MAX_PAUSE_DEFAULT_PERCENT 2
#define LISTEN_DEFAULT "127.0.0.1:6060" /* the port of Go's examples */
#define SECONDS_MAX_DEFAULT 300
#define AFTER_DEFAULT_NS 2000000000u
#define COOLDOWN_DEFAULT_NS 60000000000u
#define FILES_MAX_DEFAULT 20
#define LONG_OPTION 256 /* getopt_long returns a letter, or this plus an index, or: */
#define HELP_ALL (LONG_OPTION + OPTIONS_MAX)

/* A command's options, as getopt_long takes them. */
struct getopt_tables {
    struct option options[OPTIONS_MAX + 3];
    char letters[2 * OPTIONS_MAX + 4];
};

static void make_tables(enum cli_command command, struct getopt_tables *tables)
{
    struct option *option = tables->options;
    char *letter = tables->letters;
    if (command == COMMAND_RUN)
        *letter++ = '+'; /* options end at the first word that is not one */
    *letter++ = ':';     /* getopt_long prints nothing itself */
    *letter++ = 'h';
    *option++ = (struct option){"help", no_argument, NULL, 'h'};
    *option++ = (struct option){"help-all", no_argument, NULL, HELP_ALL};
    for (size_t i = 0; i < option_count; i++) {
        const struct cli_option *row = &option_table[i];
        bool has_value = row->value != NULL, is_optional = has_value && row->value[0] == '[';
        if (!option_is_of(row, command))
            continue;
        *option++ = (struct option){row->name,
                                    is_optional ? optional_argument
                                    : has_value ? required_argument
                                                : no_argument,
                                    NULL, LONG_OPTION + (int)i};
        if (row->letter) {
            *letter++ = row->letter;
            if (has_value && !is_optional)
                *letter++ = ':';
        }
    }
    *option = (struct option){0};
    *letter = '\0';
}

/* The option for the code that getopt_long returned; NULL if there is none. */
static const struct cli_option *find(int code, enum cli_command command)
{
    if (code >= LONG_OPTION && code < HELP_ALL)
        return &option_table[code - LONG_OPTION];
    for (size_t i = 0; i < option_count; i++) {
        if (code && option_table[i].letter == code && option_is_of(&option_table[i], command))
            return &option_table[i];
    }
    return NULL;
}

static bool is_abbreviation(const char *word, const struct option *option)
{
    return strncmp(word, "--", 2) == 0 &&
           strncmp(word + 2, option->name, strcspn(word + 2, "=")) == 0;
}

/* Whether several options begin with the word. If so, prints them. */
static bool complain_ambiguous(const struct getopt_tables *tables, const char *word)
{
    const struct option *option, *first = NULL;
    size_t matches = 0;
    for (option = tables->options; option->name; option++) {
        if (!is_abbreviation(word, option))
            continue;
        first = first ? first : option;
        matches++;
    }
    if (matches < 2)
        return false;
    fprintf(stderr, "fgprof-c: '%s' is ambiguous: give --%s", word, first->name);
    for (option = first + 1; option->name; option++) {
        if (is_abbreviation(word, option))
            fprintf(stderr, "%s --%s", --matches == 1 ? " or" : ",", option->name);
    }
    fputc('\n', stderr);
    return true;
}

static void complain_unknown(const struct cli_options *options, const struct getopt_tables *tables,
                             const char *word)
{
    const char *names[OPTIONS_MAX + 2], *name = options->command_name;
    char typed[64];
    size_t count = 0;
    for (const struct option *option = tables->options; option->name; option++)
        names[count++] = option->name;
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *near = suggest(typed, names, count);
    if (near)
        say("%s has no option '%s': did you mean --%s?", name, word, near);
    else
        say("%s has no option '%s': see fgprof-c %s --help", name, word, name);
}

/* Prints why getopt_long refused the word. */
static bool complain_option(const struct cli_options *options, const struct getopt_tables *tables,
                            int code, const char *word)
{
    const struct cli_option *option = find(optopt, options->command);
    const char *name = options->command_name;
    if (option && code == ':')
        say("--%s needs a value: --%s %s", option->name, option->name, option->value);
    else if (option || optopt == 'h' || optopt == HELP_ALL)
        say("--%s takes no value: see fgprof-c %s --help",
            option          ? option->name
            : optopt == 'h' ? "help"
                            : "help-all",
            name);
    else if (optopt)
        say("%s has no option '-%c': see fgprof-c %s --help", name, optopt, name);
    else if (!complain_ambiguous(tables, word))
        complain_unknown(options, tables, word);
    return false;
}

static enum parse_result parse_options(int argc, char **argv, struct cli_options *options)
{
    struct getopt_tables tables;
    int code;
    make_tables(options->command, &tables);
    while ((code = getopt_long(argc, argv, tables.letters, tables.options, NULL)) != -1) {
        if (code == 'h' || code == HELP_ALL)
            return code == 'h' ? PARSE_HELP : PARSE_HELP_ALL;
        const struct cli_option *option =
            code == '?' || code == ':' ? NULL : find(code, options->command);
        bool ok = true;
        errno = 0;
        if (!option)
            ok = complain_option(options, &tables, code, argv[optind - 1]);
        else
            ok = option_take(option, optarg, options);
        if (!ok)
            return errno == ENOMEM ? PARSE_NO_MEMORY : PARSE_WRONG;
    }
    return PARSE_OK;
}

static bool check_serving(const struct cli_options *options)
{
    if (strcmp(options->listen, "none") == 0 && !options->push.target_count)
        return say("--listen none serves nobody: give --push too");
    if (options->allows_remote && !options->token_file)
        return say("--allow-remote needs a token: give --token-file FILE too");
    return push_check(&options->push);
}

/* One that waits for processes takes a word as --pgrep's. */
static bool check_targets(struct cli_options *options)
{
    if (options->waits_for_processes && options->target_count == 1 && !options->pgrep) {
        options->pgrep = options->targets[0];
        options->target_count = 0;
    }
    bool has_ids = options->pid_count || options->target_count;
    if (!has_ids && !options->pgrep && !options->cgroup)
        return say("no process given: give its name or id, as in %s redis-server",
                   options->command_name);
    if (options->waits_for_processes && !options->pgrep)
        return say("--wait has no name to wait for: give --pgrep NAME");
    if (options->waits_for_processes && (has_ids || options->cgroup))
        return say("--wait is for one name: leave out other processes");
    return true;
}

/* Checks the words after the options. */
static bool check_arguments(struct cli_options *options, int count, char **arguments)
{
    switch (options->command) {
    case COMMAND_RUN:
        options->command_argv = arguments;
        return count > 0 || say("no command given: use run -- CMD [ARG...]");
    case COMMAND_CONVERT:
    case COMMAND_REPORT:
        options->inputs = arguments;
        return count == 1 || say("%s takes one recording: use %s FILE.fgprof",
                                 options->command_name, options->command_name);
    case COMMAND_DIFF:
        options->inputs = arguments;
        return count == 2 || say("diff takes two recordings: use diff BEFORE.fgprof AFTER.fgprof");
    default:
        options->targets = arguments;
        options->target_count = (size_t)count;
        return check_targets(options) && check_serving(options);
    }
}

/* Nobody reads binary formats or pages at a terminal. */
static bool check_terminal(const struct cli_options *options)
{
    bool is_for_eyes = !format_of(options->format)->is_binary && options->format != FGPROF_HTML;
    return is_for_eyes || strcmp(options->output, "-") != 0 || options->writes_page ||
           !isatty(STDOUT_FILENO) || say("a terminal can't show this format: give -o FILE");
}

/* A difference is a page or a report if its file is named so, and stacks otherwise. */
static bool choose_difference(struct cli_options *options)
{
    enum fgprof_format format;
    if (options->has_format || !format_of_ending(options->output, &format))
        return check_terminal(options);
    options->format = format;
    return format == FGPROF_FOLDED || format == FGPROF_HTML || format == FGPROF_REPORT ||
           complain("output", options->output,
                    "a difference can't be of this format: use .folded, .html or .report, or give "
                    "-f");
}

/* pprof, recordings and reports have elapsed time anyway. */
static bool check_elapsed(const struct cli_options *options)
{
    if (options->shows_elapsed && options->kind != FGPROF_KIND_WALL &&
        options->kind != FGPROF_KIND_CPU)
        return say("this kind has no elapsed time: use --elapsed with wall or cpu");
    bool is_held = options->format != FGPROF_TEXT && !format_of_order(options->format) &&
                   options->format != FGPROF_OTLP;
    return is_held || !options->shows_elapsed ||
           say("this format can't hold elapsed time: use --elapsed with folded or html; pprof "
               "always has it");
}

/* Follows wall-clock time through the kernel's record of switches, which must be there. */
static bool check_critical(struct cli_options *options)
{
    const char *wrong = NULL;
    if (!options->critical)
        return true;
    if (options->has_kind && options->kind != FGPROF_KIND_WALL)
        wrong = "shows wall-clock time: leave out --kind and --blame";
    else if (options->shows_elapsed)
        wrong = "shows the time of threads: leave out --elapsed";
    else if (options->slow_key)
        wrong = "needs all time: leave out --slow";
    else if (format_of_order(options->format))
        wrong = "shows no order of time: give -f folded, pprof, text, report or html";
    else if (options->capture == FGPROF_CAPTURE_KERNEL || options->capture == FGPROF_CAPTURE_PTRACE)
        wrong = "needs the kernel's record of switches: leave out --capture";
    if (wrong)
        return say("--critical %s", wrong);
    options->capture = FGPROF_CAPTURE_RECORD;
    return true;
}

/* What a trigger has seen must still be kept when its file is written. */
static bool check_after(struct cli_options *options, uint64_t kept_ns, const char *trigger)
{
    if (!options->has_after && options->after_ns > kept_ns)
        options->after_ns = kept_ns;
    return options->after_ns <= kept_ns ||
           complain("trigger", trigger,
                    "with --after it takes longer than is kept: give --keep a longer time");
}

/* For commands that keep the last part of the time. */
static bool check_keeping(struct cli_options *options)
{
    bool has_directory = strcmp(options->output, "-") != 0;
    uint64_t kept_ns = options->keep_ns ? options->keep_ns : KEEP_DEFAULT_NS;
    if (!has_directory && (options->command == COMMAND_RECORD || options->trigger_count))
        return say("no directory given for the files: use -o DIR");
    for (size_t i = 0; i < options->trigger_count; i++) {
        const struct trigger *trigger = &options->triggers[i];
        uint64_t needed_ns = trigger_needs_ns(trigger);
        if (needed_ns > kept_ns)
            return complain("trigger", trigger->text,
                            "it takes longer than is kept: give --keep "
                            "a longer time");
        if (!check_after(options, kept_ns - needed_ns, trigger->text))
            return false;
    }
    return true;
}

/* What commands that record can't do with objects. Those that read recordings find out then. */
static bool check_objects(const struct cli_options *options)
{
    bool chooses_threads = options->thread_regex || options->tid_count || options->drops_idle;
    if (!options_are_of_objects(options) || options->inputs)
        return true;
    if (options->kind == FGPROF_KIND_CUSTOM && options->duration_ns)
        return say("--kind %s shows what is there now: leave out --duration", options->custom);
    if (options->kept != FGPROF_KEPT_ALL || options->slow_key || chooses_threads)
        return say("--kind %s records no time: leave out %s", options_kind_name(options),
                   options->slow_key ? "--slow"
                   : chooses_threads ? "options that choose threads"
                                     : "--on-cpu and --off-cpu");
    return true;
}

static bool check_format(struct cli_options *options)
{
    bool to_stdout = strcmp(options->output, "-") == 0;
    if (options->command == COMMAND_RECORD || options->command == COMMAND_SERVE)
        return check_keeping(options);
    if (options->command == COMMAND_DIFF)
        return choose_difference(options);
    if (options->command == COMMAND_DUMP)
        return true;
    if (options->command == COMMAND_REPORT)
        return check_critical(options);
    if (!options->has_format && !to_stdout && !format_of_file(options->output, &options->format))
        return false;
    bool is_first_view = options->command == COMMAND_ATTACH || options->command == COMMAND_RUN;
    if (is_first_view && !options->has_format && !options->has_output && isatty(STDOUT_FILENO)) {
        options->writes_page = true;
        options->format = FGPROF_HTML;
    }
    const char *of_order = format_of_order(options->format);
    if (of_order && options->kind != FGPROF_KIND_WALL)
        return say(
            "%s shows wall-clock time alone: for another kind, give -f folded, pprof, text or html",
            of_order);
    if (of_order && options->slow_key)
        return say("%s shows all time in order: use --slow with other formats", of_order);
    return check_terminal(options) && check_critical(options) && check_elapsed(options) &&
           check_objects(options);
}

/* "fgprof-c" and the words of `argv`, quoted for a shell where needed. The caller frees it. NULL if
 * memory is short. */
static char *command_line_of(int argc, char **argv)
{
    struct buffer line = {0};
    buffer_puts(&line, "fgprof-c");
    for (int i = 0; i < argc; i++) {
        buffer_puts(&line, " ");
        buffer_put_quoted(&line, argv[i]);
    }
    if (line.error)
        buffer_free(&line);
    return line.bytes;
}

enum parse_result options_parse(int argc, char **argv, enum cli_command command,
                                struct cli_options *ret_options)
{
    struct cli_options options = {
        .command = command,
        .command_name = argv[0],
        .rate_hz = RATE_DEFAULT_HZ,
        .heap_rate = HEAP_RATE_DEFAULT,
        .max_depth = DEPTH_DEFAULT,
        .max_pause_percent = command == COMMAND_DUMP ? 100 : MAX_PAUSE_DEFAULT_PERCENT,
        .capture = FGPROF_CAPTURE_AUTO,
        .listen = LISTEN_DEFAULT,
        .seconds_max = SECONDS_MAX_DEFAULT,
        .keep_ns = command == COMMAND_RECORD ? KEEP_DEFAULT_NS : 0,
        .after_ns = AFTER_DEFAULT_NS,
        .cooldown_ns = COOLDOWN_DEFAULT_NS,
        .files_max = FILES_MAX_DEFAULT,
        .threads = command == COMMAND_TOP || command == COMMAND_SERVE ? FGPROF_THREADS_BY_ID
                                                                      : FGPROF_THREADS_BY_NAME,
        .format = command == COMMAND_REPORT                               ? FGPROF_REPORT
                  : command == COMMAND_RECORD || command == COMMAND_SERVE ? FGPROF_RAW
                                                                          : FGPROF_FOLDED,
        .output = "-",
        .command_line = command_line_of(argc, argv),
    };
    enum parse_result result =
        options.command_line ? parse_options(argc, argv, &options) : PARSE_NO_MEMORY;
    if (result == PARSE_OK &&
        (!check_arguments(&options, argc - optind, argv + optind) || !check_format(&options)))
        result = PARSE_WRONG;
    if (result == PARSE_NO_MEMORY)
        say("out of memory");
    if (result == PARSE_OK)
        *ret_options = options;
    else
        options_free(&options);
    return result;
}
