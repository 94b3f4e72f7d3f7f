#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/push/push.h"
#include "cli/record/flight.h"
#include "cli/serve/http.h"
#include "cli/serve/signals.h"

#include <stdio.h>
#include <string.h>

struct server {
    struct listener listener;
    bool listens;
    struct pusher *pusher; /* NULL: nothing is pushed */
    bool has_said_where_to;
};

static void say_what(const struct session *session, void *context)
{
    struct server *server = context;
    char what[SESSION_TEXT_BYTES];
    session_describe(session, what);
    fprintf(stderr, "fgprof-c: %s profiles of ", server->listens ? "serving" : "taking");
    print_escaped(what);
    if (server->listens)
        fprintf(stderr, " at %s", server->listener.shown);
    fputc('\n', stderr);
    if (!server->pusher)
        return;
    if (!server->has_said_where_to)
        pusher_describe(server->pusher);
    server->has_said_where_to = true;
    pusher_begin(server->pusher);
}

/* With all that asks for profiles, or pushes them. */
static int serve(struct session *session, struct server *server)
{
    const struct cli_options *options = session->options;
    pthread_t signals;
    struct http *http = NULL;
    if (options->push.target_count) {
        session->pusher = server->pusher = pusher_start(options, session);
        if (!server->pusher)
            return EXIT_NOT_WRITTEN;
    }
    if (server->listens)
        http = http_start(&server->listener, session);
    bool ok = http || !server->listens;
    int err = ok ? signals_begin(session, &signals) : 0;
    int status = EXIT_NOT_WRITTEN;
    if (ok && !err)
        status = session_run(session);
    else
        fprintf(stderr, "fgprof-c: can't serve: %s\n", ok ? strerror(-err) : "no HTTP server");
    if (http)
        http_stop(http);
    if (server->pusher)
        pusher_stop(server->pusher);
    if (ok && !err)
        signals_end(signals);
    return status;
}

/* Beside it, files are written if there is a directory for them. */
static int serve_and_record(struct session *session, struct server *server)
{
    const struct cli_options *options = session->options;
    struct flight flight;
    if (strcmp(options->output, "-") == 0)
        return serve(session, server);
    int err = flight_start(&flight, options, session);
    if (err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    int status = serve(session, server);
    flight_stop(&flight);
    return status;
}

int command_serve(const struct cli_options *options)
{
    struct server server = {.listens = strcmp(options->listen, "none") != 0};
    struct session session;
    if (strcmp(options->output, "-") != 0 && !files_check(options->output))
        return EXIT_NOT_WRITTEN;
    if (server.listens && !listener_open(options->listen, options->allows_remote, &server.listener))
        return EXIT_NOT_WRITTEN;
    int err = session_init(&session, options, say_what, &server);
    if (err) {
        fprintf(stderr, "fgprof-c: can't serve: %s\n", strerror(-err));
        if (server.listens)
            listener_close(&server.listener);
        return EXIT_NOT_WRITTEN;
    }
    signals_block();
    int status = serve_and_record(&session, &server);
    session_destroy(&session);
    if (server.listens)
        listener_close(&server.listener);
    return status;
}
