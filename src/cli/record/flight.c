#include "cli/record/flight.h"
#include "base/clock.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS 10000000000u
#define STEP_MS 20 /* between looks, if the kernel does not tell the end (pidfd_open(2)) */

extern char **environ;

/* A process group of its own, with no signal blocked or ignored: we block and ignore some. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    sigaddset(&ignored, SIGTSTP);
    int err = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                       POSIX_SPAWN_SETSIGDEF);
    if (!err)
        err = posix_spawnattr_setsigmask(attributes, &none);
    return err ? err : posix_spawnattr_setsigdefault(attributes, &ignored);
}

static int start_with(const char *command, posix_spawnattr_t *attributes,
                      posix_spawn_file_actions_t *files, pid_t *ret_pid)
{
    const char *words[] = {"sh", "-c", command, NULL};
    int err = set_attributes(attributes);
    if (!err)
        err = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!err)
        err = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    return err ? err
               : posix_spawn(ret_pid, "/bin/sh", files, attributes, (char *const *)words, environ);
}

static int start(const char *command, pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    int err = posix_spawnattr_init(&attributes);
    if (err)
        return err;
    err = posix_spawn_file_actions_init(&files);
    if (!err) {
        err = start_with(command, &attributes, &files, ret_pid);
        posix_spawn_file_actions_destroy(&files);
    }
    posix_spawnattr_destroy(&attributes);
    return err;
}

/* Waits for its end. Returns false if it has been killed. */
static bool wait_for_end(pid_t pid, int pidfd, int stop_fd, int *ret_status)
{
    struct pollfd waits[] = {{.fd = stop_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    for (uint64_t end_ns = monotonic_ns() + LIMIT_NS, now; (now = monotonic_ns()) < end_ns;) {
        int left_ms = (int)((end_ns - now) / 1000000) + 1;
        if (pidfd < 0 && left_ms > STEP_MS)
            left_ms = STEP_MS;
        if (poll(waits, 2, left_ms) < 0 && errno != EINTR)
            break;
        if (waits[0].revents)
            break;
        if (waitpid(pid, ret_status, WNOHANG) == pid)
            return true;
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

/* Runs `sh -c command` with empty input and its output discarded, and returns whether it exits with
 * 0. It is killed, with all processes of its group, after 10 seconds or as soon as `stop_fd` is
 * readable. */
static bool shell_succeeds(const char *command, int stop_fd)
{
    pid_t pid;
    int status;
    if (start(command, &pid))
        return false;
    int pidfd = pidfd_open(pid, 0);
    bool has_ended = wait_for_end(pid, pidfd, stop_fd, &status);
    if (pidfd >= 0)
        close(pidfd);
    return has_ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#define POLL_MS 1000
/* How much later than it happens a thread's time may be known. */
#define SLACK_NS 500000000u
/* The least that rates are made of. */
#define RATES_LEAST_NS 500000000u
/* If a file can't be written: when it is tried again. */
#define RETRY_NS 5000000000u

/* Waits this long, or until it must stop. Returns whether it must. */
static bool must_stop(const struct flight *flight, int wait_ms)
{
    struct pollfd wait = {.fd = flight->stop_fd, .events = POLLIN};
    return poll(&wait, 1, wait_ms) > 0;
}

/* After which a file is named. */
struct written_process {
    pid_t pid;
    char name[SESSION_NAME_BYTES];
};

static struct written_process sampled_process(struct session *session)
{
    struct written_process process = {0};
    pthread_mutex_lock(&session->lock);
    if (session->targets.count)
        process.pid = session->targets.pids[0];
    memcpy(process.name, session->name, sizeof process.name);
    pthread_mutex_unlock(&session->lock);
    return process;
}

/* Returns 0, -EIO if it has said why it can't, or another negative errno. */
static int write_file(struct flight *flight, fgprof_profile *profile,
                      const struct written_process *process, const char *reason)
{
    int err = fgprof_profile_set_reason(profile, reason);
    if (!err)
        err = options_for_profile(flight->options, profile);
    if (err)
        return err;
    pthread_mutex_lock(&flight->writing);
    bool ok = files_write(&flight->files, profile, process->name, process->pid);
    pthread_mutex_unlock(&flight->writing);
    return ok ? 0 : -EIO;
}

/* Writes the kept samples. Returns as write_file. */
static int write_kept(struct flight *flight, const char *reason)
{
    fgprof_recorder *recorder;
    fgprof_profile *profile;
    int err = session_take(flight->session, &recorder);
    if (err)
        return err;
    err = fgprof_recorder_profile_last(recorder, session_keep_ns(flight->session), &profile);
    struct written_process process = sampled_process(flight->session);
    /* Given back first: the processes' end waits for it, and the disk may be slow. */
    session_give_back(flight->session);
    if (err)
        return err;
    err = write_file(flight, profile, &process, reason);
    fgprof_profile_free(profile);
    return err;
}

/* Reports the error of write_kept. */
static void complain_of_kept(int err)
{
    if (err && err != -EIO)
        say("no file was written: %s",
            err == -ESRCH ? "no process is sampled now" : strerror(-err));
}

/* What conditions need to be judged, by their kinds. */
#define OF_PROFILE (1u << CONDITION_SPAN | 1u << CONDITION_DEADLOCK)
#define OF_RATES (1u << CONDITION_RUNNABLE | 1u << CONDITION_CPU_ABOVE | 1u << CONDITION_CPU_BELOW)

/* The longest time of a thread that must be seen. */
static uint64_t longest_ns(const struct flight *flight)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < flight->options->trigger_count; i++) {
        uint64_t needed = trigger_needs_ns(&flight->options->triggers[i]);
        longest = needed > longest ? needed : longest;
    }
    return longest;
}

/* Of the time since the last poll. */
static void find_rates(struct flight *flight, fgprof_recorder *recorder)
{
    fgprof_profile *profile;
    struct fgprof_summary summary;
    bool is_first = !flight->polled;
    flight->rates = (struct evidence){0};
    if (fgprof_recorder_profile_next(recorder, &flight->polled, &profile))
        return;
    fgprof_profile_summary(profile, &summary, sizeof summary);
    fgprof_profile_free(profile);
    /* The first one is of all that there is. */
    if (is_first || summary.elapsed_ns < RATES_LEAST_NS)
        return;
    double elapsed_ns = (double)summary.elapsed_ns, running_ns = (double)summary.running_ns,
           wanted_ns = running_ns + (double)summary.runnable_ns;
    flight->rates = (struct evidence){
        .has_rates = true,
        .cpu_percent = 100 * running_ns / elapsed_ns,
        .wanted_percent = 100 * wanted_ns / elapsed_ns,
        .runnable_percent = wanted_ns > 0 ? 100 * (double)summary.runnable_ns / wanted_ns : 0,
    };
}

static bool ask_shell(const char *command, void *context)
{
    return shell_succeeds(command, ((struct flight *)context)->command_stop_fd);
}

/* Judges all triggers. *ret_reason says why those that fire do; NULL: none does, or there is no
 * memory. The caller frees it. */
static void judge_all(struct flight *flight, const struct evidence *evidence, bool *fires,
                      char **ret_reason)
{
    size_t bytes, fired = 0;
    FILE *all = open_memstream(ret_reason, &bytes);
    for (size_t i = 0; all && i < flight->options->trigger_count; i++) {
        char *text = NULL;
        size_t text_bytes;
        FILE *one = open_memstream(&text, &text_bytes);
        fires[i] = one && judge_holds(&flight->judges[i], evidence, one);
        if (one && !fclose(one) && fires[i])
            fprintf(all, "%s%s", fired++ ? "; also " : "", text);
        free(text);
    }
    if (all && fclose(all))
        fired = 0;
    if (!fired) {
        free(all ? *ret_reason : NULL);
        *ret_reason = NULL;
    }
}

/* The file that a trigger has asked for was written, or not. Under `judging`. */
static void note_written(struct flight *flight, int err)
{
    uint64_t cooldown_ns = flight->options->cooldown_ns, now_ns = monotonic_ns();
    if (err) {
        /* There is no recorder because sampling is about to end: on_end writes the file. */
        if (err != -ESRCH)
            complain_of_kept(err);
        flight->due_ns = now_ns + (cooldown_ns < RETRY_NS ? cooldown_ns : RETRY_NS);
        return;
    }
    flight->not_before_ns = now_ns + cooldown_ns;
    free(flight->pending);
    flight->pending = NULL;
}

/* Notes that a file must be written, if a trigger fires. The caller holds `judging`. */
static void judge(struct flight *flight, struct evidence *evidence)
{
    size_t count = flight->options->trigger_count;
    bool may_fire = !flight->pending && monotonic_ns() >= flight->not_before_ns;
    bool *fires = calloc(count + 1, sizeof *fires);
    char *reason = NULL;
    evidence->command = may_fire ? ask_shell : NULL;
    evidence->context = flight;
    if (fires)
        judge_all(flight, evidence, fires, &reason);
    if (reason && may_fire) {
        flight->pending = reason;
        flight->due_ns = monotonic_ns() + flight->options->after_ns;
        reason = NULL;
        for (size_t i = 0; i < count; i++) {
            if (fires[i])
                judge_tell(&flight->judges[i]);
        }
    }
    free(reason);
    free(fires);
}

/* Another recorder than the last one has nothing in common with it. */
static void note_recorder(struct flight *flight, unsigned long number, uint64_t at_ns)
{
    if (number == flight->number)
        return;
    for (size_t i = 0; i < flight->options->trigger_count; i++)
        judge_forget(&flight->judges[i]);
    flight->number = number;
    flight->has_ended = false;
    flight->polled_ns = at_ns - NS_PER_S;
    flight->rates = (struct evidence){0};
    fgprof_moment_free(flight->polled);
    flight->polled = NULL;
    free(flight->pending);
    flight->pending = NULL;
}

/* The part of the time that ends now and that the poll before has not seen, a bit more. */
static uint64_t unseen_ns(const struct flight *flight, uint64_t at_ns)
{
    return at_ns - flight->polled_ns + SLACK_NS / 5;
}

/* A profile of the time since the last poll, and as far back as the triggers need. If making it
 * takes long, for example because others have profiles made, it is made again: the names are known
 * by then. */
static fgprof_profile *recent_profile(const struct flight *flight, fgprof_recorder *recorder)
{
    fgprof_profile *profile = NULL;
    uint64_t late_ns = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t begin_ns = monotonic_ns();
        fgprof_profile_free(profile);
        if (fgprof_recorder_profile_last(
                recorder, longest_ns(flight) + unseen_ns(flight, begin_ns) + SLACK_NS + late_ns,
                &profile))
            return NULL;
        late_ns = monotonic_ns() - begin_ns;
        if (late_ns < SLACK_NS)
            break;
    }
    return profile;
}

/* Under `judging`. */
static void poll_recorder(struct flight *flight, fgprof_recorder *recorder, uint64_t at_ns)
{
    const struct cli_options *options = flight->options;
    bool needs_profile = triggers_have(options->triggers, options->trigger_count, OF_PROFILE);
    fgprof_profile *profile = needs_profile ? recent_profile(flight, recorder) : NULL;
    uint64_t since_ns = unseen_ns(flight, monotonic_ns());
    if (triggers_have(options->triggers, options->trigger_count, OF_RATES))
        find_rates(flight, recorder);
    if (profile || !needs_profile)
        flight->polled_ns = at_ns;
    /* Given back first: the processes' end waits for it, and a command may take long. */
    session_give_back(flight->session);
    struct evidence evidence = flight->rates;
    evidence.profile = profile;
    evidence.since_ns = since_ns;
    flight->command_stop_fd = flight->session->ended_fd;
    judge(flight, &evidence);
    fgprof_profile_free(profile);
}

/* Notes which recorder it is now. Returns the present moment. Under `judging`. */
static uint64_t note_session(struct flight *flight)
{
    struct session *session = flight->session;
    uint64_t at_ns = monotonic_ns();
    pthread_mutex_lock(&session->lock);
    unsigned long number = session->number;
    pthread_mutex_unlock(&session->lock);
    note_recorder(flight, number, at_ns);
    return at_ns;
}

/* Nothing can be written while nothing is sampled. */
static void postpone(struct flight *flight)
{
    pthread_mutex_lock(&flight->judging);
    flight->due_ns = monotonic_ns() + RETRY_NS;
    pthread_mutex_unlock(&flight->judging);
}

static void poll_once(struct flight *flight)
{
    fgprof_recorder *recorder;
    struct session *session = flight->session;
    if (session_take(session, &recorder)) {
        postpone(flight);
        return;
    }
    pthread_mutex_lock(&flight->judging);
    uint64_t at_ns = note_session(flight);
    if (flight->has_ended)
        session_give_back(session);
    else
        poll_recorder(flight, recorder, at_ns);
    if (flight->pending && monotonic_ns() >= flight->due_ns)
        note_written(flight, write_kept(flight, flight->pending));
    pthread_mutex_unlock(&flight->judging);
}

/* Until the next poll, or until a file is due. */
static int wait_ms(struct flight *flight)
{
    pthread_mutex_lock(&flight->judging);
    uint64_t now_ns = monotonic_ns();
    uint64_t due_ms = !flight->pending           ? POLL_MS
                      : flight->due_ns <= now_ns ? 1
                                                 : (flight->due_ns - now_ns) / 1000000 + 1;
    pthread_mutex_unlock(&flight->judging);
    return due_ms < POLL_MS ? (int)due_ms : POLL_MS;
}

static void *poll_all(void *context)
{
    struct flight *flight = context;
    pthread_setname_np(pthread_self(), "fgprof-triggers");
    while (!must_stop(flight, wait_ms(flight)))
        poll_once(flight);
    return NULL;
}

/* Sampling has ended, so stop waiting. If the processes have ended, events since the last poll are
 * judged too. */
static void on_end(struct session *session, fgprof_profile *profile, bool is_stopped, void *context)
{
    struct flight *flight = context;
    struct written_process process = sampled_process(session);
    pthread_mutex_lock(&flight->judging);
    uint64_t at_ns = note_session(flight);
    struct evidence evidence = flight->rates;
    evidence.profile = profile;
    evidence.since_ns = unseen_ns(flight, at_ns);
    evidence.has_ended = true;
    flight->command_stop_fd = flight->stop_fd;
    if (!is_stopped)
        judge(flight, &evidence);
    if (flight->pending)
        note_written(flight, write_file(flight, profile, &process, flight->pending));
    flight->has_ended = true;
    pthread_mutex_unlock(&flight->judging);
}

static void *wait_for_signals(void *context)
{
    struct flight *flight = context;
    sigset_t signals;
    int number;
    pthread_setname_np(pthread_self(), "fgprof-sigusr1");
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    while (!sigwait(&signals, &number) && !must_stop(flight, 0)) {
        complain_of_kept(write_kept(flight, "SIGUSR1"));
    }
    return NULL;
}

static int start_threads(struct flight *flight)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int err = pthread_create(&flight->waiting, NULL, wait_for_signals, flight);
    if (err)
        return -err;
    err = pthread_create(&flight->polling, NULL, poll_all, flight);
    if (!err)
        return 0;
    eventfd_write(flight->stop_fd, 1);
    pthread_kill(flight->waiting, SIGUSR1);
    pthread_join(flight->waiting, NULL);
    return -err;
}

static void release(struct flight *flight)
{
    for (size_t i = 0; flight->judges && i < flight->options->trigger_count; i++)
        judge_free(&flight->judges[i]);
    free(flight->judges);
    free(flight->pending);
    fgprof_moment_free(flight->polled);
    pthread_mutex_destroy(&flight->judging);
    pthread_mutex_destroy(&flight->writing);
    if (flight->stop_fd >= 0)
        close(flight->stop_fd);
}

int flight_start(struct flight *flight, const struct cli_options *options, struct session *session)
{
    *flight = (struct flight){
        .options = options,
        .session = session,
        .stop_fd = eventfd(0, EFD_CLOEXEC),
        .files = {.directory = options->output,
                  .format = options->format,
                  .max = options->files_max},
        .judges = calloc(options->trigger_count + 1, sizeof *flight->judges),
    };
    int err = flight->stop_fd < 0 ? -errno : flight->judges ? 0 : -ENOMEM;
    pthread_mutex_init(&flight->judging, NULL);
    pthread_mutex_init(&flight->writing, NULL);
    for (size_t i = 0; i < options->trigger_count && !err; i++)
        err = judge_init(&flight->judges[i], &options->triggers[i]);
    session->ends = on_end;
    session->ends_context = flight;
    if (!err)
        err = start_threads(flight);
    if (err)
        release(flight);
    return err;
}

size_t flight_stop(struct flight *flight)
{
    eventfd_write(flight->stop_fd, 1);
    pthread_kill(flight->waiting, SIGUSR1);
    pthread_join(flight->waiting, NULL);
    pthread_join(flight->polling, NULL);
    size_t written = flight->files.written;
    release(flight);
    return written;
}
