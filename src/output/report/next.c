/* The command to run next: it shows more of the finding with the most time. */
#include "output/report/report.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PIDS_MAX 8

/* The command to run for a kind of finding: options and the output file, or a dump if the process
 * may still be running. */
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

/* If there are no findings. */
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
void report_append_file(struct buffer *buffer, const char *path)
{
    struct buffer file = {0};
    buffer_print(&file, "%s%s", *path == '-' ? "./" : "", path);
    if (file.error)
        buffer->error = file.error;
    else
        buffer_put_quoted(buffer, file.bytes);
    buffer_free(&file);
}

static void append_pids(struct buffer *buffer, const struct fgprof_profile *profile)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->process_count && count < PIDS_MAX; i++) {
        uint32_t pid = profile->processes[i].pid; /* 0: of processes that have ended */
        if (pid)
            buffer_print(buffer, "%s%" PRIu32, count++ ? "," : " -p ", pid);
    }
    buffer_puts(buffer, count ? "" : " -p PID");
}

static void append_options(struct buffer *buffer, const struct suggestion *chosen)
{
    if (chosen->options)
        buffer_print(buffer, " %s", chosen->options);
    buffer_print(buffer, " -o %s", chosen->output);
}

int report_choose_next(struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    const struct suggestion *chosen = choose(report);
    bool was_run = text_begins(profile_recorded_by(profile), "fgprof-c run ");
    struct buffer line = {0};
    report->next_why = chosen->why;
    if (chosen->is_dump && !was_run) {
        report->next_why = "which thread holds the lock, if the process still runs";
        buffer_puts(&line, "fgprof-c dump");
        append_pids(&line, profile);
    } else if (profile->read_from) {
        buffer_puts(&line, "fgprof-c convert ");
        report_append_file(&line, profile->read_from);
        append_options(&line, chosen);
    } else if (was_run) {
        buffer_puts(&line, "fgprof-c run");
        append_options(&line, chosen);
        buffer_puts(&line, " -- CMD [ARG...]");
    } else {
        buffer_puts(&line, "fgprof-c attach");
        append_pids(&line, profile);
        buffer_puts(&line, " -d 30s");
        append_options(&line, chosen);
    }
    if (line.error)
        buffer_free(&line);
    report->next = line.bytes;
    return line.bytes ? 0 : -ENOMEM;
}
