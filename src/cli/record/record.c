#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/privileges.h"
#include "cli/record/flight.h"
#include "cli/serve/signals.h"

#include <stdio.h>
#include <string.h>

static void say_what(const struct session *session, void *context)
{
    const struct cli_options *options = context;
    char what[SESSION_TEXT_BYTES];
    session_describe(session, what);
    flockfile(stderr);
    fputs("fgprof-c: recording ", stderr);
    print_escaped(what);
    fprintf(stderr, ": keeping the last %g s; files go to ", (double)options->keep_ns / 1e9);
    print_escaped(options->output);
    if (options->trigger_count)
        fprintf(stderr, ", on SIGUSR1 and by %zu %s\n", options->trigger_count,
                options->trigger_count == 1 ? "trigger" : "triggers");
    else
        fputs(", on SIGUSR1\n", stderr);
    funlockfile(stderr);
}

static void say_count(const struct cli_options *options, size_t written)
{
    fprintf(stderr, "fgprof-c: %zu %s written to ", written,
            written == 1 ? "file was" : "files were");
    print_escaped(options->output);
    fputc('\n', stderr);
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
        say_count(options, flight_stop(&flight));
        /* Last: a file may take long to write, and a second signal ends that. */
        if (!err)
            signals_end(signals);
    }
    if (err)
        fprintf(stderr, "fgprof-c: can't record: %s\n", strerror(-err));
    return status;
}

int command_record(const struct cli_options *options)
{
    struct session session;
    if (!files_check(options->output) || !privileges_limit_to_sampling(options))
        return EXIT_NOT_WRITTEN;
    int err = session_init(&session, options, say_what, (void *)options);
    if (err) {
        fprintf(stderr, "fgprof-c: can't record: %s\n", strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    signals_block();
    int status = record(options, &session);
    session_destroy(&session);
    return status;
}
