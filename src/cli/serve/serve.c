/* The commands that run as long as the processes: `serve`, and `record`, which serves nobody. */
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/privileges.h"
#include "cli/push/push.h"
#include "cli/record/flight.h"
#include "cli/serve/access.h"
#include "cli/serve/http_server.h"
#include "cli/serve/signals.h"

#include <stdio.h>
#include <string.h>

struct server {
    struct listener listener;
    bool listens;
    struct http_server *http; /* NULL: nothing is listened at */
    struct pusher *pusher;    /* NULL: nothing is pushed */
    bool has_said_where_to;
};

static void say_what_is_recorded(const struct cli_options *options, const char *what)
{
    char triggers[48] = "";
    if (options->trigger_count)
        snprintf(triggers, sizeof triggers, " and by %zu %s", options->trigger_count,
                 options->trigger_count == 1 ? "trigger" : "triggers");
    say("recording %s: keeping the last %g s; files go to %s, on SIGUSR1%s", what,
        (double)options->keep_ns / 1e9, options->output, triggers);
}

static void say_what(const struct session *session, void *context)
{
    struct server *server = context;
    char what[SESSION_TEXT_BYTES];
    session_describe(session, what);
    if (session->options->command == COMMAND_RECORD)
        say_what_is_recorded(session->options, what);
    else if (server->listens)
        say("serving profiles of %s at %s", what, server->listener.shown);
    else
        say("taking profiles of %s", what);
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
    session->pusher = server->pusher;
    if (server->pusher && !pusher_start(server->pusher, session))
        return EXIT_NOT_WRITTEN;
    int err = server->http ? http_server_start(server->http, &server->listener, session) : 0;
    int status = err ? EXIT_NOT_WRITTEN : session_run(session);
    if (err)
        say("can't serve: %s", strerror(-err));
    bool could_answer = http_server_stop(server->http);
    if (!could_answer)
        say("can't serve any more: the process that starts fgprof-http has gone");
    pusher_stop(server->pusher);
    return could_answer ? status : EXIT_NOT_WRITTEN;
}

/* Beside it, files are written if there is a directory for them. */
static int serve_and_record(struct session *session, struct server *server)
{
    const struct cli_options *options = session->options;
    bool records = strcmp(options->output, "-") != 0;
    struct flight flight;
    pthread_t signals;
    size_t written = 0;
    int status = EXIT_NOT_WRITTEN;
    int err = records ? flight_start(&flight, options, session) : 0;
    if (!err) {
        err = signals_begin(session, &signals);
        if (!err)
            status = serve(session, server);
        if (records)
            written = flight_stop(&flight);
        if (options->command == COMMAND_RECORD)
            say("%zu %s written to %s", written, written == 1 ? "file was" : "files were",
                options->output);
        /* Last: a file may take long to write, and a second signal ends that. */
        if (!err)
            signals_end(signals);
    }
    if (err)
        say("can't %s: %s", options->command_name, strerror(-err));
    return status;
}

static bool check_token_file(const char *path)
{
    const char *problem = access_check_token_file(path);
    return !problem || say("the token of --token-file can't be used: %s", problem);
}

/* Starts the processes that speak HTTP and that push, before anything of a target is read. On
 * failure, prints the reason and returns false. */
static bool start_helpers(const struct cli_options *options, struct server *server)
{
    int err = server->listens ? http_server_new(&server->http) : 0;
    if (err)
        return say("can't %s: %s", options->command_name, strerror(-err));
    if (options->push.target_count)
        server->pusher = pusher_new(options);
    return server->pusher || !options->push.target_count;
}

static int serve_session(const struct cli_options *options, struct server *server)
{
    struct session session;
    int err = session_init(&session, options, say_what, server);
    if (err) {
        say("can't %s: %s", options->command_name, strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    signals_block();
    int status = serve_and_record(&session, server);
    session_destroy(&session);
    return status;
}

static int serve_listening(const struct cli_options *options, struct server *server)
{
    int status = EXIT_NOT_WRITTEN;
    /* Nobody has been answered yet. */
    if (start_helpers(options, server) && privileges_limit_to_sampling(options))
        status = serve_session(options, server);
    http_server_free(server->http);
    pusher_free(server->pusher);
    return status;
}

int command_serve(const struct cli_options *options)
{
    bool listens = options->command == COMMAND_SERVE && strcmp(options->listen, "none") != 0;
    struct server server = {.listens = listens};
    if (strcmp(options->output, "-") != 0 && !files_check(options->output))
        return EXIT_NOT_WRITTEN;
    if (options->token_file && !check_token_file(options->token_file))
        return EXIT_NOT_WRITTEN;
    if (server.listens && !listener_open(options, &server.listener))
        return EXIT_NOT_WRITTEN;
    int status = serve_listening(options, &server);
    if (server.listens)
        listener_close(&server.listener);
    return status;
}
