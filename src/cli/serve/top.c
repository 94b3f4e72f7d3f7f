/* The functions with the most time of their own in the last seconds, as text. */
#include "cli/say.h"
#include "cli/serve/request.h"
#include "cli/top/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 40
#define LAST_DEFAULT_NS 10000000000u

static void put_row(FILE *out, const struct top_function *row, double all_ns)
{
    const char *module = basename(row->module);
    uint64_t running_ns = row->recent_state_ns[FGPROF_STATE_RUNNING];
    fprintf(out, "%7.1f %7.1f %7.1f  ", 100 * (double)row->own_ns / all_ns,
            100 * (double)row->total_ns / all_ns, 100 * (double)running_ns / all_ns);
    if (row->name) {
        put_escaped(out, row->name);
        fputs("  ", out);
    }
    bool is_bracketed = *module == '[';
    fputs(is_bracketed ? "" : "[", out);
    put_escaped(out, *module ? module : "unknown");
    fputs(is_bracketed ? "\n" : "]\n", out);
}

static int put_table(FILE *out, struct top_view *view)
{
    const struct top_choice all = {.kept = FGPROF_KEPT_ALL};
    const struct top_order order = {TOP_BY_SELF, false};
    double elapsed_ns = (double)view->summary.elapsed_ns;
    struct top_function *rows;
    size_t count;
    int err = top_view_count(view, &all, view);
    if (!err)
        err = top_functions(view, NULL, NULL, NULL, order, &rows, &count);
    if (err)
        return err;
    fprintf(out,
            "The last %.1f s, in percent of one thread all the time\n"
            "  SELF%%  TOTAL%%    RUN%%  FUNCTION\n",
            elapsed_ns / 1e9);
    for (size_t i = 0; i < count && i < ROWS_MAX && rows[i].own_ns; i++)
        put_row(out, &rows[i], elapsed_ns);
    free(rows);
    return 0;
}

static int write_table(fgprof_profile *profile, int fd)
{
    struct top_view view = {.profile = profile};
    fgprof_profile_summary(profile, &view.summary, sizeof view.summary);
    int copy = dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    int err = out ? put_table(out, &view) : -errno;
    if (out && fclose(out) && !err)
        err = -errno;
    else if (!out && copy >= 0)
        close(copy);
    free(view.functions);
    return err;
}

void answer_top(const struct request *request, struct answer *answer)
{
    fgprof_recorder *recorder;
    fgprof_profile *profile;
    if (!request_take(request, answer, &recorder))
        return;
    int err = fgprof_recorder_profile_last(recorder, LAST_DEFAULT_NS, &profile);
    request_give_back(request);
    if (!err) {
        err = write_table(profile, answer->body_fd);
        fgprof_profile_free(profile);
    }
    if (err)
        answer_failure(answer, err == -ESRCH ? 503 : 500, "there is no table: %s",
                       err == -ESRCH ? "sampling has not begun yet" : strerror(-err));
}
