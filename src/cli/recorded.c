#include "cli/recorded.h"
#include "cli/escape.h"
#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHY_BYTES 512
#define START_MS_MAX 50

static void complain_of_objects(const struct cli_options *options, pid_t pid, int err)
{
    char why[WHY_BYTES];
    fgprof_explain_objects(pid, options->kind, err, why, sizeof why);
    fprintf(stderr, "fgprof-c: %s\n", why);
}

void recorded_complain(const struct cli_options *options, int err)
{
    complain_of_objects(options, 0, err);
}

bool recorded_check(const struct cli_options *options, fgprof_recorder *recorder, pid_t pid)
{
    if (!options_are_of_objects(options))
        return true;
    int err = fgprof_recorder_check_objects(recorder, options->kind);
    /* A command that has just been started has the agent soon, if it can have one. */
    bool is_started = options->command == COMMAND_RUN && options->kind != FGPROF_KIND_GROWTH;
    for (unsigned ms = 0; is_started && err == -ENOENT && ms < START_MS_MAX; ms++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
        err = fgprof_recorder_check_objects(recorder, options->kind);
    }
    if (is_started && err == -ENOENT)
        return true;
    if (err)
        complain_of_objects(options, pid, err);
    return !err;
}

struct search {
    const char *name;
    bool is_found;
    FILE *others; /* their names, with commas before them */
};

static void look_at(const char *name, uint64_t values, void *context)
{
    struct search *search = context;
    (void)values;
    search->is_found |= strcmp(name, search->name) == 0;
    fprintf(search->others, ", %s", name);
}

static void complain_of_name(const struct cli_options *options, const char *others)
{
    fputs("fgprof-c: bad kind of profile '", stderr);
    print_escaped(options->custom);
    if (*others)
        fprintf(stderr, "': give " KINDS ", or one that the program keeps itself: %s\n",
                others + 2);
    else
        fputs("': give " KINDS "; the program keeps none itself (fgprof_profiles.h)\n", stderr);
}

bool recorded_find_custom(const struct cli_options *options, const struct targets *targets)
{
    char *others = NULL;
    size_t bytes;
    struct search search = {options->custom, false, open_memstream(&others, &bytes)};
    int err = search.others ? 0 : -ENOMEM;
    for (size_t i = 0; i < targets->count && options->custom && !err; i++) {
        err = fgprof_list_custom(targets->pids[i], look_at, &search);
        err = err == -ENOENT ? 0 : err;
        if (err)
            complain_of_objects(options, targets->pids[i], err);
    }
    if (search.others)
        fclose(search.others);
    if (!err && options->custom && !search.is_found)
        complain_of_name(options, others);
    free(others);
    return !err && (!options->custom || search.is_found);
}

fgprof_profile *recorded_run(const struct cli_options *options, fgprof_recorder *recorder)
{
    fgprof_profile *profile, *objects = NULL;
    int err = fgprof_recorder_run(recorder, &profile);
    if (err) {
        fprintf(stderr, "fgprof-c: sampling failed: %s\n", strerror(-err));
        return NULL;
    }
    if (!options_are_of_objects(options))
        return profile;
    fgprof_profile_free(profile);
    err = fgprof_recorder_objects(recorder, options->kind, options->custom, &objects);
    if (!err)
        return objects;
    progress_clear(options);
    complain_of_objects(options, 0, err);
    return NULL;
}
