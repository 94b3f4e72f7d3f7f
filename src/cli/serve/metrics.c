/* Counters about the server itself, in Prometheus' text format 0.0.4
 * (prometheus.io/docs/instrumenting/exposition_formats). */
#include "cli/push/push.h"
#include "cli/serve/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void put(int fd, const char *name, const char *type, const char *help, double value)
{
    dprintf(fd, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

static double cpu_s(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Of the recorder that samples now. */
static void put_kept(struct session *session, int fd)
{
    const char *name;
    uint64_t bytes;
    fgprof_recorder *recorder;
    if (session_take(session, &recorder))
        return;
    dprintf(fd, "# HELP fgprof_kept_bytes Memory that is kept of what was sampled, by kind.\n"
                "# TYPE fgprof_kept_bytes gauge\n");
    for (size_t i = 0; (name = fgprof_recorder_kept_memory(recorder, i, &bytes)); i++)
        dprintf(fd, "fgprof_kept_bytes{kind=\"%s\"} %" PRIu64 "\n", name, bytes);
    session_give_back(session);
}

void answer_metrics(const struct request *request, struct answer *answer)
{
    struct session *session = request->session;
    int fd = answer->body_fd;
    pthread_mutex_lock(&session->lock);
    bool is_up = session->recorder;
    struct fgprof_progress now = session->progress, before = session->before;
    unsigned users = session->users;
    pthread_mutex_unlock(&session->lock);
    if (session->pusher && users)
        users--; /* the one that pushes, all the time */
    put(fd, "fgprof_up", "gauge", "Whether processes are sampled now.", is_up);
    put(fd, "fgprof_threads", "gauge", "Threads alive at the last tick.", (double)now.threads);
    put(fd, "fgprof_stacks", "gauge", "Distinct stacks kept.", (double)now.stacks);
    put_kept(session, fd);
    put(fd, "fgprof_requests_in_progress", "gauge", "Profiles that are being made.", users);
    put(fd, "fgprof_ticks_total", "counter", "Ticks taken.", (double)(now.ticks + before.ticks));
    put(fd, "fgprof_ticks_late_total", "counter", "Ticks not taken on time.",
        (double)(now.ticks_late + before.ticks_late));
    put(fd, "fgprof_samples_total", "counter", "Samples taken, in ticks.",
        (double)(now.samples + before.samples));
    put(fd, "fgprof_samples_lost_total", "counter",
        "Samples of running threads that the kernel dropped or that came too early.",
        (double)(now.samples_lost + before.samples_lost));
    put(fd, "fgprof_samples_not_kept_total", "counter",
        "Samples without a stack, as it did not fit in --keep-memory.",
        (double)(now.samples_not_kept + before.samples_not_kept));
    put(fd, "fgprof_processes_joined_total", "counter",
        "Processes that have ended and are shown together, by name.",
        (double)(now.processes_joined + before.processes_joined));
    put(fd, "fgprof_deadlocks_total", "counter", "Deadlocks found.",
        (double)(now.deadlocks + before.deadlocks));
    if (session->pusher)
        pusher_write_metrics(session->pusher, fd);
    put(fd, "process_cpu_seconds_total", "counter", "CPU time that the profiler has used.",
        cpu_s());
}
