/* step-stacks [OPTION...] PROGRAM [ARGUMENT...]
 *
 * Runs a program instruction by instruction, tracks the true call stack of its first thread
 * (steps/shadow.h), and compares the unwound snapshot with it, frame by frame.
 *   --entry      start at the program's own entry point, not at the dynamic linker's
 *   --after=MS   let it run for that long first, and between windows; then only frames that were
 *                entered since then are known
 *   --windows=N  number of windows
 *   --skip=N     instructions to step over without a comparison
 *   --steps=N    instructions per window
 *   --every=N    compare at every Nth instruction
 *   --seconds=N  time limit
 *   --show=N     number of differences to print
 *   --report=FILE  write there, instead of to standard error
 * Writes a row
 *   instructions=N compared=N equal=N missing=N wrong=N cut=N doubt=N depth=N seconds=S
 * and the differences, by function. Exits with 1 if a frame is wrong, and with 2 if the comparison
 * failed. */
#include "steps/session.h"
#include "base/clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct session session;
static FILE *report;

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"entry", no_argument, NULL, 'e'},         {"after", required_argument, NULL, 'a'},
        {"windows", required_argument, NULL, 'w'}, {"skip", required_argument, NULL, 'k'},
        {"steps", required_argument, NULL, 'n'},   {"every", required_argument, NULL, 'v'},
        {"seconds", required_argument, NULL, 's'}, {"show", required_argument, NULL, 'h'},
        {"report", required_argument, NULL, 'r'},  {NULL, 0, NULL, 0}};
    int letter;
    *options = (struct options){
        .windows = 1, .steps = UINT64_MAX / 2, .every = 1, .seconds = 60, .show = 20};
    while ((letter = getopt_long(argc, argv, "+", known, NULL)) != -1) {
        uint64_t value = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (letter) {
        case 'e':
            options->from_entry = true;
            break;
        case 'a':
            options->after_ms = (unsigned)value;
            break;
        case 'w':
            options->windows = value;
            break;
        case 'k':
            options->skip = value;
            break;
        case 'n':
            options->steps = value;
            break;
        case 'v':
            options->every = value;
            break;
        case 's':
            options->seconds = value;
            break;
        case 'h':
            options->show = value;
            break;
        case 'r':
            report = fopen(optarg, "we");
            if (!report)
                return false;
            break;
        default:
            return false;
        }
    }
    return optind < argc && options->every;
}

/* It may sleep for ever. */
static void end_tracee(int number)
{
    (void)number;
    kill(session.tracee.pid, SIGKILL);
}

int main(int argc, char **argv)
{
    report = stderr;
    if (!read_options(argc, argv, &session.options))
        return 2;
    uint64_t begin_ns = monotonic_ns();
    session.deadline_ns = begin_ns + session.options.seconds * 1000000000u;
    signal(SIGALRM, end_tracee);
    int err = session_begin(&session, argv + optind);
    alarm((unsigned)session.options.seconds + 1);
    if (!err)
        err = session_run(&session);
    alarm(0);
    if (err) {
        fprintf(stderr, "%s\n", strerror(-err));
        tracee_end(&session.tracee);
        return 2;
    }
    const uint64_t *counts = session.tally.counts;
    fprintf(report,
            "instructions=%" PRIu64 " compared=%" PRIu64 " equal=%" PRIu64 " missing=%" PRIu64
            " wrong=%" PRIu64 " cut=%" PRIu64 " doubt=%" PRIu64 " depth=%.1f seconds=%.1f\n",
            session.stepped, session.compared, counts[VERDICT_EQUAL], counts[VERDICT_MISSING],
            counts[VERDICT_WRONG], counts[VERDICT_CUT], counts[VERDICT_DOUBT],
            (double)session.frames / (double)(session.compared ? session.compared : 1),
            (double)(monotonic_ns() - begin_ns) / 1e9);
    tally_print(&session.tally, report, session.options.show);
    bool is_wrong = counts[VERDICT_WRONG] != 0;
    session_end(&session);
    fclose(report);
    return is_wrong;
}
