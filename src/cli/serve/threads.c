/* All threads now, where Go has its goroutines. */
#include "cli/serve/request.h"

#include <errno.h>
#include <string.h>

/* A recorder of its own: a dump is one round. */
static int take(const struct cli_options *options, const struct selected_pids *targets,
                fgprof_dump **ret_dump)
{
    fgprof_recorder *recorder;
    int err = session_second_recorder(targets, options_for_library(options), &recorder);
    if (err)
        return err;
    err = fgprof_recorder_dump(recorder, ret_dump);
    fgprof_recorder_free(recorder);
    return err;
}

/* The processes stay the session's until it is given back. */
static void write_dump(const struct request *request, struct answer *answer,
                       enum fgprof_dump_format format)
{
    struct session *session = request->session;
    fgprof_recorder *recorder;
    fgprof_dump *dump;
    if (!request_take(request, answer, &recorder))
        return;
    pthread_mutex_lock(&session->dumping);
    int err = take(session->options, &session->targets, &dump);
    pthread_mutex_unlock(&session->dumping);
    request_give_back(request);
    if (!err) {
        err = fgprof_dump_write(dump, format, answer->body_fd);
        fgprof_dump_free(dump);
    }
    if (err == -ESRCH)
        answer_failure(answer, 503, "no process is sampled now");
    else if (err)
        answer_failure(answer, 500, "the threads can't be shown: %s", strerror(-err));
}

void answer_threads(const struct request *request, struct answer *answer)
{
    static const enum fgprof_dump_format formats[] = {FGPROF_DUMP_PPROF, FGPROF_DUMP_GROUPED,
                                                      FGPROF_DUMP_TEXT};
    uint64_t debug;
    if (!request_number(request, answer, "debug", 0, 2, 0, &debug))
        return;
    if (request_parameter(request, "seconds")) {
        answer_failure(answer, 400, "this is of one moment: for seconds see /debug/fgprof");
        return;
    }
    answer->type = debug ? "text/plain; charset=utf-8" : "application/octet-stream";
    if (!debug)
        strcpy(answer->disposition, "attachment; filename=\"goroutine.pb.gz\"");
    if (request->method != METHOD_HEAD)
        write_dump(request, answer, formats[debug]);
}
