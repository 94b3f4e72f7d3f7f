#include "cli/options/table.h"
#include "cli/options/formats.h"
#include "cli/options/values.h"
#include "cli/suggest.h"
#include "cli/record/trigger.h"
#include "cli/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX_HZ 1000
#define DEPTH_MAX 1000000
#define SECONDS_MAX 86400
#define KEEP_MIB_MAX (1u << 20)
#define FILES_MAX 1000000
#define HEAP_RATE_MAX (1u << 30)
#define PUSH_EVERY_MIN_NS 100000000u
#define PUSH_EVERY_MAX_NS 3600000000000u
#define SPOOL_BYTES_MIN 65536u
#define SPOOL_BYTES_MAX (1ull << 40)
#define DEBUGINFOD_DEFAULT_NS 60000000000u

static bool set_pid(struct cli_options *options, const char *value)
{
    return ids_parse(value, "process id", &options->pids, &options->pid_count);
}

static bool choose_group(struct cli_options *options, enum cgroup_by by, const char *value)
{
    if (options->cgroup)
        return complain("group", value, "give one of --cgroup, --unit and --container, once");
    options->cgroup = value;
    options->cgroup_by = by;
    options->has_children = true;
    return *value || complain("group", value, "give its name");
}

static bool set_thread(struct cli_options *options, const char *value)
{
    options->thread_regex = value;
    return regex_check("regular expression", value);
}

static bool set_tid(struct cli_options *options, const char *value)
{
    return ids_parse(value, "thread id", &options->tids, &options->tid_count);
}

static bool set_idle(struct cli_options *options, const char *value)
{
    (void)value;
    options->drops_idle = false;
    return true;
}

static bool set_seed(struct cli_options *options, const char *value)
{
    options->has_seed = true;
    return number_parse(value, 0, UINT64_MAX, &options->seed) ||
           complain("seed", value, "give a whole number, as the summary has it");
}

static bool set_max_pause(struct cli_options *options, const char *value)
{
    return percent_parse(value, &options->max_pause_percent) ||
           complain("pause", value, "give a percentage above 0, at most 100");
}

/* Returns the number of `value` among the words, or -1. */
static int find_word(const char *value, const char *const *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(value, words[i]) == 0)
            return (int)i;
    }
    return -1;
}

static bool set_capture(struct cli_options *options, const char *value)
{
    static const char *const names[] = {
        [FGPROF_CAPTURE_AUTO] = "auto",
        [FGPROF_CAPTURE_KERNEL] = "kernel",
        [FGPROF_CAPTURE_PTRACE] = "ptrace",
        [FGPROF_CAPTURE_RECORD] = "record",
    };
    int capture = find_word(value, names, sizeof names / sizeof *names);
    if (capture < 0)
        return complain("--capture", value, "give auto, kernel, ptrace or record");
    options->capture = (enum fgprof_capture)capture;
    return true;
}

static bool set_threads(struct cli_options *options, const char *value)
{
    options->shows_threads = true;
    if (!value)
        return true;
    options->threads = FGPROF_THREADS_BY_ID;
    return strcmp(value, "tid") == 0 ||
           complain("--threads", value, "give --threads=tid, or no value");
}

static bool add_label(struct cli_options *options, const char *value)
{
    if (!*value)
        return complain("label", value, "give the key of a label");
    if (options->label_count == ROOT_LABELS_MAX)
        return complain("label", value, "give at most 16");
    options->labels[options->label_count++] = value;
    return true;
}

static bool set_slow(struct cli_options *options, const char *value)
{
    const char *sign = strrchr(value, '>');
    if (!sign || sign == value || !duration_parse(sign + 1, &options->slow_ns))
        return complain("span", value, "give a label's key and a time, such as 'route>250ms'");
    free(options->slow_key);
    options->slow_key = strndup(value, (size_t)(sign - value));
    return options->slow_key != NULL;
}

/* Any other name may be that of a profile which the program keeps itself: that is seen later. */
static bool set_custom(struct cli_options *options, const char *value)
{
    if (options->command != COMMAND_ATTACH || !*value)
        return false;
    options->kind = FGPROF_KIND_CUSTOM;
    options->custom = value;
    options->has_kind = true;
    return true;
}

static bool set_kind(struct cli_options *options, const char *value)
{
    int kind = find_word(value, kind_names, KIND_NAMES);
    if (kind < 0 && set_custom(options, value))
        return true;
    if (kind < 0)
        return complain_near("kind of profile", value, suggest(value, kind_names, KIND_NAMES),
                             "give " KINDS);
    options->kind = (enum fgprof_kind)kind;
    options->has_kind = true;
    return true;
}

static bool set_blame(struct cli_options *options, const char *value)
{
    (void)value;
    return set_kind(options, "blame");
}

static bool set_critical(struct cli_options *options, const char *value)
{
    options->critical = value;
    return (*value && *value != '=') ||
           complain("thread", value, "give its name or id, or a label as KEY=VALUE");
}

static bool set_debuginfod(struct cli_options *options, const char *value)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    if (!urls || !*urls)
        return say("--debuginfod has no server to ask: set DEBUGINFOD_URLS");
    options->debuginfod_limit_ns = DEBUGINFOD_DEFAULT_NS;
    return !value || duration_parse(value, &options->debuginfod_limit_ns) ||
           complain("time limit", value, "give seconds, or a time such as 30s or 2m");
}

static bool set_format(struct cli_options *options, const char *value)
{
    options->has_format = true;
    return format_named(value, &options->format);
}

static bool set_difference_format(struct cli_options *options, const char *value)
{
    if (strcmp(value, "folded") != 0 && strcmp(value, "html") != 0 && strcmp(value, "report") != 0)
        return complain("format of a difference", value, "give folded, html or report");
    return set_format(options, value);
}

/* Prints why it was refused. */
static void complain_of_trigger(const char *value, const struct trigger_error *error)
{
    char wanted[sizeof error->wanted + 32];
    snprintf(wanted, sizeof wanted, "at character %zu: %s", error->character, error->wanted);
    complain("trigger", value, wanted);
}

static bool set_trigger(struct cli_options *options, const char *value)
{
    struct trigger_error error = {0};
    struct trigger *grown =
        reallocarray(options->triggers, options->trigger_count + 1, sizeof *grown);
    options->triggers = grown ? grown : options->triggers;
    int err = grown ? trigger_parse(value, &grown[options->trigger_count], &error) : -ENOMEM;
    if (err == -EINVAL)
        complain_of_trigger(value, &error);
    else
        errno = -err;
    options->trigger_count += !err;
    return !err;
}

static bool set_after(struct cli_options *options, const char *value)
{
    options->has_after = true;
    if (strcmp(value, "0") == 0 || strcmp(value, "0s") == 0) {
        options->after_ns = 0;
        return true;
    }
    return duration_parse(value, &options->after_ns) ||
           complain("time", value, "give a time such as 2s, or 0");
}

static bool set_directory(struct cli_options *options, const char *value)
{
    options->has_output = true;
    options->output = value;
    return (*value && strcmp(value, "-") != 0) ||
           complain("directory", value, "give one that exists, for the files");
}

static bool set_output(struct cli_options *options, const char *value)
{
    if (options->has_output)
        return complain("output", value, "there is one already: give -o once");
    options->has_output = true;
    options->output = value;
    return *value || complain("output", value, "give a file name, or - for standard output");
}

#define BIT(command) (1u << COMMAND_##command)
#define WRITING (BIT(ATTACH) | BIT(RUN))   /* record a profile and write it */
#define SERVING (BIT(SERVE) | BIT(RECORD)) /* for as long as there are processes */
#define SAMPLING (WRITING | BIT(TOP) | SERVING)
#define LOOKING (SAMPLING | BIT(DUMP))
#define RUNNING (LOOKING & ~BIT(RUN)) /* processes that run already */
#define RENDERING (WRITING | BIT(CONVERT) | BIT(DIFF))
#define AT(member) offsetof(struct cli_options, member)

const struct cli_option option_table[] = {
    {"pid", 'p', "PID[,...]", RUNNING, OPTIONS_WHICH,
     "these processes; may be given more than once", .set = set_pid, .is_common = true},
    {"pgrep", 0, "NAME", RUNNING, OPTIONS_WHICH,
     "all processes with a matching name, as in pgrep(1)", .type = OPTION_TEXT, .at = AT(pgrep),
     .what = "name", .wanted = "give a process name or a regular expression", .is_common = true},
    {"cgroup", 0, "PATH", RUNNING, OPTIONS_WHICH,
     "all processes in the control group, and descendants", .type = OPTION_GROUP,
     .number = CGROUP_BY_PATH},
    {"unit", 0, "NAME", RUNNING, OPTIONS_WHICH,
     "the same, of a unit of systemd, such as redis.service", .type = OPTION_GROUP,
     .number = CGROUP_BY_UNIT},
    {"container", 0, "ID", RUNNING, OPTIONS_WHICH,
     "the same, of a container: its id, or how that begins", .type = OPTION_GROUP,
     .number = CGROUP_BY_CONTAINER},
    {"children", 0, NULL, LOOKING, OPTIONS_WHICH, "their descendants too, each as its own process",
     .at = AT(has_children), .is_common = true},
    {"thread", 0, "REGEX", LOOKING, OPTIONS_WHICH, "only threads whose current name matches REGEX",
     .set = set_thread, .is_common = true},
    {"tid", 0, "TID[,...]", RUNNING, OPTIONS_WHICH,
     "only these threads, and those chosen by --thread", .set = set_tid},
    {"no-idle", 0, NULL, WRITING, OPTIONS_WHICH, "leave out threads that never moved",
     .at = AT(drops_idle), .is_common = true},
    {"idle", 0, NULL, WRITING, OPTIONS_WHICH, "keep them (default)", .set = set_idle},
    {"slow", 0, "KEY>TIME", WRITING, OPTIONS_WHICH,
     "only spans of a label that last longer than TIME", .set = set_slow},

    {"wait", 0, NULL, SERVING, OPTIONS_WHICH, "wait for a process with the name, and for the next",
     .at = AT(waits_for_processes), .is_common = true},

    {"duration", 'd', "TIME", SAMPLING & ~SERVING, OPTIONS_WHEN,
     "end after TIME: 30s, 1.5m, 2h, 500ms, or seconds", .type = OPTION_TIME, .at = AT(duration_ns),
     .what = "duration", .wanted = "give a time such as 30s, 1.5m, 2h or 500ms", .is_common = true},
    {"rate", 'F', "HZ", SAMPLING, OPTIONS_WHEN, "ticks per second, 1 to 1000 (default 99)",
     .type = OPTION_NUMBER, .at = AT(rate_hz), .least = 1, .most = RATE_MAX_HZ, .what = "rate",
     .wanted = "give ticks per second, 1 to 1000", .is_common = true},
    {"seed", 0, "N", SAMPLING, OPTIONS_WHEN, "repeat the random ticks of a recording",
     .set = set_seed},
    {"trace-ids", 0, NULL, SAMPLING, OPTIONS_WHEN, "trace and span ids as labels",
     .at = AT(has_trace_ids)},
    {"max-pause", 0, "PCT", SAMPLING, OPTIONS_WHEN,
     "limit pauses to PCT % of running time (default 2)", .set = set_max_pause},
    {"capture", 0, "WAY", LOOKING, OPTIONS_WHEN, "kernel, ptrace, record or auto (default)",
     .set = set_capture},
    {"keep", 0, "TIME", BIT(SERVE), OPTIONS_WHEN, "forget what is older than TIME",
     .type = OPTION_TIME, .at = AT(keep_ns), .what = "time to keep",
     .wanted = "give a time such as 60s or 5m", .is_common = true},
    {"keep", 0, "TIME", BIT(RECORD), OPTIONS_WHEN, "how much of the past is kept (default 60s)",
     .type = OPTION_TIME, .at = AT(keep_ns), .what = "time to keep",
     .wanted = "give a time such as 60s or 5m", .is_common = true},
    {"keep-memory", 0, "N", SERVING | WRITING, OPTIONS_WHEN,
     "keep at most N MiB (256; with a time to keep 64)", .type = OPTION_NUMBER, .at = AT(keep_mib),
     .least = 1, .most = KEEP_MIB_MAX, .what = "amount of memory",
     .wanted = "give a number of MiB, 1 to 1048576"},

    {"threads", 't', "[=tid]", RENDERING, OPTIONS_SHOWN,
     "folded: thread name as root frame; =tid: and its id", .set = set_threads, .is_common = true},
    {"processes", 0, NULL, RENDERING, OPTIONS_SHOWN, "folded: process as root frame",
     .at = AT(shows_processes)},
    {"label", 0, "KEY", RENDERING, OPTIONS_SHOWN, "folded: the label's value as root frame",
     .set = add_label},
    {"lines", 0, NULL, RENDERING, OPTIONS_SHOWN, "folded: file and line in each frame",
     .at = AT(shows_lines)},
    {"state", 0, NULL, RENDERING, OPTIONS_SHOWN, "folded: the thread's state as leaf frame",
     .at = AT(shows_state)},
    {"elapsed", 0, NULL, RENDERING, OPTIONS_SHOWN,
     "folded, html: elapsed time, which adds up to seconds", .at = AT(shows_elapsed)},
    {"kind", 0, "KIND", RENDERING & ~BIT(DIFF), OPTIONS_SHOWN,
     "wall, cpu, block, mutex, blame, or objects:\n"
     "heap, allocs, growth, threadcreate, a program's own",
     .set = set_kind, .is_common = true},
    {"blame", 0, NULL, RENDERING & ~BIT(DIFF), OPTIONS_SHOWN, "the same as --kind blame",
     .set = set_blame},
    {"critical", 0, "THREAD", WRITING | BIT(CONVERT) | BIT(REPORT), OPTIONS_SHOWN,
     "what THREAD's time depended on, through the threads\n"
     "that ended its waits; KEY=VALUE: that of a label",
     .set = set_critical},
    {"heap-rate", 0, "BYTES", WRITING | BIT(SERVE), OPTIONS_SHOWN,
     "sample one allocation per BYTES (default 512K)", .type = OPTION_BYTES, .at = AT(heap_rate),
     .most = HEAP_RATE_MAX, .what = "heap rate",
     .wanted = "give bytes, such as 4096, 512K or 1M, at most 1G"},
    {"heap-mmap", 0, NULL, WRITING | BIT(SERVE), OPTIONS_SHOWN,
     "count mmap(2) as an allocation too", .at = AT(has_mappings)},
    {"on-cpu", 0, NULL, RENDERING, OPTIONS_SHOWN, "only samples on a CPU", .type = OPTION_CHOICE,
     .at = AT(kept), .wanted = "all samples", .number = FGPROF_KEPT_ON_CPU, .is_common = true},
    {"off-cpu", 0, NULL, RENDERING, OPTIONS_SHOWN, "only samples off the CPU",
     .type = OPTION_CHOICE, .at = AT(kept), .wanted = "all samples", .number = FGPROF_KEPT_OFF_CPU,
     .is_common = true},
    {"kernel", 0, NULL, LOOKING, OPTIONS_SHOWN, "kernel functions too", .at = AT(has_kernel_stacks),
     .is_common = true},
    {"native", 0, NULL, LOOKING, OPTIONS_SHOWN, "the Python interpreter's own functions too",
     .at = AT(has_native_frames)},
    {"no-goroutines", 0, NULL, LOOKING, OPTIONS_SHOWN,
     "the threads of Go programs, not their goroutines", .at = AT(has_no_goroutines)},
    {"tasks", 0, NULL, LOOKING & ~BIT(DUMP), OPTIONS_SHOWN,
     "the suspended tasks of Python's asyncio too", .at = AT(has_tasks)},
    {"full-names", 0, NULL, LOOKING, OPTIONS_SHOWN,
     "C++ names with parameters and template arguments", .type = OPTION_CHOICE, .at = AT(names),
     .wanted = "short names", .number = FGPROF_NAMES_FULL},
    {"no-demangle", 0, NULL, LOOKING, OPTIONS_SHOWN, "names as in the symbol table",
     .type = OPTION_CHOICE, .at = AT(names), .wanted = "short names", .number = FGPROF_NAMES_RAW},
    {"debuginfod", 0, "[=TIME]", WRITING, OPTIONS_SHOWN,
     "fetch debug information, for at most TIME (60s)", .set = set_debuginfod},
    {"max-depth", 0, "N", LOOKING, OPTIONS_SHOWN,
     "keep the N frames nearest the leaf (default 1024)", .type = OPTION_NUMBER,
     .at = AT(max_depth), .what = "depth", .wanted = "give a number of frames, 1 to 1000000",
     .least = 1, .most = DEPTH_MAX},
    {"normalize", 'n', NULL, BIT(DIFF), OPTIONS_SHOWN,
     "scale BEFORE to as many samples as AFTER, as is done\n"
     "if their durations differ",
     .at = AT(is_normalized), .is_common = true},
    {"no-normalize", 0, NULL, BIT(DIFF), OPTIONS_SHOWN, "leave the counts as they are",
     .at = AT(is_not_normalized), .is_common = true},
    {"group", 'g', NULL, BIT(DUMP), OPTIONS_SHOWN,
     "group threads with equal stacks, most threads first", .type = OPTION_CHOICE,
     .at = AT(dump_format), .wanted = "a paragraph for each thread", .number = FGPROF_DUMP_GROUPED,
     .is_common = true},
    {"addresses", 0, NULL, BIT(DUMP), OPTIONS_SHOWN, "show the addresses of frames and locks",
     .type = OPTION_CHOICE, .at = AT(dump_format), .wanted = "a paragraph for each thread",
     .number = FGPROF_DUMP_ADDRESSES, .is_common = true},

    {"listen", 0, "ADDRESS", BIT(SERVE), OPTIONS_OUTPUT,
     "HOST:PORT (default 127.0.0.1:6060), unix:PATH or none", .type = OPTION_TEXT, .at = AT(listen),
     .what = "address", .wanted = "give HOST:PORT, [IPV6]:PORT or unix:PATH", .is_common = true},
    {"token-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, "requests must send the token in FILE",
     .type = OPTION_TEXT, .at = AT(token_file), .what = "token file",
     .wanted = "give a file that holds the token", .is_common = true},
    {"allow-local-users", 0, NULL, BIT(SERVE), OPTIONS_OUTPUT, "answer all users of this machine",
     .at = AT(allows_local_users), .is_common = true},
    {"allow-remote", 0, NULL, BIT(SERVE), OPTIONS_OUTPUT,
     "listen where other machines can reach it", .at = AT(allows_remote), .is_common = true},
    {"max-seconds", 0, "N", BIT(SERVE), OPTIONS_OUTPUT,
     "refuse profiles of more than N seconds (default 300)", .type = OPTION_NUMBER,
     .at = AT(seconds_max), .what = "number of seconds",
     .wanted = "give a whole number, 1 to 86400", .least = 1, .most = SECONDS_MAX},
    {"output", 'o', "DIR", BIT(RECORD), OPTIONS_OUTPUT, "write files to this directory",
     .set = set_directory, .is_common = true},
    {"output", 'o', "DIR", BIT(SERVE), OPTIONS_OUTPUT,
     "also write files to this directory, as record does", .set = set_directory, .is_common = true},
    {"format", 'f', "FORMAT", BIT(RECORD), OPTIONS_OUTPUT, "format of the files (default raw)",
     .set = set_format},
    {"trigger", 0, "WHEN", SERVING, OPTIONS_OUTPUT,
     "write a file when this holds: fgprof-c-record(1)", .set = set_trigger, .is_common = true},
    {"after", 0, "TIME", SERVING, OPTIONS_OUTPUT,
     "time from a trigger to its file, so that the end of\n"
     "what it saw is in it (default 2s)",
     .set = set_after},
    {"cooldown", 0, "TIME", SERVING, OPTIONS_OUTPUT, "at most one triggered file per TIME (60s)",
     .type = OPTION_TIME, .at = AT(cooldown_ns), .what = "cooldown",
     .wanted = "give a time such as 60s or 5m"},
    {"max-files", 0, "N", SERVING, OPTIONS_OUTPUT, "keep only the newest N files (20)",
     .type = OPTION_NUMBER, .at = AT(files_max), .what = "number of files",
     .wanted = "give a whole number, 1 to 1000000", .least = 1, .most = FILES_MAX},
    {"push", 0, "API=URL", BIT(SERVE), OPTIONS_OUTPUT, "send profiles to pyroscope=URL or otlp=URL",
     .set_push = push_target_parse, .is_common = true},
    {"push-every", 0, "TIME", BIT(SERVE), OPTIONS_OUTPUT, "push interval (default 10s)",
     .type = OPTION_TIME, .at = AT(push.every_ns), .least = PUSH_EVERY_MIN_NS,
     .most = PUSH_EVERY_MAX_NS, .what = "time between pushes",
     .wanted = "give a time such as 10s, from 100ms to 1h"},
    {"push-kinds", 0, "LIST", BIT(SERVE), OPTIONS_OUTPUT, "what to push, such as wall,cpu,off_cpu",
     .set_push = push_kinds_parse},
    {"tag", 0, "KEY=VALUE", BIT(SERVE), OPTIONS_OUTPUT, "a label of what is pushed",
     .set_push = push_tag_parse},
    {"service", 0, "NAME", BIT(SERVE), OPTIONS_OUTPUT,
     "the service's name (default: the process's)", .type = OPTION_TEXT, .at = AT(push.service),
     .what = "service", .wanted = "give its name"},
    {"push-spool", 0, "DIR", BIT(SERVE), OPTIONS_OUTPUT, "where unsent profiles wait",
     .type = OPTION_TEXT, .at = AT(push.spool), .what = "spool", .wanted = "give a directory"},
    {"push-spool-size", 0, "BYTES", BIT(SERVE), OPTIONS_OUTPUT,
     "limit of what waits there (default 64M)", .type = OPTION_BYTES, .at = AT(push.spool_bytes),
     .least = SPOOL_BYTES_MIN, .most = SPOOL_BYTES_MAX, .what = "size of the spool",
     .wanted = "give bytes, such as 500K, 64M or 2G, at least 64K"},
    {"push-ca", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, "certificates to trust, in PEM",
     .type = OPTION_TEXT, .at = AT(push.ca_file), .what = "certificates",
     .wanted = "give a file of them in PEM"},
    {"push-token-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, "the token to push with",
     .type = OPTION_TEXT, .at = AT(push.token_file), .what = "token file",
     .wanted = "give a file that holds the token"},
    {"push-user-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, "USER:PASSWORD to push with",
     .type = OPTION_TEXT, .at = AT(push.user_file), .what = "password file",
     .wanted = "give a file that holds USER:PASSWORD"},
    {"push-header-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, "NAME: VALUE to push with",
     .type = OPTION_TEXT, .at = AT(push.header_file), .what = "header file",
     .wanted = "give a file that holds NAME: VALUE"},
    {"json", 0, NULL, BIT(DUMP), OPTIONS_OUTPUT, "write JSON", .type = OPTION_CHOICE,
     .at = AT(dump_format), .wanted = "a paragraph for each thread", .number = FGPROF_DUMP_JSON,
     .is_common = true},
    {"json", 0, NULL, BIT(REPORT), OPTIONS_OUTPUT, "write JSON", .type = OPTION_CHOICE,
     .at = AT(format), .number = FGPROF_REPORT_JSON, .is_common = true},
    {"format", 'f', "FORMAT", WRITING | BIT(CONVERT), OPTIONS_OUTPUT,
     "default: by FILE's ending, or folded:", .set = set_format, .is_common = true},
    {"format", 'f', "FORMAT", BIT(DIFF), OPTIONS_OUTPUT,
     "html or report (by FILE's ending), or folded", .set = set_difference_format,
     .is_common = true},
    {"output", 'o', "FILE", RENDERING | BIT(DUMP) | BIT(REPORT), OPTIONS_OUTPUT,
     "write to FILE; - is stdout", .set = set_output, .is_common = true},
    {"quiet", 'q', NULL, WRITING, OPTIONS_OUTPUT, "no progress, no summary", .at = AT(is_quiet),
     .is_common = true},
    {"verbose", 'v', NULL, WRITING, OPTIONS_OUTPUT,
     "write the log of refused BPF programs to a file", .at = AT(is_verbose)},
};
const size_t option_count = sizeof option_table / sizeof *option_table;
_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX,
               "the parser's tables are too small");

/* Of several options that select one thing, only one can be given. */
static bool choose(const struct cli_option *option, unsigned *chosen)
{
    for (size_t i = 0; i < option_count && *chosen && *chosen != option->number; i++) {
        const struct cli_option *other = &option_table[i];
        if (other->at == option->at && other->number == *chosen)
            return say("--%s and --%s can't be combined: give one of them, or neither for %s",
                       other->name, option->name, option->wanted);
    }
    *chosen = option->number;
    return true;
}

/* One with a unit, or without. */
static bool parse_amount(const struct cli_option *option, const char *value, uint64_t *ret_amount)
{
    bool ok = option->type == OPTION_TIME    ? duration_parse(value, ret_amount)
              : option->type == OPTION_BYTES ? bytes_parse(value, option->most, ret_amount)
                                             : number_parse(value, 0, UINT64_MAX, ret_amount);
    return ok && *ret_amount >= option->least && (!option->most || *ret_amount <= option->most);
}

bool option_take(const struct cli_option *option, const char *value, struct cli_options *options)
{
    void *member = (char *)options + option->at;
    if (option->set)
        return option->set(options, value);
    if (option->set_push)
        return option->set_push(&options->push, value);
    switch (option->type) {
    case OPTION_FLAG:
        *(bool *)member = true;
        return true;
    case OPTION_TEXT:
        *(const char **)member = value;
        return *value || complain(option->what, value, option->wanted);
    case OPTION_TIME:
    case OPTION_BYTES:
    case OPTION_NUMBER:
        return parse_amount(option, value, member) || complain(option->what, value, option->wanted);
    case OPTION_CHOICE:
        return choose(option, member);
    case OPTION_GROUP:
        return choose_group(options, (enum cgroup_by)option->number, value);
    }
    return false;
}
