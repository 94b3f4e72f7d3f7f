/* The Firefox Profiler's processed format, gzipped: what https://profiler.firefox.com and `samply
 * load` open. Version 60, which later versions upgrade (docs-developer/CHANGELOG-formats.md and
 * src/types/profile.ts in firefox-devtools/profiler).
 *
 * Tables of columns. All threads share a tree of stacks; a thread has samples, and markers for its
 * waits. A sample's weight is time. Each run of a timeline has two samples with half of its time
 * each, one at its begin and one at its end, because the profiler's thread graph ends a sample half
 * way to the next one. The colour of a sample is the category of its leaf: the thread's state. */
#include "output/output.h"
#include "profile/frame.h"
#include "output/json.h"
#include "output/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_VERSION 60
#define GECKO_VERSION 30 /* of the unprocessed format that this one could come from */
#define NO_NUMBER UINT32_MAX

/* The categories: "Other", then the states. */
#define CATEGORY_OF(STATE) ((STATE) + 1)
static const char *const colours[THREAD_STATE_COUNT] = {
    [THREAD_UNKNOWN] = "darkgrey", [THREAD_RUNNING] = "red",
    [THREAD_RUNNABLE] = "yellow",  [THREAD_SLEEPING] = "blue",
    [THREAD_STOPPED] = "magenta",  [THREAD_UNINTERRUPTIBLE] = "purple",
};

struct function {
    uint32_t name, file; /* file: its row in `files`; NO_NUMBER: not known */
    uint32_t mapping;    /* or PROFILE_NO_MAPPING */
};

struct frame {
    uint64_t address; /* as in the mapping's file; UINT64_MAX: not known */
    uint32_t function, line, inline_depth;
    uint32_t category; /* 0: that of its caller */
};

struct node {
    uint32_t prefix_plus_1, frame;
};

struct firefox {
    const struct fgprof_profile *profile;
    struct strings strings;
    uint32_t *files; /* strings */
    size_t file_count, file_capacity;
    struct index file_index;
    struct function *functions;
    size_t function_count, function_capacity;
    struct index function_index;
    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct index frame_index;
    struct node *nodes;
    size_t node_count, node_capacity;
    struct index node_index;
    uint32_t *leaves; /* by sample: its stack's node, + 1; 0: it is left out */
    struct buffer text;
};

/* ---- The tables ---- */

static int add_file(struct firefox *firefox, const char *path, uint32_t *ret_number)
{
    uint32_t string;
    *ret_number = NO_NUMBER;
    if (!*path)
        return 0;
    if (strings_intern(&firefox->strings, path, &string))
        return -ENOMEM;
    return INDEX_INTERN(&firefox->file_index, sizeof string, &string, &firefox->files,
                        &firefox->file_count, &firefox->file_capacity, ret_number);
}

static int add_function(struct firefox *firefox, const char *name, const char *file,
                        uint32_t mapping, uint32_t *ret_number)
{
    struct function function = {.mapping = mapping};
    if (strings_intern(&firefox->strings, name, &function.name) ||
        add_file(firefox, file, &function.file))
        return -ENOMEM;
    return INDEX_INTERN(&firefox->function_index, sizeof function, &function, &firefox->functions,
                        &firefox->function_count, &firefox->function_capacity, ret_number);
}

/* Makes a function of the buffer's text. */
static int add_text_function(struct firefox *firefox, uint32_t mapping, uint32_t *ret_number)
{
    int err = firefox->text.error;
    if (!err)
        err = add_function(firefox, firefox->text.bytes, "", mapping, ret_number);
    buffer_free(&firefox->text);
    return err;
}

/* Adds a call of the frame by the node *node_plus_1, which becomes that. */
static int push(struct firefox *firefox, const struct frame *frame, uint32_t *node_plus_1)
{
    struct node node = {.prefix_plus_1 = *node_plus_1};
    uint32_t number;
    int err = INDEX_INTERN(&firefox->frame_index, sizeof *frame, frame, &firefox->frames,
                           &firefox->frame_count, &firefox->frame_capacity, &node.frame);
    if (!err)
        err = INDEX_INTERN(&firefox->node_index, sizeof node, &node, &firefox->nodes,
                           &firefox->node_count, &firefox->node_capacity, &number);
    if (!err)
        *node_plus_1 = number + 1;
    return err;
}

static uint64_t file_address(const struct fgprof_profile *profile,
                             const struct profile_location *location)
{
    if (location->mapping == PROFILE_NO_MAPPING || !profile->mappings[location->mapping].has_bias)
        return UINT64_MAX;
    return location->address - profile->mappings[location->mapping].bias;
}

static int make_frame(struct firefox *firefox, const struct profile_frame *from,
                      struct frame *ret_frame)
{
    const struct fgprof_profile *profile = firefox->profile;
    const struct profile_location *location = from->location;
    *ret_frame = (struct frame){.address = file_address(profile, location)};
    if (!from->line) {
        frame_append_unnamed(&firefox->text, profile, location, false);
        return add_text_function(firefox, location->mapping, &ret_frame->function);
    }
    const struct profile_line *lines = &profile->lines[location->first_line];
    const struct profile_function *function = &profile->functions[from->line->function];
    ret_frame->line = from->line->line;
    ret_frame->inline_depth = (uint32_t)(lines + location->line_count - 1 - from->line);
    return add_function(firefox, strings_get(&profile->strings, function->name),
                        strings_get(&profile->strings, function->file), location->mapping,
                        &ret_frame->function);
}

/* Adds the stack of a sample, with the sample's state as its leaf's category. */
static int add_stack(struct firefox *firefox, const struct profile_sample *sample,
                     uint32_t *ret_leaf_plus_1)
{
    const struct fgprof_profile *profile = firefox->profile;
    bool has_state = profile->folded_flags & FGPROF_FOLDED_STATE, has_frame = false;
    struct frame_walk walk = {0};
    struct profile_frame from;
    struct frame frame, next;
    int err = 0;
    *ret_leaf_plus_1 = 0;
    while (!err && frame_next_from_root(profile, &profile->stacks[sample->stack], &walk, &from)) {
        err = make_frame(firefox, &from, &next);
        if (!err && has_frame)
            err = push(firefox, &frame, ret_leaf_plus_1);
        frame = next;
        has_frame = true;
    }
    if (!err && has_frame && has_state)
        err = push(firefox, &frame, ret_leaf_plus_1);
    if (err)
        return err;
    if (!has_frame || has_state) {
        frame = (struct frame){.address = UINT64_MAX};
        if (has_state)
            state_append_frame(&firefox->text, profile, sample);
        else
            buffer_puts(&firefox->text, "[unknown]");
        err = add_text_function(firefox, PROFILE_NO_MAPPING, &frame.function);
    }
    frame.category = CATEGORY_OF(sample->state);
    return err ? err : push(firefox, &frame, ret_leaf_plus_1);
}

static int add_stacks(struct firefox *firefox)
{
    const struct fgprof_profile *profile = firefox->profile;
    int err = 0;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (!sample_is_idle(sample) && profile_keeps(profile, sample))
            err = add_stack(firefox, sample, &firefox->leaves[i]);
    }
    return err;
}

/* ---- Columns ---- */

/* A number, or null if it is NO_NUMBER. */
static void write_number(struct json *json, uint32_t number)
{
    if (number == NO_NUMBER)
        json_print(json, NULL, "null");
    else
        json_number(json, NULL, number);
}

/* The number of a string in the table of all. */
static void write_string_number(struct firefox *firefox, struct json *json, const char *text)
{
    uint32_t number = 0;
    if (strings_intern(&firefox->strings, text, &number))
        json->sink->error = -ENOMEM;
    json_number(json, NULL, number);
}

/* The same value in each row. */
static void write_constant(struct json *json, const char *key, size_t rows, const char *value)
{
    json_begin(json, key, '[');
    for (size_t i = 0; i < rows && !json->sink->error; i++)
        json_print(json, NULL, "%s", value);
    json_end(json, ']');
}

#define WRITE_COLUMN(JSON, KEY, ROWS, WRITE)                                                       \
    do {                                                                                           \
        json_begin(JSON, KEY, '[');                                                                \
        for (size_t i = 0; i < (ROWS) && !(JSON)->sink->error; i++)                                \
            WRITE;                                                                                 \
        json_end(JSON, ']');                                                                       \
    } while (0)

static void write_nodes(const struct firefox *firefox, struct json *json)
{
    const struct node *nodes = firefox->nodes;
    json_break_line(json);
    json_begin(json, "stackTable", '{');
    json_number(json, "length", firefox->node_count);
    WRITE_COLUMN(json, "frame", firefox->node_count, json_number(json, NULL, nodes[i].frame));
    WRITE_COLUMN(json, "prefix", firefox->node_count,
                 write_number(json, nodes[i].prefix_plus_1 - 1));
    json_end(json, '}');
}

static void write_address(struct json *json, uint64_t address)
{
    if (address == UINT64_MAX)
        json_print(json, NULL, "-1");
    else
        json_number(json, NULL, address);
}

static void write_frames(const struct firefox *firefox, struct json *json)
{
    const struct frame *frames = firefox->frames;
    size_t count = firefox->frame_count;
    json_break_line(json);
    json_begin(json, "frameTable", '{');
    json_number(json, "length", count);
    WRITE_COLUMN(json, "address", count, write_address(json, frames[i].address));
    WRITE_COLUMN(json, "inlineDepth", count, json_number(json, NULL, frames[i].inline_depth));
    WRITE_COLUMN(json, "category", count,
                 write_number(json, frames[i].category ? frames[i].category : NO_NUMBER));
    write_constant(json, "subcategory", count, "0");
    WRITE_COLUMN(json, "func", count, json_number(json, NULL, frames[i].function));
    write_constant(json, "nativeSymbol", count, "null");
    write_constant(json, "innerWindowID", count, "0");
    WRITE_COLUMN(json, "line", count,
                 write_number(json, frames[i].line ? frames[i].line : NO_NUMBER));
    write_constant(json, "column", count, "null");
    json_end(json, '}');
}

/* A resource is a mapping, with the same number. */
static void write_functions(const struct firefox *firefox, struct json *json)
{
    const struct function *functions = firefox->functions;
    size_t count = firefox->function_count;
    json_break_line(json);
    json_begin(json, "funcTable", '{');
    json_number(json, "length", count);
    WRITE_COLUMN(json, "name", count, json_number(json, NULL, functions[i].name));
    write_constant(json, "isJS", count, "false");
    write_constant(json, "relevantForJS", count, "false");
    WRITE_COLUMN(json, "resource", count,
                 write_address(json, functions[i].mapping == PROFILE_NO_MAPPING
                                         ? UINT64_MAX
                                         : functions[i].mapping));
    WRITE_COLUMN(json, "source", count, write_number(json, functions[i].file));
    write_constant(json, "lineNumber", count, "null");
    write_constant(json, "columnNumber", count, "null");
    json_end(json, '}');
}

static void write_libraries(const struct fgprof_profile *profile, struct json *json)
{
    json_begin(json, "libs", '[');
    for (size_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        const char *path = strings_get(&profile->strings, mapping->path);
        json_break_line(json);
        json_begin(json, NULL, '{');
        json_string(json, "arch", "");
        json_string(json, "name", basename(path));
        json_string(json, "path", path);
        json_string(json, "debugName", basename(path));
        json_string(json, "debugPath", path);
        json_string(json, "breakpadId", "");
        json_string(json, "codeId", strings_get(&profile->strings, mapping->build_id));
        json_end(json, '}');
    }
    json_end(json, ']');
}

static void write_resources(struct firefox *firefox, struct json *json)
{
    const struct fgprof_profile *profile = firefox->profile;
    size_t count = profile->mapping_count;
    json_break_line(json);
    json_begin(json, "resourceTable", '{');
    json_number(json, "length", count);
    WRITE_COLUMN(json, "lib", count, json_number(json, NULL, i));
    WRITE_COLUMN(
        json, "name", count,
        write_string_number(firefox, json,
                            basename(strings_get(&profile->strings, profile->mappings[i].path))));
    write_constant(json, "host", count, "null");
    write_constant(json, "type", count, "1"); /* a library */
    json_end(json, '}');
}

static void write_files(const struct firefox *firefox, struct json *json)
{
    size_t count = firefox->file_count;
    json_break_line(json);
    json_begin(json, "sources", '{');
    json_number(json, "length", count);
    write_constant(json, "uuid", count, "null");
    WRITE_COLUMN(json, "filename", count, json_number(json, NULL, firefox->files[i]));
    json_end(json, '}');
}

/* Comes last, because what is written before it adds strings. */
static void write_shared(struct firefox *firefox, struct json *json)
{
    json_break_line(json);
    json_begin(json, "shared", '{');
    write_nodes(firefox, json);
    write_frames(firefox, json);
    write_functions(firefox, json);
    write_resources(firefox, json);
    json_print(json, "nativeSymbols",
               "{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]}");
    write_files(firefox, json);
    json_break_line(json);
    WRITE_COLUMN(json, "stringArray", firefox->strings.count,
                 json_string(json, NULL, strings_get(&firefox->strings, (uint32_t)i)));
    json_end(json, '}');
}

/* ---- Threads ---- */

static void write_ms(struct json *json, const char *key, uint64_t ns)
{
    json_print(json, key, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
}

/* A run's leaf, + 1; 0: the thread is absent, or its sample is left out. */
static uint32_t leaf_of(const struct firefox *firefox, const struct profile_run *run)
{
    return run->sample == PROFILE_NO_SAMPLE ? 0 : firefox->leaves[run->sample];
}

static bool is_running(const struct firefox *firefox, const struct profile_run *run)
{
    return leaf_of(firefox, run) && sample_is_on_cpu(&firefox->profile->samples[run->sample]);
}

static void write_samples(const struct firefox *firefox, const struct profile_timeline *timeline,
                          struct json *json)
{
    const struct profile_run *runs = &firefox->profile->runs[timeline->first_run];
    size_t count = 2 * timeline->run_count;
    uint64_t at_ns = timeline->begin_ns;
    json_break_line(json);
    json_begin(json, "samples", '{');
    json_number(json, "length", count);
    json_string(json, "weightType", "tracing-ms");
    WRITE_COLUMN(json, "stack", count, write_number(json, leaf_of(firefox, &runs[i / 2]) - 1));
    WRITE_COLUMN(json, "time", count, {
        at_ns += i % 2 ? runs[i / 2].time_ns : 0;
        write_ms(json, NULL, at_ns);
    });
    WRITE_COLUMN(json, "weight", count,
                 write_ms(json, NULL,
                          leaf_of(firefox, &runs[i / 2]) ? (runs[i / 2].time_ns + i % 2) / 2 : 0));
    WRITE_COLUMN(json, "threadCPUDelta", count,
                 json_number(json, NULL,
                             i % 2 && is_running(firefox, &runs[i / 2]) ? runs[i / 2].time_ns : 0));
    json_end(json, '}');
}

/* A wait that may span several runs. */
struct wait {
    uint64_t begin_ns, end_ns;
    const struct profile_sample *sample;
};

static bool is_wait(const struct firefox *firefox, const struct profile_run *run)
{
    if (!leaf_of(firefox, run))
        return false;
    uint32_t state = firefox->profile->samples[run->sample].state;
    return state == THREAD_SLEEPING || state == THREAD_UNINTERRUPTIBLE || state == THREAD_RUNNABLE;
}

static bool is_same_wait(const struct fgprof_profile *profile, const struct profile_sample *a,
                         const struct profile_sample *b)
{
    const struct profile_wait *of_a = a->wait_plus_1 ? &profile->waits[a->wait_plus_1 - 1] : NULL;
    const struct profile_wait *of_b = b->wait_plus_1 ? &profile->waits[b->wait_plus_1 - 1] : NULL;
    return a->state == b->state && a->syscall_name == b->syscall_name &&
           a->wait_channel == b->wait_channel && !of_a == !of_b &&
           (!of_a || of_a->label == of_b->label);
}

static int find_waits(const struct firefox *firefox, const struct profile_timeline *timeline,
                      struct wait **ret_waits, size_t *ret_count)
{
    const struct fgprof_profile *profile = firefox->profile;
    uint64_t at_ns = timeline->begin_ns;
    struct wait *last = NULL;
    *ret_count = 0;
    *ret_waits = malloc((timeline->run_count + 1) * sizeof **ret_waits);
    if (!*ret_waits)
        return -ENOMEM;
    for (size_t i = 0; i < timeline->run_count; i++) {
        const struct profile_run *run = &profile->runs[timeline->first_run + i];
        uint64_t begin_ns = at_ns;
        at_ns += run->time_ns;
        if (!is_wait(firefox, run)) {
            last = NULL;
            continue;
        }
        const struct profile_sample *sample = &profile->samples[run->sample];
        if (!last || !is_same_wait(profile, last->sample, sample)) {
            last = &(*ret_waits)[(*ret_count)++];
            *last = (struct wait){.begin_ns = begin_ns, .sample = sample};
        }
        last->end_ns = at_ns;
    }
    return 0;
}

/* What a marker's row in the chart is called: waits of a kind are in one. */
static const char *wait_name(const struct fgprof_profile *profile,
                             const struct profile_sample *sample)
{
    const struct profile_wait *wait = sample_wait(profile, sample);
    const char *call = strings_get(&profile->strings, sample->syscall_name);
    if (sample->state == THREAD_RUNNABLE)
        return "waits for a CPU";
    if (wait)
        return strings_get(&profile->strings, wait->kind);
    return *call ? call : state_name(sample->state);
}

static void write_wait(const struct fgprof_profile *profile, const struct profile_sample *sample,
                       struct json *json)
{
    const struct profile_wait *wait = sample_wait(profile, sample);
    json_begin(json, NULL, '{');
    json_string(json, "type", "wait");
    if (wait)
        json_string(json, "for", strings_get(&profile->strings, wait->resource));
    if (wait && wait->owner_process != PROFILE_NO_OWNER) {
        char *owner;
        if (asprintf(&owner, wait->owner_tid ? "%s/%" PRIu32 : "%s",
                     strings_get(&profile->strings, wait->owner_name), wait->owner_tid) < 0) {
            json->sink->error = -ENOMEM;
            return;
        }
        json_string(json, "owner", owner);
        free(owner);
    }
    const struct profile_wait *ended = sample_waker(profile, sample);
    if (ended)
        json_string(json, "waker", strings_get(&profile->strings, ended->waker));
    json_string_if_any(json, "call", strings_get(&profile->strings, sample->syscall_name));
    json_string_if_any(json, "kernel", strings_get(&profile->strings, sample->wait_channel));
    json_end(json, '}');
}

static void write_markers(struct firefox *firefox, const struct profile_timeline *timeline,
                          struct json *json)
{
    const struct fgprof_profile *profile = firefox->profile;
    struct wait *waits;
    size_t count;
    if (find_waits(firefox, timeline, &waits, &count)) {
        json->sink->error = -ENOMEM;
        return;
    }
    json_break_line(json);
    json_begin(json, "markers", '{');
    json_number(json, "length", count);
    WRITE_COLUMN(json, "name", count,
                 write_string_number(firefox, json, wait_name(profile, waits[i].sample)));
    WRITE_COLUMN(json, "startTime", count, write_ms(json, NULL, waits[i].begin_ns));
    WRITE_COLUMN(json, "endTime", count, write_ms(json, NULL, waits[i].end_ns));
    write_constant(json, "phase", count, "1"); /* an interval */
    WRITE_COLUMN(json, "category", count,
                 json_number(json, NULL, CATEGORY_OF(waits[i].sample->state)));
    WRITE_COLUMN(json, "data", count, write_wait(profile, waits[i].sample, json));
    json_end(json, '}');
    free(waits);
}

/* NULL if none of its runs has a sample. */
static const struct profile_process *process_of(const struct fgprof_profile *profile,
                                                const struct profile_timeline *timeline)
{
    for (size_t i = 0; i < timeline->run_count; i++) {
        uint32_t sample = profile->runs[timeline->first_run + i].sample;
        if (sample != PROFILE_NO_SAMPLE)
            return &profile->processes[profile->samples[sample].process];
    }
    return NULL;
}

static void write_thread(struct firefox *firefox, const struct profile_timeline *timeline,
                         struct json *json)
{
    const struct fgprof_profile *profile = firefox->profile;
    const struct profile_process *process = process_of(profile, timeline);
    const char *name = strings_get(&profile->strings, timeline->thread_name);
    uint64_t end_ns = timeline->begin_ns;
    for (size_t i = 0; i < timeline->run_count; i++)
        end_ns += profile->runs[timeline->first_run + i].time_ns;
    json_break_line(json);
    json_begin(json, NULL, '{');
    json_string(json, "name", *name ? name : "[unnamed]");
    json_bool(json, "isMainThread", process && process->pid == timeline->tid);
    json_string(json, "processName", process ? strings_get(&profile->strings, process->name) : "");
    json_string(json, "processType", "default");
    json_number(json, "processStartupTime", 0);
    json_print(json, "processShutdownTime", "null");
    write_ms(json, "registerTime", timeline->begin_ns);
    write_ms(json, "unregisterTime", end_ns);
    json_print(json, "pid", "\"%" PRIu32 "\"", process ? process->pid : 0);
    json_number(json, "tid", timeline->tid);
    json_print(json, "pausedRanges", "[]");
    write_samples(firefox, timeline, json);
    write_markers(firefox, timeline, json);
    json_end(json, '}');
}

/* ---- The file ---- */

static void write_category(struct json *json, const char *name, const char *colour)
{
    json_begin(json, NULL, '{');
    json_string(json, "name", name);
    json_string(json, "color", colour);
    json_print(json, "subcategories", "[\"Other\"]");
    json_end(json, '}');
}

static void write_meta(const struct fgprof_profile *profile, struct json *json)
{
    const char *product = profile->process_count
                              ? strings_get(&profile->strings, profile->processes[0].name)
                              : "no thread was sampled";
    json_break_line(json);
    json_begin(json, "meta", '{');
    json_number(json, "version", GECKO_VERSION);
    json_number(json, "preprocessedProfileVersion", FORMAT_VERSION);
    json_string(json, "product", product);
    json_print(json, "importedFrom", "\"fgprof-c %s\"", fgprof_version());
    json_string(json, "arguments", profile_recorded_by(profile));
    write_ms(json, "interval", profile->period_ns);
    write_ms(json, "startTime", profile->start_time_ns);
    json_number(json, "profilingStartTime", 0);
    write_ms(json, "profilingEndTime", profile->summary.elapsed_ns);
    json_number(json, "processType", 0);
    json_number(json, "stackwalk", 1);
    json_bool(json, "symbolicated", true);
    json_bool(json, "usesOnlyOneStackType", true);
    json_bool(json, "sourceCodeIsNotOnSearchfox", true);
    json_print(json, "sampleUnits",
               "{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"}");
    json_begin(json, "categories", '[');
    write_category(json, "Other", "grey");
    for (uint32_t state = 0; state < THREAD_STATE_COUNT; state++)
        write_category(json, state_name(state), colours[state]);
    json_end(json, ']');
    json_print(json, "markerSchema",
               "[{\"name\":\"wait\",\"display\":[\"marker-chart\",\"marker-table\","
               "\"timeline-overview\"],\"tableLabel\":\"{marker.data.for} {marker.data.owner}\","
               "\"chartLabel\":\"{marker.data.for}\",\"fields\":["
               "{\"key\":\"for\",\"label\":\"Waits for\",\"format\":\"string\"},"
               "{\"key\":\"owner\",\"label\":\"Held by\",\"format\":\"string\"},"
               "{\"key\":\"waker\",\"label\":\"Woken by\",\"format\":\"string\"},"
               "{\"key\":\"call\",\"label\":\"System call\",\"format\":\"string\"},"
               "{\"key\":\"kernel\",\"label\":\"Kernel function\",\"format\":\"string\"}]}]");
    json_end(json, '}');
}

static void free_tables(struct firefox *firefox)
{
    free(firefox->files);
    free(firefox->functions);
    free(firefox->frames);
    free(firefox->nodes);
    free(firefox->leaves);
    index_free(&firefox->file_index);
    index_free(&firefox->function_index);
    index_free(&firefox->frame_index);
    index_free(&firefox->node_index);
    strings_free(&firefox->strings);
}

/* Runs have the profile's samples, not the view's: a run that the view leaves out becomes a gap. */
void output_firefox(const struct fgprof_profile *profile, const struct profile_view *view,
                    struct sink *sink)
{
    (void)view;
    struct firefox firefox = {.profile = profile};
    struct json json = {.sink = sink};
    if (!profile->has_timelines) {
        sink->error = -ENODATA;
        return;
    }
    uint32_t *order = profile_timelines_idle_last(profile);
    firefox.leaves = calloc(profile->sample_count + 1, sizeof *firefox.leaves);
    if (!order || !firefox.leaves || strings_init(&firefox.strings) || add_stacks(&firefox))
        sink->error = -ENOMEM;
    json_begin(&json, NULL, '{');
    write_meta(profile, &json);
    json_break_line(&json);
    write_libraries(profile, &json);
    json_begin(&json, "threads", '[');
    for (size_t i = 0; i < profile->timeline_count && !sink->error; i++)
        write_thread(&firefox, &profile->timelines[order[i]], &json);
    if (!profile->timeline_count && !sink->error) /* it does not open a file without threads */
        write_thread(&firefox, &(const struct profile_timeline){0}, &json);
    json_end(&json, ']');
    if (!sink->error)
        write_shared(&firefox, &json);
    json_end(&json, '}');
    sink_write(sink, "\n", 1);
    free_tables(&firefox);
    free(order);
}
