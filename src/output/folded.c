/* Folded stacks, as flamegraph.pl reads them (brendangregg/FlameGraph): "root;caller;leaf COUNT",
 * one line per stack, sorted bytewise. The difference of two profiles is written as difffolded.pl
 * writes it: "root;caller;leaf COUNT1 COUNT2", with 0 for a stack that one of them lacks. */
#include "output/output.h"
#include "profile/frame.h"
#include "output/state.h"
#include "base/name.h"
#include "profile/objects.h"
#include "profile/view.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Stacks as lines of text. */
struct folded_line {
    char *stack;
    uint64_t count; /* ticks; for objects the value that is shown first: bytes or a number */
};

struct folded_lines {
    struct folded_line *items; /* sorted bytewise; each stack is there once */
    size_t count;
};

/* A ';' in a frame would begin the next frame. */
static void replace_separators(struct buffer *buffer, size_t from)
{
    for (size_t i = from; i < buffer->length; i++) {
        if (buffer->bytes[i] == ';')
            buffer->bytes[i] = ':';
    }
}

/* Marks lines as perf's stackcollapse does: _[i] inlined, _[j] generated. */
static void append_frame(struct buffer *buffer, const struct fgprof_profile *profile,
                         const struct profile_frame *frame)
{
    const struct profile_location *location = frame->location;
    const struct profile_line *line = frame->line;
    bool has_lines = profile->folded_flags & FGPROF_FOLDED_LINES;
    if (!line) {
        frame_append_unnamed(buffer, profile, location, has_lines);
        return;
    }
    const struct profile_function *function = &profile->functions[line->function];
    name_append(buffer, strings_get(&profile->strings, function->name));
    if (has_lines && function->file) {
        const char *file = strings_get(&profile->strings, function->file);
        buffer_puts(buffer, " (");
        name_append(buffer, basename(file));
        buffer_print(buffer, ":%" PRIu32 ")", line->line);
    }
    if (line->is_inlined)
        buffer_puts(buffer, "_[i]");
    if (location->is_kernel)
        buffer_puts(buffer, "_[k]");
    if (location->jit_function_plus_1)
        buffer_puts(buffer, "_[j]");
}

static void append_frames(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_stack *stack)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    while (frame_next_from_root(profile, stack, &walk, &frame)) {
        buffer_puts(buffer, buffer->length ? ";" : "");
        size_t from = buffer->length;
        append_frame(buffer, profile, &frame);
        replace_separators(buffer, from);
    }
    if (!stack->depth)
        buffer_puts(buffer, buffer->length ? ";[unknown]" : "[unknown]");
}

static void append_process(struct buffer *buffer, const struct fgprof_profile *profile,
                           const struct profile_sample *sample)
{
    const struct profile_process *process = &profile->processes[sample->process];
    const char *name = strings_get(&profile->strings, process->name);
    name_append(buffer, *name ? name : "[unnamed]");
    if (process->pid)
        buffer_print(buffer, "/%" PRIu32, process->pid);
    replace_separators(buffer, 0);
}

/* A goroutine may have the id of a thread. */
static void append_thread(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_sample *sample)
{
    const char *name = strings_get(&profile->strings, sample->thread_name);
    buffer_puts(buffer, buffer->length ? ";" : "");
    size_t from = buffer->length;
    name_append(buffer, *name ? name : "[unnamed]");
    if (sample->tid)
        buffer_print(buffer, "/%s%" PRIu32, sample->is_goroutine ? "goroutine " : "", sample->tid);
    replace_separators(buffer, from);
}

/* Appends frames for the requested labels, in that order. A label that the sample lacks has no
 * frame. */
static void append_root_labels(struct buffer *buffer, const struct fgprof_profile *profile,
                               const struct profile_sample *sample)
{
    for (size_t i = 0; i < profile->root_label_count; i++) {
        const struct profile_label *label;
        for (uint32_t j = 0; (label = sample_label(profile, sample, j)); j++) {
            if (strcmp(strings_get(&profile->strings, label->key), profile->root_labels[i]) != 0)
                continue;
            buffer_puts(buffer, buffer->length ? ";" : "");
            size_t from = buffer->length;
            name_append(buffer, strings_get(&profile->strings, label->value));
            replace_separators(buffer, from);
        }
    }
}

/* flamegraph.pl takes the last number of a line as the count, so the rest must not end in another
 * number, as a name such as "step 12" would. */
static void hide_count(struct buffer *buffer)
{
    size_t at = buffer->length;
    while (at && strchr("0123456789.", buffer->bytes[at - 1]))
        at--;
    if (at && at < buffer->length && strchr(" \t", buffer->bytes[at - 1]))
        buffer->bytes[at - 1] = '_';
}

/* Objects need not have a thread. */
static bool tells_thread(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    return profile_is_of_objects(profile) ? sample->thread_name || sample->tid
                                          : !sample_is_idle(sample);
}

static char *fold(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    struct buffer buffer = {0};
    const struct profile_stack *stack = &profile->stacks[sample->stack];
    if (profile->folded_flags & FGPROF_FOLDED_PROCESSES)
        append_process(&buffer, profile, sample);
    append_root_labels(&buffer, profile, sample);
    if (profile->folded_flags & FGPROF_FOLDED_THREADS && tells_thread(profile, sample))
        append_thread(&buffer, profile, sample);
    append_frames(&buffer, profile, stack);
    if (profile->folded_flags & FGPROF_FOLDED_STATE && !sample_is_idle(sample) &&
        !profile_is_of_objects(profile)) {
        size_t from = buffer.length + 1;
        buffer_puts(&buffer, ";");
        state_append_frame(&buffer, profile, sample);
        replace_separators(&buffer, from);
    }
    hide_count(&buffer);
    if (buffer.error) {
        buffer_free(&buffer);
        return NULL;
    }
    return buffer.bytes;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct folded_line *)a)->stack, ((const struct folded_line *)b)->stack);
}

/* Whether a line has a count. Differences of objects may be negative, in two's complement, which
 * flamegraph.pl can't read. */
static bool is_shown(const struct fgprof_profile *profile, uint64_t count)
{
    return count && (!profile_is_of_objects(profile) || count <= INT64_MAX);
}

/* Merges equal lines, which are neighbours, and drops those without a count. */
static size_t join_equal(const struct fgprof_profile *profile, struct folded_line *lines,
                         size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        struct folded_line sum = {.stack = lines[i].stack};
        for (; i < count && strcmp(lines[i].stack, sum.stack) == 0; i++) {
            sum.count += lines[i].count;
            if (lines[i].stack != sum.stack)
                free(lines[i].stack);
        }
        if (is_shown(profile, sum.count))
            lines[kept++] = sum;
        else
            free(sum.stack);
    }
    return kept;
}

/* Converts nanoseconds to ticks. Rounds running sums instead of single lines, so that the total
 * stays right. */
static void count_ticks(struct folded_lines *lines, uint64_t period_ns)
{
    uint64_t sum_ns = period_ns / 2, ticks = 0;
    size_t kept = 0;
    if (!period_ns)
        period_ns = 1; /* a file may say anything */
    for (size_t i = 0; i < lines->count; i++) {
        struct folded_line line = lines->items[i];
        sum_ns += line.count;
        line.count = sum_ns / period_ns - ticks;
        ticks += line.count;
        if (line.count)
            lines->items[kept++] = line;
        else
            free(line.stack);
    }
    lines->count = kept;
}

static uint64_t count_of(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    if (profile_is_of_objects(profile))
        return (uint64_t)objects_main_value(profile, sample);
    return profile->folded_flags & FGPROF_FOLDED_ELAPSED ? sample->elapsed_ns : sample->count;
}

static void folded_lines_free(struct folded_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i].stack);
    free(lines->items);
    *lines = (struct folded_lines){0};
}

/* Folds the view's samples as the profile's folded_flags say. Returns 0, -ENODATA if they ask for
 * elapsed time and it is not known, or -ENOMEM. */
static int folded_lines_make(const struct fgprof_profile *profile, const struct profile_view *view,
                             struct folded_lines *ret_lines)
{
    bool is_elapsed = profile->folded_flags & FGPROF_FOLDED_ELAPSED;
    if (is_elapsed && !profile->has_elapsed)
        return -ENODATA;
    struct folded_lines lines = {calloc(view->sample_count + 1, sizeof *lines.items), 0};
    if (!lines.items)
        return -ENOMEM;
    for (size_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        char *stack = fold(profile, sample);
        if (!stack) {
            folded_lines_free(&lines);
            return -ENOMEM;
        }
        lines.items[lines.count++] = (struct folded_line){stack, count_of(profile, sample)};
    }
    array_sort(lines.items, lines.count, compare);
    lines.count = join_equal(profile, lines.items, lines.count);
    if (is_elapsed)
        count_ticks(&lines, profile->period_ns);
    *ret_lines = lines;
    return 0;
}

void output_folded(const struct fgprof_profile *profile, const struct profile_view *view,
                   struct sink *sink)
{
    struct folded_lines lines = {0};
    int err = folded_lines_make(profile, view, &lines);
    if (err)
        sink->error = err;
    for (size_t i = 0; i < lines.count && !sink->error; i++) {
        sink_write(sink, lines.items[i].stack, strlen(lines.items[i].stack));
        sink_print(sink, " %" PRIu64 "\n", lines.items[i].count);
    }
    folded_lines_free(&lines);
}

static uint64_t total(const struct folded_lines *lines)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < lines->count; i++)
        sum += lines->items[i].count;
    return sum;
}

/* Saturates, because a file may have counts of any size. */
static uint64_t scaled(uint64_t count, double scale)
{
    double wanted = (double)count * scale;
    return wanted < (double)UINT64_MAX ? (uint64_t)wanted : UINT64_MAX;
}

static void put_joined(struct sink *sink, const struct folded_lines *before,
                       const struct folded_lines *after, double scale)
{
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : strcmp(before->items[i].stack, after->items[j].stack);
        const char *stack = order <= 0 ? before->items[i].stack : after->items[j].stack;
        uint64_t count1 = order <= 0 ? before->items[i++].count : 0;
        uint64_t count2 = order >= 0 ? after->items[j++].count : 0;
        if (scale != 1)
            count1 = scaled(count1, scale);
        sink_write(sink, stack, strlen(stack));
        sink_print(sink, " %" PRIu64 " %" PRIu64 "\n", count1, count2);
    }
}

void output_folded_difference(const struct profile_pair *pair, bool is_normalized,
                              struct sink *sink)
{
    struct folded_lines before = {0}, after = {0};
    int err = folded_lines_make(pair->before, &pair->view_before, &before);
    if (!err)
        err = folded_lines_make(pair->after, &pair->view_after, &after);
    if (err) {
        sink->error = sink->error ? sink->error : err;
    } else {
        uint64_t total1 = total(&before), total2 = total(&after);
        double scale = is_normalized && total1 ? (double)total2 / (double)total1 : 1;
        put_joined(sink, &before, &after, scale);
    }
    folded_lines_free(&before);
    folded_lines_free(&after);
}
