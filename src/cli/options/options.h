/* The parsed command line. */
#ifndef FGPROF_CLI_OPTIONS_OPTIONS_H
#define FGPROF_CLI_OPTIONS_OPTIONS_H

#include "fgprof.h"
#include "cli/cgroup.h"
#include "cli/options/push.h"

#include <stdbool.h>
#include <stddef.h>

enum cli_command {
    COMMAND_ATTACH,
    COMMAND_RUN,
    COMMAND_TOP,
    COMMAND_SERVE,
    COMMAND_RECORD,
    COMMAND_DUMP,
    COMMAND_CONVERT,
    COMMAND_DIFF,
    COMMAND_REPORT,
    COMMAND_COUNT
};

#define ROOT_LABELS_MAX 16

/* The file of --verbose, in the current directory. */
#define BPF_LOG_NAME "fgprof-bpf.log"

/* How far back profiles reach at least, without --keep. */
#define KEEP_DEFAULT_NS 60000000000u

struct trigger;

/* Each command uses some of these: see table.c. */
struct cli_options {
    enum cli_command command;
    const char *command_name;
    pid_t *pids;
    size_t pid_count;
    const char *cgroup; /* also all processes in it, and their descendants; NULL: not given */
    enum cgroup_by cgroup_by;
    const char *pgrep; /* also processes with a matching name; NULL: not given */
    char **targets;    /* words that name processes: cli/select_pids.h adds these to `pids` */
    size_t target_count;
    bool has_children;
    const char *thread_regex; /* NULL: threads of any name */
    pid_t *tids;
    size_t tid_count;
    bool drops_idle;

    uint64_t duration_ns; /* 0: no limit */
    uint64_t rate_hz;
    bool has_seed;
    uint64_t seed;
    double max_pause_percent;
    enum fgprof_capture capture;

    const char *labels[ROOT_LABELS_MAX]; /* keys whose values are root frames */
    size_t label_count;
    bool has_trace_ids;
    char *slow_key; /* owned; NULL: not given */
    uint64_t slow_ns;
    bool shows_processes;
    bool shows_threads;
    enum fgprof_threads threads;
    bool shows_lines;
    bool shows_state;
    bool shows_elapsed;
    enum fgprof_kept kept;
    enum fgprof_kind kind;
    bool has_kind;        /* --kind was given; else it is that of the recording */
    const char *critical; /* the thread or label whose critical path is shown; NULL: not given */
    const char *custom;   /* of FGPROF_KIND_CUSTOM: which of the program's own */
    uint64_t heap_rate;   /* mean bytes between two allocations that are recorded */
    bool has_mappings;    /* memory that programs map themselves is an allocation, too */
    enum fgprof_names names;
    bool has_kernel_stacks;
    bool has_native_frames;
    bool has_no_goroutines;
    bool has_tasks;
    uint64_t debuginfod_limit_ns; /* 0: no server is asked */
    uint64_t max_depth;
    bool is_normalized, is_not_normalized; /* neither: if the durations differ */

    enum fgprof_dump_format dump_format;
    enum fgprof_format format;
    bool has_format;    /* -f was given; else the output's name decides */
    const char *output; /* "-": standard output, or no directory */
    bool has_output;    /* -o was given */
    bool writes_page;   /* to a file that is named after what was recorded, in this directory */
    bool is_quiet;
    bool is_verbose; /* the log of refused BPF programs is written to a file */

    const char *listen; /* "HOST:PORT", "unix:PATH", or "none" */
    bool allows_remote;
    bool allows_local_users;  /* all of them, not only our own and root */
    const char *token_file;   /* of what requests must send; NULL: none */
    bool waits_for_processes; /* of the name that --pgrep gives */
    uint64_t seconds_max;     /* of a profile that is asked for */
    uint64_t keep_ns;         /* how much of the recording is kept; 0: all */
    uint64_t keep_mib;        /* and in how much memory */
    struct trigger *triggers; /* when that is written to a file in the directory `output`, */
    size_t trigger_count;
    uint64_t after_ns;    /* this long after it, */
    bool has_after;       /* --after was given */
    uint64_t cooldown_ns; /* at the earliest this long after the last one */
    uint64_t files_max;   /* of which this many are kept */
    struct push_options push;

    char **command_argv; /* the command that `run` starts */
    char **inputs;       /* the recordings of `convert`, `diff` and `report` */
    char *command_line;  /* the whole command line, as typed in a shell */
};

enum parse_result { PARSE_OK, PARSE_HELP, PARSE_HELP_ALL, PARSE_WRONG, PARSE_NO_MEMORY };

/* parse.c: parses `argv`, whose first word is the command's name. Prints errors on stderr. */
enum parse_result options_parse(int argc, char **argv, enum cli_command command,
                                struct cli_options *ret_options);

/* What --kind calls a kind, and messages a profile of it. */
#define KINDS "wall, cpu, block, mutex, blame, heap, allocs, growth or threadcreate"
#define KIND_NAMES (FGPROF_KIND_THREADCREATE + 1)
extern const char *const kind_names[KIND_NAMES];

/* What --kind has said. */
static inline const char *options_kind_name(const struct cli_options *options)
{
    return options->kind == FGPROF_KIND_CUSTOM ? options->custom : kind_names[options->kind];
}

void options_free(struct cli_options *options);

/* Whether objects are to be recorded, or shown, and not time. */
static inline bool options_are_of_objects(const struct cli_options *options)
{
    return options->kind >= FGPROF_KIND_HEAP;
}

/* Makes the library's options from these. NULL if memory is short. */
fgprof_options *options_for_library(const struct cli_options *options);

/* Sets how `profile` is written, as in the options, and by which command. Returns 0 or a negative
 * errno: -EINVAL if it can't be of the requested kind, or the options select time and it has none.
 */
int options_for_profile(const struct cli_options *options, fgprof_profile *profile);

#endif
