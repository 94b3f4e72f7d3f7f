#include "cli/run_recorder.h"
#include "cli/say.h"
#include "cli/progress.h"
#include "cli/output_file.h"
#include "cli/refusal.h"
#include "base/sink.h"
#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHY_BYTES 512
#define START_MS_MAX 50
#define PAGE_PLACEHOLDER "fgprof.html" /* until the process is known */
#define NAME_BYTES 256

void complain_of_objects(const struct cli_options *options, pid_t pid, int err)
{
    char why[WHY_BYTES];
    fgprof_explain_objects(pid, options->kind, err, why, sizeof why);
    say("%s", why);
}

bool check_objects(const struct cli_options *options, fgprof_recorder *recorder, pid_t pid)
{
    if (!options_are_of_objects(options))
        return true;
    int err = fgprof_recorder_check_objects(recorder, options->kind);
    /* A command that has just been started has the agent soon, if it can have one. */
    bool is_started = options->command == COMMAND_RUN && options->kind != FGPROF_KIND_GROWTH;
    for (unsigned ms = 0; is_started && err == -ENOENT && ms < START_MS_MAX; ms++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
        err = fgprof_recorder_check_objects(recorder, options->kind);
    }
    if (is_started && err == -ENOENT)
        return true;
    if (err)
        complain_of_objects(options, pid, err);
    return !err;
}

struct search {
    const char *name;
    bool is_found;
    FILE *others; /* their names, with commas before them */
};

static void look_at(const char *name, uint64_t values, void *context)
{
    struct search *search = context;
    (void)values;
    search->is_found |= strcmp(name, search->name) == 0;
    fprintf(search->others, ", %s", name);
}

static void complain_of_name(const struct cli_options *options, const char *others)
{
    if (*others)
        say("bad kind of profile '%s': give " KINDS ", or one that the program keeps itself: %s",
            options->custom, others + 2);
    else
        say("bad kind of profile '%s': give " KINDS
            "; the program keeps none itself (fgprof_profiles.h)",
            options->custom);
}

bool check_custom(const struct cli_options *options, const struct selected_pids *targets)
{
    char *others = NULL;
    size_t bytes;
    struct search search = {options->custom, false, open_memstream(&others, &bytes)};
    int err = search.others ? 0 : -ENOMEM;
    for (size_t i = 0; i < targets->count && options->custom && !err; i++) {
        err = fgprof_list_custom(targets->pids[i], look_at, &search);
        err = err == -ENOENT ? 0 : err;
        if (err)
            complain_of_objects(options, targets->pids[i], err);
    }
    if (search.others)
        fclose(search.others);
    else
        say("out of memory");
    if (!err && options->custom && !search.is_found)
        complain_of_name(options, others);
    free(others);
    return !err && (!options->custom || search.is_found);
}

fgprof_profile *run_recorder(const struct cli_options *options, fgprof_recorder *recorder)
{
    fgprof_profile *profile, *objects = NULL;
    int err = fgprof_recorder_run(recorder, &profile);
    if (err) {
        say("sampling failed: %s", strerror(-err));
        return NULL;
    }
    if (!options_are_of_objects(options))
        return profile;
    fgprof_profile_free(profile);
    err = fgprof_recorder_objects(recorder, options->kind, options->custom, &objects);
    if (!err)
        return objects;
    progress_clear(options);
    complain_of_objects(options, 0, err);
    return NULL;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A signal handler gets no argument of ours, so this must be a global. */
static fgprof_recorder *volatile current;

static void stop(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    /* Writing a large profile takes time. A second signal ends the program at once. */
    static volatile sig_atomic_t asked;
    if (asked++) {
        signal(number, SIG_DFL);
        raise(number);
    }
    fgprof_recorder_stop(current);
}

/* The signal that arrived before the command was started; 0: none. */
static volatile sig_atomic_t early_signal;
static volatile sig_atomic_t was_started;

bool command_goes_on(pid_t child)
{
    siginfo_t info = {0};
    return child > 0 && !waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) &&
           !info.si_pid;
}

static void forward(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    pid_t child = fgprof_recorder_child(current);
    /* Ctrl-C and Ctrl-\ at the terminal (SI_KERNEL) go to the whole foreground process group. A
     * hang-up goes only to the session's leader. */
    bool has_reached_it = (number == SIGINT || number == SIGQUIT) && info->si_code == SI_KERNEL;
    if (child <= 0 && !was_started)
        early_signal = number;
    else if (!command_goes_on(child))
        stop(number, info, context);
    else if (!has_reached_it)
        kill(child, number);
    errno = saved_errno;
}

/* nohup ignores SIGHUP, and shells make background jobs ignore SIGINT and SIGQUIT: ignored signals
 * stay ignored. */
static void handle_one(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

static void handle(fgprof_recorder *recorder, void (*handler)(int, siginfo_t *, void *))
{
    current = recorder;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        handle_one(signals[i], handler);
}

void interrupt_stops(fgprof_recorder *recorder)
{
    handle(recorder, stop);
    /* Ctrl-Z would also keep a thread stopped that is being sampled at that moment. */
    signal(SIGTSTP, SIG_IGN);
}

void interrupt_forwards(fgprof_recorder *recorder)
{
    handle(recorder, forward);
    handle_one(SIGQUIT, forward); /* Java prints its threads, and runs on */
}

void interrupt_forward_early(fgprof_recorder *recorder)
{
    pid_t child = fgprof_recorder_child(recorder);
    was_started = child > 0;
    if (early_signal && child > 0)
        kill(child, early_signal);
}

fgprof_recorder *new_recorder(const struct cli_options *options, const fgprof_options *library)
{
    fgprof_recorder *recorder;
    int err = fgprof_recorder_new(library, &recorder);
    if (!err)
        return recorder;
    if (options->has_kernel_stacks && (err == -EACCES || err == -EPERM))
        say("not permitted to read the kernel's stacks: run as root with CAP_SYS_ADMIN, or without "
            "--kernel");
    else if (options->has_kernel_stacks && err == -ENOENT)
        say("this kernel does not show its stacks (CONFIG_STACKTRACE): run without --kernel");
    else if (options->capture == FGPROF_CAPTURE_KERNEL && (err == -EACCES || err == -EPERM))
        say("the kernel does not permit sampling running threads (%s)%s; or run without "
            "--capture=kernel",
            strerror(-err), refusal_remedy(-err));
    else if (options->capture == FGPROF_CAPTURE_RECORD)
        say("the kernel may not record switches (%s)%s%s; or run without %s", strerror(-err),
            refusal_record_remedy(-err), refusal_log_advice(options, -err),
            options->critical ? "--critical" : "--capture=record");
    else
        say("can't start sampling: %s", strerror(-err));
    return NULL;
}

/* A page that is there already keeps its name. */
static void make_page_name(const char *process, pid_t pid, char page[NAME_BYTES])
{
    char date[32];
    time_t now = time(NULL);
    struct tm calendar;
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", localtime_r(&now, &calendar));
    snprintf(page, NAME_BYTES, "fgprof-%s-%d-%s.html", process, (int)pid, date);
    for (unsigned number = 2; !access(page, F_OK) && number < 100; number++)
        snprintf(page, NAME_BYTES, "fgprof-%s-%d-%s-%u.html", process, (int)pid, date, number);
}

bool name_page(const struct cli_options *options, pid_t pid, struct output_file *file)
{
    char process[64], page[NAME_BYTES];
    if (!options->writes_page)
        return true;
    if (options->command_argv)
        snprintf(process, sizeof process, "%s", basename(options->command_argv[0]));
    else
        fgprof_process_name(pid, process, sizeof process);
    text_make_plain(process, "._-"); /* for shells and file systems */
    make_page_name(process, pid, page);
    int err = output_file_rename(file, page);
    return !err || say("the page can't be named: %s", strerror(-err));
}

static int open_output(const struct cli_options *options, struct output_file *file)
{
    int err = options->writes_page ? output_file_create(file, PAGE_PLACEHOLDER)
                                   : output_file_open(file, options->output);
    if (err && options->writes_page)
        say("no page can be written here: %s: give -o FILE", strerror(-err));
    else if (err)
        say("%s can't be written: %s", options->output, strerror(-err));
    return err;
}

static void keep_bpf_log(const char *log, void *context)
{
    char **kept = context;
    *kept = strdup(log);
}

/* Prints the name of the file. */
static void write_bpf_log(const char *log)
{
    struct output_file file;
    int err = output_file_create(&file, BPF_LOG_NAME);
    if (!err)
        err = write_all(file.fd, log, strlen(log));
    if (!err)
        err = output_file_commit(&file);
    output_file_abandon(&file);
    if (err)
        say(BPF_LOG_NAME " can't be written here: %s", strerror(-err));
    else
        say("wrote " BPF_LOG_NAME ", which says why the kernel refused BPF programs");
}

int record_to_output(const struct cli_options *options, record_fn *record_to, int failed)
{
    int status = failed;
    struct output_file file = {.fd = -1};
    struct progress progress = {.options = options};
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(options);
    char *bpf_log = NULL;
    int err = open_output(options, &file);
    if (!err && !library) {
        say("out of memory");
    } else if (!err) {
        if (options->command != COMMAND_DUMP) /* a dump is one round */
            progress_enable(&progress, library);
        if (options->is_verbose)
            fgprof_options_set_bpf_log(library, keep_bpf_log, &bpf_log);
        if (progress_enable_fetch(options, library))
            recorder = new_recorder(options, library);
        progress.recorder = recorder;
        if (recorder)
            status = record_to(options, recorder, &file);
    }
    output_file_abandon(&file);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    if (bpf_log)
        write_bpf_log(bpf_log);
    free(bpf_log);
    return status;
}
