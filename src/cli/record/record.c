#include "cli/commands.h"
#include "cli/say.h"
#include "cli/privileges.h"
#include "cli/record/flight.h"
#include "cli/serve/signals.h"

#include <stdio.h>
#include <string.h>

static void say_what(const struct session *session, void *context)
{
    const struct cli_options *options = context;
    char what[SESSION_TEXT_BYTES], triggers[48] = "";
    session_describe(session, what);
    if (options->trigger_count)
        snprintf(triggers, sizeof triggers, " and by %zu %s", options->trigger_count,
                 options->trigger_count == 1 ? "trigger" : "triggers");
    say("recording %s: keeping the last %g s; files go to %s, on SIGUSR1%s", what,
        (double)options->keep_ns / 1e9, options->output, triggers);
}

static int record(const struct cli_options *options, struct session *session)
{
    struct flight flight;
    pthread_t signals;
    int status = EXIT_NOT_WRITTEN;
    int err = flight_start(&flight, options, session);
    if (!err) {
        err = signals_begin(session, &signals);
        if (!err)
            status = session_run(session);
        size_t written = flight_stop(&flight);
        say("%zu %s written to %s", written, written == 1 ? "file was" : "files were",
            options->output);
        /* Last: a file may take long to write, and a second signal ends that. */
        if (!err)
            signals_end(signals);
    }
    if (err)
        say("can't record: %s", strerror(-err));
    return status;
}

int command_record(const struct cli_options *options)
{
    struct session session;
    if (!files_check(options->output) || !privileges_limit_to_sampling(options))
        return EXIT_NOT_WRITTEN;
    int err = session_init(&session, options, say_what, (void *)options);
    if (err) {
        say("can't record: %s", strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    signals_block();
    int status = record(options, &session);
    session_destroy(&session);
    return status;
}
