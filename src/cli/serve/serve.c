#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/record/flight.h"
#include "cli/serve/http.h"
#include "cli/serve/signals.h"

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

static int serve(struct session *session, const struct listener *listener)
{
    pthread_t signals;
    struct http *http = http_start(listener, session);
    int err = http ? signals_begin(session, &signals) : 0;
    if (!http || err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", http ? strerror(-err) : "no HTTP server");
        if (http)
            http_stop(http);
        return EXIT_NOT_WRITTEN;
    }
    int status = session_run(session);
    http_stop(http);
    signals_end(signals);
    return status;
}

/* Beside it, files are written if there is a directory for them. */
static int serve_and_record(struct session *session, const struct listener *listener)
{
    const struct cli_options *options = session->options;
    struct flight flight;
    if (strcmp(options->output, "-") == 0)
        return serve(session, listener);
    int err = flight_start(&flight, options, session);
    if (err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    int status = serve(session, listener);
    flight_stop(&flight);
    return status;
}

int command_serve(const struct cli_options *options)
{
    struct listener listener;
    struct session session;
    if (strcmp(options->output, "-") != 0 && !files_check(options->output))
        return EXIT_NOT_WRITTEN;
    if (!listener_open(options->listen, options->allows_remote, &listener))
        return EXIT_NOT_WRITTEN;
    int err = session_init(&session, options, say_what, &listener);
    if (err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", strerror(-err));
        listener_close(&listener);
        return EXIT_NOT_WRITTEN;
    }
    signals_block();
    int status = serve_and_record(&session, &listener);
    session_destroy(&session);
    listener_close(&listener);
    return status;
}
