/* The functions with the most time of their own in the last seconds, as text. */
#include "cli/say.h"
#include "cli/serve/request.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 40
#define LAST_DEFAULT_NS 10000000000u

static int compare(const void *a, const void *b)
{
    const struct fgprof_function *left = a, *right = b;
    int order = ORDER(right->own_ns, left->own_ns);
    return order ? order : ORDER(right->total_ns, left->total_ns);
}

static void put_row(FILE *out, const struct fgprof_function *row, double all_ns)
{
    const char *module = basename(row->module);
    uint64_t running_ns = row->state_ns[FGPROF_STATE_RUNNING];
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

static int put_table(FILE *out, const fgprof_profile *profile, const fgprof_functions *functions)
{
    size_t count = fgprof_functions_count(functions);
    struct fgprof_summary summary;
    struct fgprof_function *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        fgprof_functions_get(functions, i, &rows[i], sizeof rows[i]);
    array_sort(rows, count, compare);
    fgprof_profile_summary(profile, &summary, sizeof summary);
    fprintf(out,
            "The last %.1f s, in percent of one thread all the time\n"
            "  SELF%%  TOTAL%%    RUN%%  FUNCTION\n",
            (double)summary.elapsed_ns / 1e9);
    for (size_t i = 0; i < count && i < ROWS_MAX && rows[i].own_ns; i++)
        put_row(out, &rows[i], (double)summary.elapsed_ns);
    free(rows);
    return 0;
}

static int write_table(const fgprof_profile *profile, int fd)
{
    fgprof_functions *functions;
    int err = fgprof_profile_functions(profile, NULL, 0, &functions);
    if (err)
        return err;
    int copy = dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    err = out ? put_table(out, profile, functions) : -errno;
    if (out && fclose(out) && !err)
        err = -errno;
    else if (!out && copy >= 0)
        close(copy);
    fgprof_functions_free(functions);
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
