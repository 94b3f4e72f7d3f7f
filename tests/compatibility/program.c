/* Uses the library like a program that was built with some version of the header. Older: its
 * structs lack their last field (which is not used here); LATER: each also has the field `added`.
 * Prints what the library returned. */
#include <fgprof.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNTOUCHED 0xa5

/* A struct for the library to fill, followed by bytes that it must not write. */
#define GUARDED(type)                                                                              \
    struct {                                                                                       \
        type it;                                                                                   \
        unsigned char after[256];                                                                  \
    }

static void prepare(void *guarded, size_t bytes)
{
    memset(guarded, UNTOUCHED, bytes);
}

static void check(const char *what, const unsigned char after[256])
{
    for (size_t i = 0; i < 256; i++) {
        if (after[i] != UNTOUCHED) {
            fprintf(stderr, "%s: byte %zu behind it was written\n", what, i);
            exit(1);
        }
    }
}

static struct fgprof_progress last;

static void on_progress(const struct fgprof_progress *progress, void *context)
{
    size_t bytes = progress->bytes < sizeof last ? progress->bytes : sizeof last;
    fgprof_recorder **recorder = context;
    memcpy(&last, progress, bytes);
    if (progress->samples && progress->elapsed_ns > 400000000)
        fgprof_recorder_stop(*recorder);
}

static void show_progress(void)
{
    printf("progress_elapsed_ns %" PRIu64 "\n", last.elapsed_ns);
    printf("progress_duration_ns %" PRIu64 "\n", last.duration_ns);
    printf("progress_threads %" PRIu64 "\n", last.threads);
    printf("progress_samples %" PRIu64 "\n", last.samples);
    printf("progress_stacks %" PRIu64 "\n", last.stacks);
#ifdef LATER
    printf("progress_added %" PRIu64 "\n", last.added);
    printf("progress_lacks %d\n", last.bytes < sizeof last);
#endif
}

static void show_summary(const fgprof_profile *profile)
{
    GUARDED(struct fgprof_summary) summary;
    prepare(&summary, sizeof summary);
    fgprof_profile_summary(profile, &summary.it, sizeof summary.it);
    check("summary", summary.after);
    printf("error %d\n", summary.it.error);
    printf("elapsed_ns %" PRIu64 "\n", summary.it.elapsed_ns);
    printf("threads_seen %" PRIu64 "\n", summary.it.threads_seen);
    printf("samples %" PRIu64 "\n", summary.it.samples);
    printf("thread_ns %" PRIu64 "\n",
           summary.it.running_ns + summary.it.runnable_ns + summary.it.waiting_ns);
#ifdef LATER
    printf("summary_added %" PRIu64 "\n", summary.it.added);
#endif
}

static void show_functions(const fgprof_profile *profile)
{
    fgprof_functions *functions;
    if (fgprof_profile_functions(profile, NULL, 0, &functions))
        exit(3);
    for (size_t i = 0; i < fgprof_functions_count(functions); i++) {
        GUARDED(struct fgprof_function) row;
        prepare(&row, sizeof row);
        if (fgprof_functions_get(functions, i, &row.it, sizeof row.it))
            exit(3);
        check("function", row.after);
        printf("function %s %" PRIu64 " %" PRIu64 "\n", row.it.name ? row.it.name : "?",
               row.it.self_ns, row.it.total_ns);
#ifdef LATER
        printf("function_added %" PRIu64 "\n", row.it.added);
#endif
    }
    fgprof_functions_free(functions);
}

static void show_activities(const fgprof_profile *profile)
{
    fgprof_activities *activities;
    if (fgprof_profile_activities(profile, &activities))
        exit(3);
    for (size_t i = 0; i < fgprof_activities_count(activities); i++) {
        GUARDED(struct fgprof_activity) row;
        prepare(&row, sizeof row);
        if (fgprof_activities_get(activities, i, &row.it, sizeof row.it))
            exit(3);
        check("activity", row.after);
        printf("activity %s %d %s\n", row.it.thread_name, (int)row.it.state,
               row.it.function ? row.it.function : "?");
#ifdef LATER
        printf("activity_added %" PRIu64 "\n", row.it.added);
#endif
    }
    fgprof_activities_free(activities);
}

static void show_dump(const fgprof_options *options, pid_t pid)
{
    GUARDED(struct fgprof_summary) summary;
    fgprof_recorder *recorder;
    fgprof_dump *dump;
    if (fgprof_recorder_new(options, &recorder) || fgprof_recorder_attach(recorder, pid) ||
        fgprof_recorder_dump(recorder, &dump))
        exit(4);
    prepare(&summary, sizeof summary);
    fgprof_dump_summary(dump, &summary.it, sizeof summary.it);
    check("the dump's summary", summary.after);
    printf("dump_threads %zu %" PRIu64 "\n", fgprof_dump_threads(dump), summary.it.threads_seen);
    fgprof_dump_free(dump);
    fgprof_recorder_free(recorder);
}

int main(int argc, char **argv)
{
    fgprof_options *options;
    fgprof_recorder *recorder;
    fgprof_profile *profile;
    if (argc != 2 || fgprof_options_new(&options))
        return 2;
    pid_t pid = atoi(argv[1]);
    fgprof_options_set_duration_ns(options, 60000000000);
    fgprof_options_set_progress(options, on_progress, &recorder);
    if (fgprof_recorder_new(options, &recorder) || fgprof_recorder_attach(recorder, pid) ||
        fgprof_recorder_run(recorder, &profile))
        return 3;
    fgprof_recorder_free(recorder);
    show_progress();
    show_summary(profile);
    show_functions(profile);
    show_activities(profile);
    fgprof_profile_free(profile);
    fgprof_options_set_progress(options, NULL, NULL);
    show_dump(options, pid);
    fgprof_options_free(options);
    return 0;
}
