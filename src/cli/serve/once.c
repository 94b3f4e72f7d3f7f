/* One request to a program that profiles itself, which hands it over by fgprof_http_handle. */
#include "cli/commands.h"
#include "cli/options/options.h"
#include "cli/serve/request.h"
#include "base/sink.h"

#include <errno.h>
#include <microhttpd.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void unescape(char *text)
{
    for (char *plus = text; (plus = strchr(plus, '+'));)
        *plus = ' ';
    MHD_http_unescape(text);
}

/* Takes the text apart. */
static void parse_query(char *query, struct parameters *ret_parameters)
{
    char *word;
    ret_parameters->count = 0;
    while ((word = strsep(&query, "&")) && ret_parameters->count < PARAMETERS_MAX) {
        char *value = word, *name = strsep(&value, "=");
        unescape(name);
        if (value)
            unescape(value);
        ret_parameters->items[ret_parameters->count++] =
            (struct parameter){name, value ? value : ""};
    }
}

static int write_head(int fd, const struct answer *answer, off_t body_bytes)
{
    char head[1024];
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %lld\r\n"
                          "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
                          "%s%s%s%sConnection: close\r\n\r\n",
                          answer->status, MHD_get_reason_phrase_for(answer->status), answer->type,
                          (long long)body_bytes, answer->is_failure ? "X-Go-Pprof: 1\r\n" : "",
                          *answer->disposition ? "Content-Disposition: " : "", answer->disposition,
                          *answer->disposition ? "\r\n" : "");
    return write_all(fd, head, (size_t)length);
}

static int respond(int fd, const struct answer *answer)
{
    char bytes[65536];
    int err = write_head(fd, answer, lseek(answer->body_fd, 0, SEEK_END));
    for (off_t at = 0; !err;) {
        ssize_t got = pread(answer->body_fd, bytes, sizeof bytes, at);
        if (got <= 0)
            return got < 0 ? -errno : 0;
        err = write_all(fd, bytes, (size_t)got);
        at += got;
    }
    return err;
}

struct sampling {
    struct session session;
    sem_t begun; /* or could not */
};

static void on_begun(const struct session *session, void *context)
{
    struct sampling *sampling = context;
    (void)session;
    sem_post(&sampling->begun);
}

static void *run(void *context)
{
    struct sampling *sampling = context;
    session_run(&sampling->session);
    sem_post(&sampling->begun);
    return NULL;
}

static int answer(struct sampling *sampling, const char *path, const struct parameters *parameters,
                  int fd)
{
    struct answer answer = {.body_fd = memfd_create("answer", MFD_CLOEXEC)};
    pthread_t thread;
    const struct request request = {
        .session = &sampling->session,
        .path = path,
        .parameters = parameters,
        .client_fd = fd,
    };
    int err = answer.body_fd < 0 ? -errno : -pthread_create(&thread, NULL, run, sampling);
    if (!err) {
        while (sem_wait(&sampling->begun) && errno == EINTR)
            ;
        answer_request(&request, &answer);
        err = respond(fd, &answer);
        session_stop(&sampling->session);
        pthread_join(thread, NULL);
    }
    if (answer.body_fd >= 0)
        close(answer.body_fd);
    return err;
}

/* Says early and exactly why the program can't be sampled. */
static int check_permission(pid_t pid)
{
    fgprof_options *options;
    fgprof_recorder *recorder = NULL;
    int err = fgprof_options_new(&options);
    if (err)
        return err;
    err = fgprof_recorder_new(options, &recorder);
    if (!err)
        err = fgprof_recorder_attach(recorder, pid);
    fgprof_recorder_free(recorder);
    fgprof_options_free(options);
    return err;
}

static int sample_and_answer(const struct cli_options *options, const char *path, const char *query,
                             int fd)
{
    struct sampling sampling;
    struct parameters parameters;
    char *text = strdup(query);
    if (!text)
        return -ENOMEM;
    parse_query(text, &parameters);
    int err = session_init(&sampling.session, options, on_begun, &sampling);
    if (!err) {
        sampling.session.is_for_one = true;
        sem_init(&sampling.begun, 0, 0);
        err = answer(&sampling, path, &parameters, fd);
        sem_destroy(&sampling.begun);
        session_destroy(&sampling.session);
    }
    free(text);
    return err;
}

int serve_once(pid_t pid, const char *path, const char *query, int fd)
{
    char number[16];
    char *argv[] = {(char[]){"serve"}, (char[]){"-p"}, number, NULL};
    struct cli_options options;
    snprintf(number, sizeof number, "%d", (int)pid);
    int err = check_permission(pid);
    if (err)
        return err;
    if (options_parse(3, argv, COMMAND_SERVE, &options) != PARSE_OK)
        return -EINVAL;
    err = sample_and_answer(&options, path, query, fd);
    options_free(&options);
    return err;
}
