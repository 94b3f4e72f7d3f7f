#include "cli/serve/request.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct listing {
    struct customs customs;
    int err;
};

static void add(const char *name, uint64_t values, void *context)
{
    struct listing *listing = context;
    struct customs *customs = &listing->customs;
    size_t at = 0;
    while (at < customs->count && strcmp(customs->items[at].name, name) < 0)
        at++;
    if (at < customs->count && strcmp(customs->items[at].name, name) == 0) {
        customs->items[at].values += values;
        return;
    }
    char *copy = strdup(name);
    if (!copy || array_insert(&customs->items, &customs->count, &customs->capacity, at,
                              (struct custom){copy, values})) {
        free(copy);
        listing->err = -ENOMEM;
    }
}

static void list_of(pid_t pid, struct listing *listing)
{
    const struct timespec pause = {.tv_nsec = SESSION_PAUSE_NS};
    int err = fgprof_list_custom(pid, add, listing);
    for (unsigned i = 0; err == -EBUSY && i < SESSION_TRIES_MAX; i++) {
        nanosleep(&pause, NULL);
        err = fgprof_list_custom(pid, add, listing);
    }
}

int customs_list(const struct selected_pids *targets, struct customs *ret_customs)
{
    struct listing listing = {0};
    for (size_t i = 0; i < targets->count && !listing.err; i++)
        list_of(targets->pids[i], &listing);
    if (listing.err)
        customs_free(&listing.customs);
    else
        *ret_customs = listing.customs;
    return listing.err;
}

void customs_free(struct customs *customs)
{
    for (size_t i = 0; i < customs->count; i++)
        free(customs->items[i].name);
    free(customs->items);
    *customs = (struct customs){0};
}

/* ---- One of them ---- */

/* Whether any of the processes has it, even without values. */
static int find(const struct selected_pids *targets, const char *name)
{
    struct customs customs;
    int err = customs_list(targets, &customs), result = -ENOENT;
    if (err)
        return err;
    for (size_t i = 0; i < customs.count; i++) {
        if (strcmp(customs.items[i].name, name) == 0)
            result = 0;
    }
    customs_free(&customs);
    return result;
}

/* Its values now, which takes no time: a recorder of its own, of nothing else. NULL: no memory. */
static fgprof_options *options_for_values(const struct cli_options *options)
{
    fgprof_options *library = options_for_library(options);
    if (!library)
        return NULL;
    fgprof_options_set_duration_ns(library, 1);
    fgprof_options_set_time(library, false);
    fgprof_options_set_children(library, false);
    fgprof_options_set_kernel_stacks(library, false);
    fgprof_options_add_objects(library, FGPROF_KIND_CUSTOM);
    return library;
}

static int read_values(const struct session *session, const char *name,
                       fgprof_profile **ret_profile)
{
    fgprof_recorder *recorder;
    fgprof_profile *of_time;
    int err = find(&session->targets, name);
    if (!err)
        err = session_second_recorder(&session->targets, options_for_values(session->options),
                                      &recorder);
    if (err)
        return err;
    err = fgprof_recorder_run(recorder, &of_time);
    if (!err) {
        fgprof_profile_free(of_time);
        err = fgprof_recorder_objects(recorder, FGPROF_KIND_CUSTOM, name, ret_profile);
    }
    fgprof_recorder_free(recorder);
    return err;
}

/* The processes stay the session's until it is given back. */
static bool take(const struct request *request, struct answer *answer, const char *name,
                 fgprof_profile **ret_profile)
{
    fgprof_recorder *recorder;
    if (!request_take(request, answer, &recorder))
        return false;
    int err = read_values(request->session, name, ret_profile);
    request_give_back(request);
    if (err == -ENOENT)
        return answer_failure(answer, 404, "there is no such page: see /debug/pprof/");
    if (err == -ESRCH)
        return answer_failure(answer, 503, "no process is sampled now");
    return !err || answer_failure(answer, 500, "the values can't be read: %s", strerror(-err));
}

/* A file's name, out of the last part of the profile's. */
static void set_disposition(struct answer *answer, const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "%s", basename(name));
    text_make_plain(file, "._-");
    snprintf(answer->disposition, sizeof answer->disposition, "attachment; filename=\"%s.pb.gz\"",
             file);
}

void answer_custom(const struct request *request, struct answer *answer, const char *name)
{
    fgprof_profile *profile;
    uint64_t debug;
    if (!request_number(request, answer, "debug", 0, 2, 0, &debug))
        return;
    if (request_parameter(request, "seconds")) {
        answer_failure(answer, 400, "this is of one moment: for seconds see /debug/fgprof");
        return;
    }
    answer->status = 200;
    answer->type = debug ? "text/plain; charset=utf-8" : "application/octet-stream";
    if (!debug)
        set_disposition(answer, name);
    if (!take(request, answer, name, &profile))
        return;
    int err = fgprof_profile_set_command(profile, request->session->options->command_line);
    if (!err && request->method != METHOD_HEAD)
        err = fgprof_profile_write(profile, debug ? FGPROF_TEXT : FGPROF_PPROF, answer->body_fd);
    fgprof_profile_free(profile);
    if (err)
        answer_failure(answer, 500, "the profile can't be written: %s", strerror(-err));
}
