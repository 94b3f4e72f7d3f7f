/* speedscope's JSON (https://www.speedscope.app/file-format-schema.json, jlfwong/speedscope
 * src/lib/file-format-spec.ts): frames that all profiles share, and a "sampled" profile for each
 * thread, with a stack and a weight for each run of its timeline. The format has no gaps: a run
 * that is left out has an empty stack. */
#include "output/output.h"
#include "profile/frame.h"
#include "output/json.h"
#include "output/state.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A row per function, or per line if lines are wanted: for speedscope frames are equal only if they
 * have the same number. */
struct shown_frame {
    uint32_t name;
    uint32_t file;
    uint32_t line; /* 0: not known, or not wanted */
};

struct shown_stack {
    size_t first, depth; /* in `numbers`, root first */
};

struct speedscope {
    const struct fgprof_profile *profile;
    struct strings strings;
    struct shown_frame *frames;
    size_t frame_count, frame_capacity;
    struct index frame_index;
    uint32_t *numbers; /* of frames */
    size_t number_count, number_capacity;
    struct shown_stack *stacks; /* by the profile's stack number */
    uint32_t *states;           /* by sample number: the frame of the sample's state */
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

/* Makes a frame of what was appended to the buffer. */
static int add_text_frame(struct speedscope *speedscope, uint32_t *ret_number)
{
    int err = speedscope->text.error;
    if (!err)
        err = add_frame(speedscope, speedscope->text.bytes, "", 0, ret_number);
    buffer_free(&speedscope->text);
    return err;
}

static int push(struct speedscope *speedscope, uint32_t number)
{
    if (array_reserve(&speedscope->numbers, &speedscope->number_capacity,
                      speedscope->number_count + 1))
        return -ENOMEM;
    speedscope->numbers[speedscope->number_count++] = number;
    return 0;
}

/* Adds a frame and then the frames inlined in it: outermost first. */
static int push_location(struct speedscope *speedscope, const struct profile_location *location)
{
    const struct fgprof_profile *profile = speedscope->profile;
    bool has_lines = profile->folded_flags & FGPROF_FOLDED_LINES;
    uint32_t number;
    int err = 0;
    if (!location->line_count) {
        frame_append_unnamed(&speedscope->text, profile, location, has_lines);
        err = add_text_frame(speedscope, &number);
        return err ? err : push(speedscope, number);
    }
    for (uint32_t i = location->line_count; i-- > 0 && !err;) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        const struct profile_function *function = &profile->functions[line->function];
        err = add_frame(speedscope, strings_get(&profile->strings, function->name),
                        strings_get(&profile->strings, function->file), has_lines ? line->line : 0,
                        &number);
        if (!err)
            err = push(speedscope, number);
    }
    return err;
}

static int add_stacks(struct speedscope *speedscope)
{
    const struct fgprof_profile *profile = speedscope->profile;
    int err = 0;
    for (size_t i = 0; i < profile->stack_count && !err; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        struct shown_stack *shown = &speedscope->stacks[i];
        shown->first = speedscope->number_count;
        for (size_t j = stack->depth; j-- > 0 && !err;)
            err = push_location(
                speedscope,
                &profile->locations[profile->stack_locations[stack->first_location + j]]);
        if (!err && !stack->depth) {
            buffer_puts(&speedscope->text, "[unknown]");
            uint32_t number;
            err = add_text_frame(speedscope, &number);
            if (!err)
                err = push(speedscope, number);
        }
        shown->depth = speedscope->number_count - shown->first;
    }
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        if (!(profile->folded_flags & FGPROF_FOLDED_STATE))
            break;
        state_append_frame(&speedscope->text, profile, &profile->samples[i]);
        err = add_text_frame(speedscope, &speedscope->states[i]);
    }
    return err;
}

static void put_string(struct sink *sink, const char *text)
{
    struct buffer string = {0};
    json_append_string(&string, text);
    sink_put(sink, &string);
}

static void write_frames(const struct speedscope *speedscope, struct sink *sink)
{
    sink_print(sink, "\"shared\":{\"frames\":[");
    for (size_t i = 0; i < speedscope->frame_count; i++) {
        const struct shown_frame *frame = &speedscope->frames[i];
        const char *file = strings_get(&speedscope->strings, frame->file);
        sink_print(sink, "%s\n{\"name\":", i ? "," : "");
        put_string(sink, strings_get(&speedscope->strings, frame->name));
        if (*file) {
            sink_print(sink, ",\"file\":");
            put_string(sink, file);
        }
        if (frame->line)
            sink_print(sink, ",\"line\":%" PRIu32, frame->line);
        sink_print(sink, "}");
    }
    sink_print(sink, "\n]},\n");
}

static void write_stack(const struct speedscope *speedscope, const struct profile_run *run,
                        struct sink *sink)
{
    const struct fgprof_profile *profile = speedscope->profile;
    if (run->sample == PROFILE_NO_SAMPLE || !profile_keeps(profile, &profile->samples[run->sample]))
        return;
    const struct shown_stack *stack = &speedscope->stacks[profile->samples[run->sample].stack];
    for (size_t i = 0; i < stack->depth; i++)
        sink_print(sink, "%s%" PRIu32, i ? "," : "", speedscope->numbers[stack->first + i]);
    if (profile->folded_flags & FGPROF_FOLDED_STATE)
        sink_print(sink, ",%" PRIu32, speedscope->states[run->sample]);
}

static void write_thread_name(const struct fgprof_profile *profile,
                              const struct profile_timeline *timeline, struct sink *sink)
{
    const char *name = strings_get(&profile->strings, timeline->thread_name);
    char *text;
    if (asprintf(&text, "%s/%" PRIu32 "%s", *name ? name : "[unnamed]", timeline->tid,
                 timeline->lost_ns ? " (ends early: timelines were full)" : "") < 0) {
        sink->error = sink->error ? sink->error : -ENOMEM;
        return;
    }
    put_string(sink, text);
    free(text);
}

static void write_timeline(const struct speedscope *speedscope,
                           const struct profile_timeline *timeline, struct sink *sink)
{
    const struct profile_run *runs = &speedscope->profile->runs[timeline->first_run];
    uint64_t end_ns = timeline->begin_ns;
    for (size_t i = 0; i < timeline->run_count; i++)
        end_ns += runs[i].time_ns;
    sink_print(sink, "{\"type\":\"sampled\",\"name\":");
    write_thread_name(speedscope->profile, timeline, sink);
    sink_print(sink,
               ",\"unit\":\"nanoseconds\",\"startValue\":%" PRIu64 ",\"endValue\":%" PRIu64
               ",\n\"samples\":[",
               timeline->begin_ns, end_ns);
    for (size_t i = 0; i < timeline->run_count && !sink->error; i++) {
        sink_print(sink, i ? ",[" : "[");
        write_stack(speedscope, &runs[i], sink);
        sink_print(sink, "]");
    }
    sink_print(sink, "],\n\"weights\":[");
    for (size_t i = 0; i < timeline->run_count && !sink->error; i++)
        sink_print(sink, "%s%" PRIu64, i ? "," : "", runs[i].time_ns);
    sink_print(sink, "]}");
}

/* speedscope can't open a file without a profile. */
static void write_timelines(const struct speedscope *speedscope, struct sink *sink)
{
    const struct fgprof_profile *profile = speedscope->profile;
    sink_print(sink, "\"profiles\":[\n");
    for (size_t i = 0; i < profile->timeline_count && !sink->error; i++) {
        sink_print(sink, i ? ",\n" : "");
        write_timeline(speedscope, &profile->timelines[i], sink);
    }
    if (!profile->timeline_count)
        sink_print(sink, "{\"type\":\"sampled\",\"name\":\"no thread was sampled\",\"unit\":"
                         "\"nanoseconds\",\"startValue\":0,\"endValue\":0,\"samples\":[],"
                         "\"weights\":[]}");
    sink_print(sink, "\n]}\n");
}

/* Runs have the profile's samples, not the view's: a run that the view leaves out becomes a gap. */
void output_speedscope(const struct fgprof_profile *profile, const struct profile_view *view,
                       struct sink *sink)
{
    (void)view;
    struct speedscope speedscope = {.profile = profile};
    if (!profile->has_timelines) {
        sink->error = -ENODATA;
        return;
    }
    speedscope.stacks = calloc(profile->stack_count + 1, sizeof *speedscope.stacks);
    speedscope.states = calloc(profile->sample_count + 1, sizeof *speedscope.states);
    if (!speedscope.stacks || !speedscope.states || strings_init(&speedscope.strings) ||
        add_stacks(&speedscope))
        sink->error = -ENOMEM;
    sink_print(sink,
               "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
               "\"exporter\":\"fgprof-c@%s\",\n",
               fgprof_version());
    if (!sink->error)
        write_frames(&speedscope, sink);
    write_timelines(&speedscope, sink);
    free(speedscope.stacks);
    free(speedscope.states);
    free(speedscope.frames);
    free(speedscope.numbers);
    index_free(&speedscope.frame_index);
    strings_free(&speedscope.strings);
}
