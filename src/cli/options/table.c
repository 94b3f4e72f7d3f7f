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
#define DEBUGINFOD_DEFAULT_NS 60000000000u

static bool set_pid(struct cli_options *options, const char *value)
{
    return pids_parse(value, &options->pids, &options->pid_count);
}

static bool set_pgrep(struct cli_options *options, const char *value)
{
    options->pgrep = value;
    return *value || complain("name", value, "give a process name or a regular expression");
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

static bool set_cgroup(struct cli_options *options, const char *value)
{
    return choose_group(options, CGROUP_BY_PATH, value);
}

static bool set_unit(struct cli_options *options, const char *value)
{
    return choose_group(options, CGROUP_BY_UNIT, value);
}

static bool set_container(struct cli_options *options, const char *value)
{
    return choose_group(options, CGROUP_BY_CONTAINER, value);
}

static bool set_thread(struct cli_options *options, const char *value)
{
    options->thread_regex = value;
    return regex_check("regular expression", value);
}

static bool set_tid(struct cli_options *options, const char *value)
{
    return tids_parse(value, &options->tids, &options->tid_count);
}

static bool set_idle(struct cli_options *options, const char *value)
{
    (void)value;
    options->drops_idle = false;
    return true;
}

static bool set_no_idle(struct cli_options *options, const char *value)
{
    (void)value;
    options->drops_idle = true;
    return true;
}

static bool set_duration(struct cli_options *options, const char *value)
{
    return duration_parse(value, &options->duration_ns) ||
           complain("duration", value, "give a time such as 30s, 1.5m, 2h or 500ms");
}

static bool set_rate(struct cli_options *options, const char *value)
{
    uint64_t rate_hz;
    if (!number_parse(value, 1, RATE_MAX_HZ, &rate_hz))
        return complain("rate", value, "give ticks per second, 1 to 1000");
    options->rate_hz = (unsigned)rate_hz;
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
    return threads_parse(value, &options->threads);
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

static bool keep(struct cli_options *options, enum fgprof_kept kept)
{
    if (options->kept != FGPROF_KEPT_ALL && options->kept != kept)
        return complain_both("--on-cpu", "--off-cpu", "all samples");
    options->kept = kept;
    return true;
}

static bool set_on_cpu(struct cli_options *options, const char *value)
{
    (void)value;
    return keep(options, FGPROF_KEPT_ON_CPU);
}

static bool set_off_cpu(struct cli_options *options, const char *value)
{
    (void)value;
    return keep(options, FGPROF_KEPT_OFF_CPU);
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

static bool set_heap_rate(struct cli_options *options, const char *value)
{
    return bytes_parse(value, HEAP_RATE_MAX, &options->heap_rate) ||
           complain("heap rate", value, "give bytes, such as 4096, 512K or 1M, at most 1G");
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

static bool set_names(struct cli_options *options, enum fgprof_names names)
{
    if (options->names != FGPROF_NAMES_SHORT && options->names != names)
        return complain_both("--no-demangle", "--full-names", "short names");
    options->names = names;
    return true;
}

static bool set_full_names(struct cli_options *options, const char *value)
{
    (void)value;
    return set_names(options, FGPROF_NAMES_FULL);
}

static bool set_no_demangle(struct cli_options *options, const char *value)
{
    (void)value;
    return set_names(options, FGPROF_NAMES_RAW);
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

static bool set_max_depth(struct cli_options *options, const char *value)
{
    uint64_t frames;
    if (!number_parse(value, 1, DEPTH_MAX, &frames))
        return complain("depth", value, "give a number of frames, 1 to 1000000");
    options->max_depth = frames;
    return true;
}

static bool set_dump_format(struct cli_options *options, enum fgprof_dump_format format)
{
    static const char *const names[] = {[FGPROF_DUMP_GROUPED] = "--group",
                                        [FGPROF_DUMP_JSON] = "--json",
                                        [FGPROF_DUMP_ADDRESSES] = "--addresses"};
    if (options->dump_format != FGPROF_DUMP_TEXT && options->dump_format != format)
        return complain_both(names[options->dump_format], names[format],
                             "a paragraph for each thread");
    options->dump_format = format;
    return true;
}

static bool set_group(struct cli_options *options, const char *value)
{
    (void)value;
    return set_dump_format(options, FGPROF_DUMP_GROUPED);
}

static bool set_addresses(struct cli_options *options, const char *value)
{
    (void)value;
    return set_dump_format(options, FGPROF_DUMP_ADDRESSES);
}

static bool set_json(struct cli_options *options, const char *value)
{
    (void)value;
    return set_dump_format(options, FGPROF_DUMP_JSON);
}

static bool set_report_json(struct cli_options *options, const char *value)
{
    (void)value;
    options->format = FGPROF_REPORT_JSON;
    return true;
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

static bool set_listen(struct cli_options *options, const char *value)
{
    options->listen = value;
    return *value || complain("address", value, "give HOST:PORT, [IPV6]:PORT or unix:PATH");
}

static bool set_token_file(struct cli_options *options, const char *value)
{
    options->token_file = value;
    return *value || complain("token file", value, "give a file that holds the token");
}

static bool set_push(struct cli_options *options, const char *value)
{
    return push_target_parse(&options->push, value);
}

static bool set_push_every(struct cli_options *options, const char *value)
{
    return push_every_parse(&options->push, value);
}

static bool set_push_kinds(struct cli_options *options, const char *value)
{
    return push_kinds_parse(&options->push, value);
}

static bool set_tag(struct cli_options *options, const char *value)
{
    return push_tag_parse(&options->push, value);
}

static bool set_service(struct cli_options *options, const char *value)
{
    options->push.service = value;
    return *value || complain("service", value, "give its name");
}

static bool set_push_spool(struct cli_options *options, const char *value)
{
    options->push.spool = value;
    return *value || complain("spool", value, "give a directory");
}

static bool set_push_spool_size(struct cli_options *options, const char *value)
{
    return push_spool_bytes_parse(&options->push, value);
}

static bool set_push_token_file(struct cli_options *options, const char *value)
{
    options->push.token_file = value;
    return *value || complain("token file", value, "give a file that holds the token");
}

static bool set_push_user_file(struct cli_options *options, const char *value)
{
    options->push.user_file = value;
    return *value || complain("password file", value, "give a file that holds USER:PASSWORD");
}

static bool set_push_header_file(struct cli_options *options, const char *value)
{
    options->push.header_file = value;
    return *value || complain("header file", value, "give a file that holds NAME: VALUE");
}

static bool set_push_ca(struct cli_options *options, const char *value)
{
    options->push.ca_file = value;
    return *value || complain("certificates", value, "give a file of them in PEM");
}

static bool set_max_seconds(struct cli_options *options, const char *value)
{
    return number_parse(value, 1, SECONDS_MAX, &options->seconds_max) ||
           complain("number of seconds", value, "give a whole number, 1 to 86400");
}

static bool set_keep(struct cli_options *options, const char *value)
{
    return duration_parse(value, &options->keep_ns) ||
           complain("time to keep", value, "give a time such as 60s or 5m");
}

static bool set_keep_memory(struct cli_options *options, const char *value)
{
    uint64_t mib;
    bool ok = number_parse(value, 1, KEEP_MIB_MAX, &mib);
    options->keep_bytes = ok ? mib << 20 : 0;
    return ok || complain("amount of memory", value, "give a number of MiB, 1 to 1048576");
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

static bool set_cooldown(struct cli_options *options, const char *value)
{
    return duration_parse(value, &options->cooldown_ns) ||
           complain("cooldown", value, "give a time such as 60s or 5m");
}

static bool set_max_files(struct cli_options *options, const char *value)
{
    return number_parse(value, 1, FILES_MAX, &options->files_max) ||
           complain("number of files", value, "give a whole number, 1 to 1000000");
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
#define FLAG(member) offsetof(struct cli_options, member)

const struct cli_option option_table[] = {
    {"pid", 'p', "PID[,...]", RUNNING, OPTIONS_WHICH, set_pid, 0,
     "these processes; may be given more than once", true},
    {"pgrep", 0, "NAME", RUNNING, OPTIONS_WHICH, set_pgrep, 0,
     "all processes with a matching name, as in pgrep(1)", true},
    {"cgroup", 0, "PATH", RUNNING, OPTIONS_WHICH, set_cgroup, 0,
     "all processes in the control group, and descendants", false},
    {"unit", 0, "NAME", RUNNING, OPTIONS_WHICH, set_unit, 0,
     "the same, of a unit of systemd, such as redis.service", false},
    {"container", 0, "ID", RUNNING, OPTIONS_WHICH, set_container, 0,
     "the same, of a container: its id, or how that begins", false},
    {"children", 0, NULL, LOOKING, OPTIONS_WHICH, NULL, FLAG(has_children),
     "their descendants too, each as its own process", true},
    {"thread", 0, "REGEX", LOOKING, OPTIONS_WHICH, set_thread, 0,
     "only threads whose current name matches REGEX", true},
    {"tid", 0, "TID[,...]", RUNNING, OPTIONS_WHICH, set_tid, 0,
     "only these threads, and those chosen by --thread", false},
    {"no-idle", 0, NULL, WRITING, OPTIONS_WHICH, set_no_idle, 0, "leave out threads that never ran",
     true},
    {"idle", 0, NULL, WRITING, OPTIONS_WHICH, set_idle, 0, "keep them (default)", false},
    {"slow", 0, "KEY>TIME", WRITING, OPTIONS_WHICH, set_slow, 0,
     "only spans of a label that last longer than TIME", false},

    {"wait", 0, NULL, SERVING, OPTIONS_WHICH, NULL, FLAG(waits_for_processes),
     "wait for a process with the name, and for the next", true},

    {"duration", 'd', "TIME", SAMPLING & ~SERVING, OPTIONS_WHEN, set_duration, 0,
     "end after TIME: 30s, 1.5m, 2h, 500ms, or seconds", true},
    {"rate", 'F', "HZ", SAMPLING, OPTIONS_WHEN, set_rate, 0,
     "ticks per second, 1 to 1000 (default 99)", true},
    {"seed", 0, "N", SAMPLING, OPTIONS_WHEN, set_seed, 0, "repeat the random ticks of a recording",
     false},
    {"trace-ids", 0, NULL, SAMPLING, OPTIONS_WHEN, NULL, FLAG(has_trace_ids),
     "trace and span ids as labels", false},
    {"max-pause", 0, "PCT", SAMPLING, OPTIONS_WHEN, set_max_pause, 0,
     "limit pauses to PCT % of running time (default 2)", false},
    {"capture", 0, "WAY", LOOKING, OPTIONS_WHEN, set_capture, 0,
     "kernel, ptrace, record or auto (default)", false},
    {"keep", 0, "TIME", BIT(SERVE), OPTIONS_WHEN, set_keep, 0, "forget what is older than TIME",
     true},
    {"keep", 0, "TIME", BIT(RECORD), OPTIONS_WHEN, set_keep, 0,
     "how much of the past is kept (default 60s)", true},
    {"keep-memory", 0, "N", SERVING | WRITING, OPTIONS_WHEN, set_keep_memory, 0,
     "keep at most N MiB (256; of serve and record 64)", false},

    {"threads", 't', "[=tid]", RENDERING, OPTIONS_SHOWN, set_threads, 0,
     "folded: thread name as root frame; =tid: and its id", true},
    {"processes", 0, NULL, RENDERING, OPTIONS_SHOWN, NULL, FLAG(shows_processes),
     "folded: process as root frame", false},
    {"label", 0, "KEY", RENDERING, OPTIONS_SHOWN, add_label, 0,
     "folded: the label's value as root frame", false},
    {"lines", 0, NULL, RENDERING, OPTIONS_SHOWN, NULL, FLAG(shows_lines),
     "folded: file and line in each frame", false},
    {"state", 0, NULL, RENDERING, OPTIONS_SHOWN, NULL, FLAG(shows_state),
     "folded: the thread's state as leaf frame", false},
    {"elapsed", 0, NULL, RENDERING, OPTIONS_SHOWN, NULL, FLAG(shows_elapsed),
     "folded, html: elapsed time, which adds up to seconds", false},
    {"kind", 0, "KIND", RENDERING & ~BIT(DIFF), OPTIONS_SHOWN, set_kind, 0,
     "wall, cpu, block, mutex, blame, or objects:\n"
     "heap, allocs, growth, threadcreate, a program's own",
     true},
    {"blame", 0, NULL, RENDERING & ~BIT(DIFF), OPTIONS_SHOWN, set_blame, 0,
     "the same as --kind blame", false},
    {"critical", 0, "THREAD", WRITING | BIT(CONVERT) | BIT(REPORT), OPTIONS_SHOWN, set_critical, 0,
     "what THREAD's time depended on, through the threads\n"
     "that ended its waits; KEY=VALUE: that of a label",
     false},
    {"heap-rate", 0, "BYTES", WRITING | BIT(SERVE), OPTIONS_SHOWN, set_heap_rate, 0,
     "sample one allocation per BYTES (default 512K)", false},
    {"heap-mmap", 0, NULL, WRITING | BIT(SERVE), OPTIONS_SHOWN, NULL, FLAG(has_mappings),
     "count mmap(2) as an allocation too", false},
    {"on-cpu", 0, NULL, RENDERING, OPTIONS_SHOWN, set_on_cpu, 0, "only samples on a CPU", true},
    {"off-cpu", 0, NULL, RENDERING, OPTIONS_SHOWN, set_off_cpu, 0, "only samples off the CPU",
     true},
    {"kernel", 0, NULL, LOOKING, OPTIONS_SHOWN, NULL, FLAG(has_kernel_stacks),
     "kernel functions too", true},
    {"native", 0, NULL, LOOKING, OPTIONS_SHOWN, NULL, FLAG(has_native_frames),
     "the Python interpreter's own functions too", false},
    {"no-goroutines", 0, NULL, LOOKING, OPTIONS_SHOWN, NULL, FLAG(has_no_goroutines),
     "the threads of Go programs, not their goroutines", false},
    {"tasks", 0, NULL, LOOKING & ~BIT(DUMP), OPTIONS_SHOWN, NULL, FLAG(has_tasks),
     "the suspended tasks of Python's asyncio too", false},
    {"full-names", 0, NULL, LOOKING, OPTIONS_SHOWN, set_full_names, 0,
     "C++ names with parameters and template arguments", false},
    {"no-demangle", 0, NULL, LOOKING, OPTIONS_SHOWN, set_no_demangle, 0,
     "names as in the symbol table", false},
    {"debuginfod", 0, "[=TIME]", WRITING, OPTIONS_SHOWN, set_debuginfod, 0,
     "fetch debug information, for at most TIME (60s)", false},
    {"max-depth", 0, "N", LOOKING, OPTIONS_SHOWN, set_max_depth, 0,
     "keep the N frames nearest the leaf (default 1024)", false},
    {"normalize", 'n', NULL, BIT(DIFF), OPTIONS_SHOWN, NULL, FLAG(is_normalized),
     "scale BEFORE to as many samples as AFTER, as is done\n"
     "if their durations differ",
     true},
    {"no-normalize", 0, NULL, BIT(DIFF), OPTIONS_SHOWN, NULL, FLAG(is_not_normalized),
     "leave the counts as they are", true},
    {"group", 'g', NULL, BIT(DUMP), OPTIONS_SHOWN, set_group, 0,
     "group threads with equal stacks, most threads first", true},
    {"addresses", 0, NULL, BIT(DUMP), OPTIONS_SHOWN, set_addresses, 0,
     "show the addresses of frames and locks", true},

    {"listen", 0, "ADDRESS", BIT(SERVE), OPTIONS_OUTPUT, set_listen, 0,
     "HOST:PORT (default 127.0.0.1:6060) or unix:PATH", true},
    {"token-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, set_token_file, 0,
     "requests must send the token in FILE", true},
    {"allow-local-users", 0, NULL, BIT(SERVE), OPTIONS_OUTPUT, NULL, FLAG(allows_local_users),
     "answer all users of this machine", true},
    {"allow-remote", 0, NULL, BIT(SERVE), OPTIONS_OUTPUT, NULL, FLAG(allows_remote),
     "listen where other machines can reach it", true},
    {"max-seconds", 0, "N", BIT(SERVE), OPTIONS_OUTPUT, set_max_seconds, 0,
     "refuse profiles of more than N seconds (default 300)", false},
    {"output", 'o', "DIR", BIT(RECORD), OPTIONS_OUTPUT, set_directory, 0,
     "write files to this directory", true},
    {"output", 'o', "DIR", BIT(SERVE), OPTIONS_OUTPUT, set_directory, 0,
     "also write files to this directory, as record does", true},
    {"format", 'f', "FORMAT", BIT(RECORD), OPTIONS_OUTPUT, set_format, 0,
     "format of the files (default raw)", false},
    {"trigger", 0, "WHEN", SERVING, OPTIONS_OUTPUT, set_trigger, 0,
     "write a file when this holds: fgprof-c-record(1)", true},
    {"after", 0, "TIME", SERVING, OPTIONS_OUTPUT, set_after, 0,
     "time from a trigger to its file, so that the end of\n"
     "what it saw is in it (default 2s)",
     false},
    {"cooldown", 0, "TIME", SERVING, OPTIONS_OUTPUT, set_cooldown, 0,
     "at most one triggered file per TIME (60s)", false},
    {"max-files", 0, "N", SERVING, OPTIONS_OUTPUT, set_max_files, 0,
     "keep only the newest N files (20)", false},
    {"push", 0, "API=URL", BIT(SERVE), OPTIONS_OUTPUT, set_push, 0,
     "send profiles to pyroscope=URL or otlp=URL", true},
    {"push-every", 0, "TIME", BIT(SERVE), OPTIONS_OUTPUT, set_push_every, 0,
     "push interval (default 10s)", false},
    {"push-kinds", 0, "LIST", BIT(SERVE), OPTIONS_OUTPUT, set_push_kinds, 0,
     "what to push, such as wall,cpu,off_cpu", false},
    {"tag", 0, "KEY=VALUE", BIT(SERVE), OPTIONS_OUTPUT, set_tag, 0, "a label of what is pushed",
     false},
    {"service", 0, "NAME", BIT(SERVE), OPTIONS_OUTPUT, set_service, 0,
     "the service's name (default: the process's)", false},
    {"push-spool", 0, "DIR", BIT(SERVE), OPTIONS_OUTPUT, set_push_spool, 0,
     "where unsent profiles wait", false},
    {"push-spool-size", 0, "BYTES", BIT(SERVE), OPTIONS_OUTPUT, set_push_spool_size, 0,
     "limit of what waits there (default 64M)", false},
    {"push-ca", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, set_push_ca, 0,
     "certificates to trust, in PEM", false},
    {"push-token-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, set_push_token_file, 0,
     "the token to push with", false},
    {"push-user-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, set_push_user_file, 0,
     "USER:PASSWORD to push with", false},
    {"push-header-file", 0, "FILE", BIT(SERVE), OPTIONS_OUTPUT, set_push_header_file, 0,
     "NAME: VALUE to push with", false},
    {"json", 0, NULL, BIT(DUMP), OPTIONS_OUTPUT, set_json, 0, "write JSON", true},
    {"json", 0, NULL, BIT(REPORT), OPTIONS_OUTPUT, set_report_json, 0, "write JSON", true},
    {"format", 'f', "FORMAT", WRITING | BIT(CONVERT), OPTIONS_OUTPUT, set_format, 0,
     "default: by FILE's ending, or folded:", true},
    {"format", 'f', "FORMAT", BIT(DIFF), OPTIONS_OUTPUT, set_difference_format, 0,
     "folded (default) or html (default for FILE.html)", true},
    {"output", 'o', "FILE", RENDERING | BIT(DUMP) | BIT(REPORT), OPTIONS_OUTPUT, set_output, 0,
     "write to FILE; - is stdout", true},
    {"quiet", 'q', NULL, WRITING, OPTIONS_OUTPUT, NULL, FLAG(is_quiet), "no progress, no summary",
     true},
};
const size_t option_count = sizeof option_table / sizeof *option_table;
_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX,
               "the parser's tables are too small");
