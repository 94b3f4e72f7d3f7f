/* The command to run next: it shows more of the finding with the most time. */
#include "output/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PIDS_MAX 8

/* What shows more of a kind of finding: the options and the file that it makes. Or, of a process
 * that may still be there, a dump. */
static const struct suggestion {
    const char *kind, *options, *output, *why;
    bool is_dump;
} suggestions[] = {
    {"saturated_thread", "--on-cpu", "cpu.html", "a flame graph of what ran", false},
    {"hot_path", "--on-cpu", "cpu.html", "a flame graph of what ran", false},
    {"lock", "--off-cpu", "waits.html", "a flame graph of what waited", true},
    {"long_wait", "--off-cpu", "waits.html", "a flame graph of what waited", false},
    {"cpu_shortage", NULL, "wall.html", "a flame graph, coloured by what threads did", false},
};

/* For a recording that shows nothing to look at. */
static const struct suggestion otherwise = {"", NULL, "wall.html",
                                            "a flame graph of everything, idle threads too", false};

static const struct suggestion *choose(const struct report *report)
{
    const char *kind = report->finding_count ? report->findings[0].kind : "";
    for (size_t i = 0; i < sizeof suggestions / sizeof *suggestions; i++) {
        if (strcmp(kind, suggestions[i].kind) == 0)
            return &suggestions[i];
    }
    return &otherwise;
}

/* A name that begins with '-' would be an option. */
void report_append_file(struct text_buffer *buffer, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./,:=+@%";
    bool is_plain = strspn(path, plain) == strlen(path);
    text_append(buffer, is_plain ? "" : "'");
    text_append(buffer, *path == '-' ? "./" : "");
    for (const char *c = path; *c; c++) {
        if (*c == '\'')
            text_append(buffer, "'\\''");
        else
            text_append_bytes(buffer, c, 1);
    }
    text_append(buffer, is_plain ? "" : "'");
}

static void append_pids(struct text_buffer *buffer, const struct fgprof_profile *profile)
{
    text_append(buffer, profile->process_count ? "" : " -p PID");
    for (size_t i = 0; i < profile->process_count && i < PIDS_MAX; i++)
        text_print(buffer, "%s%" PRIu32, i ? "," : " -p ", profile->processes[i].pid);
}

static void append_options(struct text_buffer *buffer, const struct suggestion *chosen)
{
    if (chosen->options)
        text_print(buffer, " %s", chosen->options);
    text_print(buffer, " -o %s", chosen->output);
}

int report_choose_next(struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    const struct suggestion *chosen = choose(report);
    static const char run[] = "fgprof-c run ";
    bool was_run = strncmp(profile_recorded_by(profile), run, strlen(run)) == 0;
    struct text_buffer line = {0};
    report->next_why = chosen->why;
    if (chosen->is_dump && !was_run) {
        report->next_why = "which thread holds the lock, if the process still runs";
        text_append(&line, "fgprof-c dump");
        append_pids(&line, profile);
    } else if (profile->read_from) {
        text_append(&line, "fgprof-c convert ");
        report_append_file(&line, profile->read_from);
        append_options(&line, chosen);
    } else if (was_run) {
        text_append(&line, "fgprof-c run");
        append_options(&line, chosen);
        text_append(&line, " -- CMD [ARG...]");
    } else {
        text_append(&line, "fgprof-c attach");
        append_pids(&line, profile);
        text_append(&line, " -d 30s");
        append_options(&line, chosen);
    }
    if (line.error)
        text_free(&line);
    report->next = line.text;
    return line.text ? 0 : -ENOMEM;
}
