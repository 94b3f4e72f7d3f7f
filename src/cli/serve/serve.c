#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/serve/http.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void say_what(const struct session *session, void *context)
{
    const struct listener *listener = context;
    char what[SESSION_TEXT_BYTES];
    session_describe(session, what);
    fputs("fgprof-c: serving profiles of ", stderr);
    print_escaped(what);
    fprintf(stderr, " at %s\n", listener->shown);
}

/* Signals that nohup(1) or a shell has made ignored stay so. */
static void find_signals(sigset_t *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigemptyset(signals);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(signals, ending[i]);
    }
}

/* The first one ends the server with what is under way, the second at once. */
static void *wait_for_signals(void *context)
{
    struct session *session = context;
    sigset_t signals;
    int number;
    find_signals(&signals);
    sigwait(&signals, &number);
    session_stop(session);
    sigwait(&signals, &number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    raise(number);
    return NULL;
}

static int serve(struct session *session, const struct listener *listener)
{
    pthread_t signals;
    struct http *http = http_start(listener, session);
    int err = http ? pthread_create(&signals, NULL, wait_for_signals, session) : 0;
    if (!http || err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", http ? strerror(err) : "no HTTP server");
        if (http)
            http_stop(http);
        return EXIT_NOT_WRITTEN;
    }
    int status = session_run(session);
    http_stop(http);
    pthread_cancel(signals);
    pthread_join(signals, NULL);
    return status;
}

int command_serve(const struct cli_options *options)
{
    struct listener listener;
    struct session session;
    sigset_t signals;
    if (!listener_open(options->listen, options->allows_remote, &listener))
        return EXIT_NOT_WRITTEN;
    int err = session_init(&session, options, say_what, &listener);
    if (err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", strerror(-err));
        listener_close(&listener);
        return EXIT_NOT_WRITTEN;
    }
    /* Blocked in all threads but the one that waits for them; SIGCHLD is the sampling thread's. */
    find_signals(&signals);
    sigaddset(&signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGTSTP, SIG_IGN); /* see interrupt_stops */
    int status = serve(&session, &listener);
    session_destroy(&session);
    listener_close(&listener);
    return status;
}
