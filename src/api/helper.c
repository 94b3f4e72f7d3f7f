/* The other side of fgprof_start: the helper process. */
#include "agent/helper.h"
#include "fgprof.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHANNEL_FD STDIN_FILENO

static void tell(int error)
{
    const struct helper_message message = {error};
    send(CHANNEL_FD, &message, sizeof message, MSG_NOSIGNAL);
}

static void *wait_for_end(void *context)
{
    char byte;
    while (recv(CHANNEL_FD, &byte, sizeof byte, 0) < 0 && errno == EINTR)
        ;
    fgprof_recorder_stop(context);
    return NULL;
}

/* Samples until the program asks for the end, or exits. */
static int sample(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    pthread_t thread;
    int err = -pthread_create(&thread, NULL, wait_for_end, recorder);
    if (err)
        return err;
    tell(0);
    err = fgprof_recorder_run(recorder, ret_profile);
    shutdown(CHANNEL_FD, SHUT_RD); /* the thread waits no longer */
    pthread_join(thread, NULL);
    return err;
}

/* The program's own values of this name, as they are now. */
static int read_values(fgprof_recorder *recorder, const char *name, fgprof_profile **ret_profile)
{
    fgprof_profile *of_time;
    int err = fgprof_recorder_run(recorder, &of_time);
    if (err)
        return err;
    fgprof_profile_free(of_time);
    return fgprof_recorder_objects(recorder, FGPROF_KIND_CUSTOM, name, ret_profile);
}

static int make_profile(pid_t pid, const char *values, const fgprof_options *options,
                        fgprof_profile **ret_profile)
{
    fgprof_recorder *recorder;
    int err = fgprof_recorder_new(options, &recorder);
    if (err)
        return err;
    err = fgprof_recorder_attach(recorder, pid);
    if (!err)
        err = values ? read_values(recorder, values, ret_profile) : sample(recorder, ret_profile);
    fgprof_recorder_free(recorder);
    return err;
}

/* The values that are there now need no time. */
static int set_for_values(fgprof_options *options)
{
    fgprof_options_set_duration_ns(options, 1);
    fgprof_options_set_time(options, false);
    return fgprof_options_add_objects(options, FGPROF_KIND_CUSTOM);
}

static int set_for_time(fgprof_options *options, enum fgprof_format format)
{
    bool has_timeline = format == FGPROF_HTML || format == FGPROF_SPEEDSCOPE ||
                        format == FGPROF_FIREFOX || format == FGPROF_RAW;
    bool needs_ids = has_timeline || format == FGPROF_REPORT || format == FGPROF_REPORT_JSON;
    fgprof_options_set_threads(options, needs_ids ? FGPROF_THREADS_BY_ID : FGPROF_THREADS_BY_NAME);
    return fgprof_options_set_timeline(options, has_timeline);
}

/* Leaves out the thread that starts and stops the profile. */
static int leave_out_ours(fgprof_profile *profile)
{
    int err = fgprof_profile_leave_out(profile, "fgprof_start");
    return err ? err : fgprof_profile_leave_out(profile, "fgprof_stop");
}

/* Writes the profile of these values, or if they are NULL, of time. */
static int record(pid_t pid, const char *values, enum fgprof_format format)
{
    fgprof_options *options;
    fgprof_profile *profile;
    int err = fgprof_options_new(&options);
    if (err)
        return err;
    err = values ? set_for_values(options) : set_for_time(options, format);
    if (!err)
        err = make_profile(pid, values, options, &profile);
    fgprof_options_free(options);
    if (err)
        return err;
    err = values ? 0 : leave_out_ours(profile);
    if (!err)
        err = fgprof_profile_write(profile, format, STDOUT_FILENO);
    fgprof_profile_free(profile);
    return err;
}

static int serve(int argc, char **argv, fgprof_answer_fn *answer)
{
    pid_t pid = (pid_t)atoi(argv[0]);
    if (argc == 3 && strcmp(argv[1], HELPER_RECORDS) == 0)
        return record(pid, NULL, (enum fgprof_format)atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], HELPER_ANSWERS) == 0)
        return answer(pid, argv[2], argv[3], STDOUT_FILENO);
    if (argc == 4 && strcmp(argv[1], HELPER_WRITES) == 0)
        return record(pid, argv[2], strcmp(argv[3], "text") == 0 ? FGPROF_TEXT : FGPROF_PPROF);
    return -EINVAL;
}

int fgprof_helper(int argc, char **argv, fgprof_answer_fn *answer)
{
    char byte;
    if (argc < 3)
        return -EINVAL;
    /* Ctrl-C at the terminal is for the program. */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    signal(SIGTERM, SIG_IGN); /* as service managers send it to all processes of a service */
    /* SIGCHLD is for the sampling thread alone. */
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, NULL);
    if (recv(CHANNEL_FD, &byte, sizeof byte, 0) != sizeof byte)
        return -ECONNRESET;
    bool is_same = strcmp(argv[1], fgprof_version()) == 0;
    int err = is_same ? serve(argc - 2, argv + 2, answer) : -EPROTONOSUPPORT;
    tell(err);
    return err;
}
