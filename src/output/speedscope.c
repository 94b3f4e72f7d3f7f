/* speedscope's JSON (https://www.speedscope.app/file-format-schema.json, jlfwong/speedscope
 * src/lib/file-format-spec.ts): frames that all profiles share, and a "sampled" profile for each
 * thread, with a stack and a weight for each run of its timeline. The format has no gaps: an
 * omitted run has an empty stack. */
#include "output/output.h"
#include "profile/frame.h"
#include "output/json.h"
#include "output/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A row per function, or per line if lines are wanted: speedscope compares frames by number. */
struct shown_frame {
    uint32_t name;
    uint32_t file;
    uint32_t line; /* 0: not known, or not wanted */
};

struct speedscope {
    const struct fgprof_profile *profile;
    struct strings strings;
    struct shown_frame *frames;
    size_t frame_count, frame_capacity;
    struct index frame_index;
    uint32_t *of_frame; /* by frame_number(): its row + 1; 0: it is in no stack */
    uint32_t *states;   /* by sample number: the row of the sample's state */
    uint32_t unknown;   /* the row that stands for a stack without frames */
    struct buffer text;
};

static int add_frame(struct speedscope *speedscope, const char *name, const char *file,
                     uint32_t line, uint32_t *ret_number)
{
    struct shown_frame frame = {.line = line};
    if (strings_intern(&speedscope->strings, name, &frame.name) ||
        strings_intern(&speedscope->strings, file, &frame.file))
        return -ENOMEM;
    return INDEX_INTERN(&speedscope->frame_index, sizeof frame, &frame, &speedscope->frames,
                        &speedscope->frame_count, &speedscope->frame_capacity, ret_number);
}

/* Makes a frame of the buffer's text. */
static int add_text_frame(struct speedscope *speedscope, uint32_t *ret_number)
{
    int err = speedscope->text.error;
    if (!err)
        err = add_frame(speedscope, speedscope->text.bytes, "", 0, ret_number);
    buffer_free(&speedscope->text);
    return err;
}

static int add_named_frame(struct speedscope *speedscope, const struct profile_frame *frame,
                           uint32_t *ret_number)
{
    const struct fgprof_profile *profile = speedscope->profile;
    bool has_lines = profile->folded_flags & FGPROF_FOLDED_LINES;
    if (!frame->line) {
        frame_append_unnamed(&speedscope->text, profile, frame->location, has_lines);
        return add_text_frame(speedscope, ret_number);
    }
    const struct profile_function *function = &profile->functions[frame->line->function];
    return add_frame(speedscope, strings_get(&profile->strings, function->name),
                     strings_get(&profile->strings, function->file),
                     has_lines ? frame->line->line : 0, ret_number);
}

static int add_stack(struct speedscope *speedscope, const struct profile_stack *stack)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    int err = 0;
    while (!err && frame_next_from_root(speedscope->profile, stack, &walk, &frame)) {
        uint32_t number, *known = &speedscope->of_frame[frame_number(speedscope->profile, &frame)];
        if (*known)
            continue;
        err = add_named_frame(speedscope, &frame, &number);
        *known = err ? 0 : number + 1;
    }
    if (!stack->depth) {
        buffer_puts(&speedscope->text, "[unknown]");
        err = add_text_frame(speedscope, &speedscope->unknown);
    }
    return err;
}

static int add_stacks(struct speedscope *speedscope)
{
    const struct fgprof_profile *profile = speedscope->profile;
    int err = 0;
    for (size_t i = 0; i < profile->stack_count && !err; i++)
        err = add_stack(speedscope, &profile->stacks[i]);
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        if (!(profile->folded_flags & FGPROF_FOLDED_STATE))
            break;
        state_append_frame(&speedscope->text, profile, &profile->samples[i]);
        err = add_text_frame(speedscope, &speedscope->states[i]);
    }
    return err;
}

static void write_frames(const struct speedscope *speedscope, struct json *json)
{
    json_break_line(json);
    json_begin(json, "shared", '{');
    json_begin(json, "frames", '[');
    for (size_t i = 0; i < speedscope->frame_count; i++) {
        const struct shown_frame *frame = &speedscope->frames[i];
        json_break_line(json);
        json_begin(json, NULL, '{');
        json_string(json, "name", strings_get(&speedscope->strings, frame->name));
        json_string_if_any(json, "file", strings_get(&speedscope->strings, frame->file));
        json_number_if_any(json, "line", frame->line);
        json_end(json, '}');
    }
    sink_write(json->sink, "\n", 1);
    json_end(json, ']');
    json_end(json, '}');
}

static void write_stack(const struct speedscope *speedscope, const struct profile_run *run,
                        struct json *json)
{
    const struct fgprof_profile *profile = speedscope->profile;
    if (run->sample == PROFILE_NO_SAMPLE || !profile_keeps(profile, &profile->samples[run->sample]))
        return;
    const struct profile_stack *stack = &profile->stacks[profile->samples[run->sample].stack];
    struct frame_walk walk = {0};
    struct profile_frame frame;
    while (frame_next_from_root(profile, stack, &walk, &frame))
        json_number(json, NULL, speedscope->of_frame[frame_number(profile, &frame)] - 1);
    if (!stack->depth)
        json_number(json, NULL, speedscope->unknown);
    if (profile->folded_flags & FGPROF_FOLDED_STATE)
        json_number(json, NULL, speedscope->states[run->sample]);
}

static void write_thread_name(const struct fgprof_profile *profile,
                              const struct profile_timeline *timeline, struct json *json)
{
    const char *name = strings_get(&profile->strings, timeline->thread_name);
    char *text;
    if (asprintf(&text, "%s/%" PRIu32 "%s", *name ? name : "[unnamed]", timeline->tid,
                 timeline->lost_ns ? " (ends early: timelines were full)" : "") < 0) {
        json->sink->error = json->sink->error ? json->sink->error : -ENOMEM;
        return;
    }
    json_string(json, "name", text);
    free(text);
}

/* `timeline`: NULL if no thread was sampled: speedscope can't open a file without a profile. */
static void write_timeline(const struct speedscope *speedscope,
                           const struct profile_timeline *timeline, struct json *json)
{
    const struct profile_run *runs = NULL;
    size_t count = timeline ? timeline->run_count : 0;
    uint64_t begin_ns = timeline ? timeline->begin_ns : 0, end_ns = begin_ns;
    if (timeline)
        runs = &speedscope->profile->runs[timeline->first_run];
    for (size_t i = 0; i < count; i++)
        end_ns += runs[i].time_ns;
    json_break_line(json);
    json_begin(json, NULL, '{');
    json_string(json, "type", "sampled");
    if (timeline)
        write_thread_name(speedscope->profile, timeline, json);
    else
        json_string(json, "name", "no thread was sampled");
    json_string(json, "unit", "nanoseconds");
    json_number(json, "startValue", begin_ns);
    json_number(json, "endValue", end_ns);
    if (timeline)
        json_break_line(json);
    json_begin(json, "samples", '[');
    for (size_t i = 0; i < count && !json->sink->error; i++) {
        json_begin(json, NULL, '[');
        write_stack(speedscope, &runs[i], json);
        json_end(json, ']');
    }
    json_end(json, ']');
    if (timeline)
        json_break_line(json);
    json_begin(json, "weights", '[');
    for (size_t i = 0; i < count && !json->sink->error; i++)
        json_number(json, NULL, runs[i].time_ns);
    json_end(json, ']');
    json_end(json, '}');
}

static void write_timelines(const struct speedscope *speedscope, struct json *json)
{
    const struct fgprof_profile *profile = speedscope->profile;
    uint32_t *order = profile_timelines_idle_last(profile);
    if (!order)
        json->sink->error = -ENOMEM;
    json_break_line(json);
    json_begin(json, "profiles", '[');
    for (size_t i = 0; i < profile->timeline_count && !json->sink->error; i++)
        write_timeline(speedscope, &profile->timelines[order[i]], json);
    free(order);
    if (!profile->timeline_count)
        write_timeline(speedscope, NULL, json);
    sink_write(json->sink, "\n", 1);
    json_end(json, ']');
}

/* Runs have the profile's samples, not the view's: a run that the view leaves out becomes a gap. */
void output_speedscope(const struct fgprof_profile *profile, const struct profile_view *view,
                       struct sink *sink)
{
    (void)view;
    struct speedscope speedscope = {.profile = profile};
    struct json json = {.sink = sink};
    if (!profile->has_timelines) {
        sink->error = -ENODATA;
        return;
    }
    speedscope.of_frame = calloc(frame_numbers(profile) + 1, sizeof *speedscope.of_frame);
    speedscope.states = calloc(profile->sample_count + 1, sizeof *speedscope.states);
    if (!speedscope.of_frame || !speedscope.states || strings_init(&speedscope.strings) ||
        add_stacks(&speedscope))
        sink->error = -ENOMEM;
    json_begin(&json, NULL, '{');
    json_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_break_line(&json);
    json_print(&json, "exporter", "\"fgprof-c@%s\"", fgprof_version());
    if (!sink->error)
        write_frames(&speedscope, &json);
    write_timelines(&speedscope, &json);
    json_end(&json, '}');
    sink_write(sink, "\n", 1);
    free(speedscope.of_frame);
    free(speedscope.states);
    free(speedscope.frames);
    index_free(&speedscope.frame_index);
    strings_free(&speedscope.strings);
}
