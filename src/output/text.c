/* Go's legacy profile text, as printCountProfile of its runtime/pprof/pprof.go writes it for
 * debug=1 and pprof's parseGoCount (profile/legacy_profile.go) reads it. */
#include "profile/frame.h"
#include "output/output.h"
#include "output/state.h"
#include "profile/kind.h"
#include "profile/objects.h"
#include "base/utf8.h"
#include "profile/view.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lines that profiles of memory have instead of counts, and a map of files for all readers of
 * profiles of objects. The format is that of the heap profiles of gperftools and Go
 * (runtime/pprof/pprof.go, writeHeapInternal), as pprof's parseHeap (profile/legacy_profile.go) and
 * google-pprof's ReadHeapProfile read it. A line has "OBJECTS: BYTES [OBJECTS: BYTES] @ ADDRESSES":
 * what is in use, then everything that was made.
 *
 * The header ends with the kind of values. "heap_v2/RATE": they are of sampled objects, and the
 * reader scales them, as it does for Go, whose header ends in "heap/" and twice the rate.
 * google-pprof takes that for another kind of sampling, and divides by the objects in use, which
 * may be 0. "heapprofile" and "growthz" are not scaled; of the latter pprof reads only what is in
 * use. */

/* Whether the profile's text is that of memory: of allocations, or of pages. */
static bool memory_text_is_for(const struct fgprof_profile *profile)
{
    return objects_are_of_heap(profile) || profile->kind == FGPROF_KIND_GROWTH;
}

/* Readers reject negative numbers here. */
static uint64_t not_negative(uint64_t value)
{
    return value <= INT64_MAX ? value : 0;
}

/* The first line. */
static void memory_text_head(struct sink *sink, const struct fgprof_profile *profile,
                             const struct profile_view *view)
{
    struct profile_sample sum = {0};
    uint64_t made_bytes = 0, used_bytes = 0;
    for (size_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        sum.made += sample->made;
        sum.gone += sample->gone;
        made_bytes += sample->made * sample->object_bytes;
        used_bytes += (sample->made - sample->gone) * sample->object_bytes;
    }
    uint64_t made = not_negative(sum.made), used = not_negative(sum.made - sum.gone);
    made_bytes = not_negative(made_bytes);
    used_bytes = not_negative(used_bytes);
    /* pprof takes equal pairs for a profile of only what is in use; Go does the same. */
    if (objects_are_of_heap(profile) && used_bytes == made_bytes)
        made_bytes++;
    sink_print(sink, "heap profile: %" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @ ", used,
               used_bytes, made, made_bytes);
    if (profile->kind == FGPROF_KIND_GROWTH)
        sink_print(sink, "growthz\n");
    else if (profile->objects.rate > 1)
        sink_print(sink, "heap_v2/%" PRIu64 "\n", profile->objects.rate);
    else
        sink_print(sink, "heapprofile\n");
}

/* The values of a stack's line, before its addresses. */
static void memory_text_values(struct sink *sink, const struct profile_sample *sample)
{
    uint64_t used = sample->made - sample->gone;
    sink_print(sink, "%" PRId64 ": %" PRId64 " [%" PRIu64 ": %" PRIu64 "] ", (int64_t)used,
               (int64_t)(used * sample->object_bytes), not_negative(sample->made),
               not_negative(sample->made * sample->object_bytes));
}

static void put_number(struct sink *sink, const char *name, uint64_t value)
{
    if (value)
        sink_print(sink, "# %s = %" PRIu64 "\n", name, value);
}

/* What is known about the process's memory, as comments, with Go's names. */
static void memory_text_comments(struct sink *sink, const struct fgprof_profile *profile)
{
    const struct profile_objects *objects = &profile->objects;
    if (objects->heap_arena || objects->heap_mmap)
        sink_print(sink, "# mallinfo2\n");
    put_number(sink, "HeapSys", objects->heap_arena + objects->heap_mmap);
    put_number(sink, "HeapAlloc", objects->heap_used + objects->heap_mmap);
    put_number(sink, "HeapIdle", objects->heap_free);
    put_number(sink, "MaxRSS", objects->resident_peak);
}

/* Where files were mapped, as in /proc/PID/maps. Readers expect nothing after it, and end a path at
 * a space. */
static void memory_text_map(struct sink *sink, const struct fgprof_profile *profile)
{
    sink_print(sink, "--- Memory map: ---\n");
    for (size_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *mapping = &profile->mappings[i];
        const char *path = strings_get(&profile->strings, mapping->path);
        if (*path != '/')
            continue;
        struct buffer line = {0};
        buffer_print(&line, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", mapping->start,
                     mapping->limit, mapping->offset);
        name_append(&line, path);
        buffer_puts(&line, "\n");
        sink_put(sink, &line);
    }
}

/* pprof's scanner rejects lines of 64 KiB (bufio.MaxScanTokenSize). */
#define ADDRESS_LINE_MAX 65000
#define CELL_MAX 16000
#define LABEL_MAX 1000 /* those of a process are shorter, but a recording may come from anyone */
#define TAB_WIDTH 8

struct text_sample {
    const struct profile_sample *sample;
    int64_t rank; /* what it has of the value that is shown first */
    char *key;    /* "@ 0x1 0x2\n# labels: {...}": Go's sort key for equal ranks */
};

/* A row about a frame: "#\tADDRESS\tFUNCTION\tPLACE"; the last cells may be missing. */
struct row {
    char *cells[3];
    size_t widths[2]; /* of the first two, padded to where the next begins */
};

/* Appends a string as Go's %q writes it. */
static void append_quoted(struct buffer *buffer, const char *text)
{
    buffer_puts(buffer, "\"");
    while (*text) {
        size_t plain = strcspn(text, "\"\\");
        char *part = strndup(text, plain);
        if (part)
            name_append(buffer, part);
        else
            buffer->error = -ENOMEM;
        free(part);
        text += plain;
        if (*text) {
            buffer_puts(buffer, "\\");
            buffer_write(buffer, text++, 1);
        }
    }
    buffer_puts(buffer, "\"");
}

/* Cuts the text at a character's end (UTF-8). */
static void cut(struct buffer *text, size_t length)
{
    if (text->length <= length)
        return;
    text->length = utf8_cut(text->bytes, text->length, length);
    buffer_puts(text, "...");
}

static void append_label(struct buffer *buffer, const char *key, const char *value)
{
    struct buffer shown = {0};
    buffer_puts(buffer, buffer->length && buffer->bytes[buffer->length - 1] == '{' ? "" : ", ");
    append_quoted(buffer, key);
    buffer_puts(buffer, ":");
    buffer_puts(&shown, value);
    cut(&shown, LABEL_MAX);
    if (shown.error)
        buffer->error = shown.error;
    else
        append_quoted(buffer, shown.bytes);
    buffer_free(&shown);
}

#define OWN_LABELS_MAX 13
#define NUMBER_BYTES 16

struct text_label {
    const char *key, *value;
};

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct text_label *)a)->key, ((const struct text_label *)b)->key);
}

/* Room for the labels that are numbers. */
struct number_texts {
    char tid[NUMBER_BYTES], pid[NUMBER_BYTES], goroutine[NUMBER_BYTES];
};

/* The labels of every profile, at most OWN_LABELS_MAX. Returns how many. */
static size_t own_labels(const struct fgprof_profile *profile, const struct profile_sample *sample,
                         struct number_texts *numbers, struct text_label *ret_labels)
{
    const struct strings *strings = &profile->strings;
    const struct profile_wait *wait = sample_wait(profile, sample);
    size_t count = 0;
    snprintf(numbers->tid, NUMBER_BYTES, "%" PRIu32, sample->tid);
    snprintf(numbers->goroutine, NUMBER_BYTES, "%" PRIu32, sample->goroutine);
    if (wait && wait->owner_process != PROFILE_NO_OWNER)
        ret_labels[count++] = (struct text_label){"owner", strings_get(strings, wait->owner_name)};
    if (profile_shows_processes(profile)) {
        const struct profile_process *process = &profile->processes[sample->process];
        snprintf(numbers->pid, NUMBER_BYTES, "%" PRIu32, process->pid);
        ret_labels[count++] = (struct text_label){"pid", numbers->pid};
        ret_labels[count++] = (struct text_label){"process", strings_get(strings, process->name)};
    }
    if (wait) {
        ret_labels[count++] = (struct text_label){"resource", strings_get(strings, wait->resource)};
        ret_labels[count++] = (struct text_label){"wait", strings_get(strings, wait->kind)};
    }
    if (!profile_is_of_objects(profile))
        ret_labels[count++] = (struct text_label){"state", state_name(sample->state)};
    if (sample->syscall_name)
        ret_labels[count++] = (struct text_label){sample->is_goroutine ? "wait_reason" : "syscall",
                                                  strings_get(strings, sample->syscall_name)};
    if (!profile_is_of_objects(profile) || sample->thread_name)
        ret_labels[count++] =
            (struct text_label){"thread", strings_get(strings, sample->thread_name)};
    if (sample->tid)
        ret_labels[count++] =
            (struct text_label){sample->is_goroutine ? "goroutine" : "tid", numbers->tid};
    if (sample->goroutine)
        ret_labels[count++] = (struct text_label){"goroutine", numbers->goroutine};
    if (sample->wait_channel)
        ret_labels[count++] =
            (struct text_label){"wait_channel", strings_get(strings, sample->wait_channel)};
    const struct profile_wait *ended = sample_waker(profile, sample);
    if (ended)
        ret_labels[count++] = (struct text_label){"waker", strings_get(strings, ended->waker)};
    if (ended && ended->waker_path)
        ret_labels[count++] =
            (struct text_label){"waker_stack", strings_get(strings, ended->waker_path)};
    return count;
}

/* Appends the labels sorted by key, as Go writes them; nothing if there are none. */
static void append_labels(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_sample *sample)
{
    const struct profile_label *label;
    struct number_texts numbers;
    uint32_t theirs = 0;
    while (sample_label(profile, sample, theirs))
        theirs++;
    struct text_label *labels = calloc(OWN_LABELS_MAX + (size_t)theirs, sizeof *labels);
    if (!labels) {
        buffer->error = -ENOMEM;
        return;
    }
    size_t count = own_labels(profile, sample, &numbers, labels);
    for (uint32_t i = 0; (label = sample_label(profile, sample, i)); i++)
        labels[count++] = (struct text_label){strings_get(&profile->strings, label->key),
                                              strings_get(&profile->strings, label->value)};
    array_sort(labels, count, compare_labels);
    buffer_puts(buffer, count ? "# labels: {" : "");
    for (size_t i = 0; i < count; i++)
        append_label(buffer, labels[i].key, labels[i].value);
    buffer_puts(buffer, count ? "}\n" : "");
    free(labels);
}

/* pprof subtracts one from every address, so each is written plus one. Notes and kernel functions
 * have no address; pprof sees 0 for them. */
void text_append_addresses(struct buffer *buffer, const struct fgprof_profile *profile,
                           const struct profile_stack *stack)
{
    size_t begin = buffer->length;
    for (size_t i = 0; i < stack->depth && buffer->length - begin < ADDRESS_LINE_MAX; i++) {
        buffer_print(buffer, " 0x%" PRIx64, stack_location(profile, stack, i)->address + 1);
    }
}

static char *key_of(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    struct buffer buffer = {0};
    buffer_puts(&buffer, "@");
    text_append_addresses(&buffer, profile, &profile->stacks[sample->stack]);
    buffer_puts(&buffer, "\n");
    append_labels(&buffer, profile, sample);
    if (buffer.error) {
        buffer_free(&buffer);
        return NULL;
    }
    return buffer.bytes;
}

static int compare(const void *a, const void *b)
{
    const struct text_sample *left = a, *right = b;
    int order = ORDER(right->rank, left->rank);
    return order ? order : strcmp(left->key, right->key);
}

static int make_row(const struct fgprof_profile *profile, const struct profile_frame *frame,
                    struct row *ret_row)
{
    const struct profile_location *location = frame->location;
    const struct profile_line *line = frame->line;
    struct buffer cells[3] = {0};
    bool has_address = !location->is_note && !location->is_kernel;
    buffer_print(&cells[0], "0x%" PRIx64, location->address + (has_address ? 0 : 1));
    if (line) {
        const struct profile_function *function = &profile->functions[line->function];
        name_append(&cells[1], strings_get(&profile->strings, function->name));
        if (has_address)
            buffer_print(&cells[1], "+0x%" PRIx64, location->function_offset);
        if (function->file) {
            name_append(&cells[2], strings_get(&profile->strings, function->file));
            buffer_print(&cells[2], ":%" PRIu32, line->line);
        }
    } else {
        frame_append_unnamed(&cells[1], profile, location, true);
    }
    int err = 0;
    for (size_t i = 0; i < 3; i++) {
        cut(&cells[i], CELL_MAX); /* three of them must fit in a line */
        ret_row->cells[i] = cells[i].bytes;
        err = err ? err : cells[i].error;
    }
    return err;
}

static size_t rows_of(const struct fgprof_profile *profile, const struct profile_stack *stack)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    size_t rows = 0;
    while (frame_next_from_leaf(profile, stack, &walk, &frame))
        rows++;
    return rows;
}

/* Sets the width of `column`, padding included. As in Go's text/tabwriter, a column extends over
 * neighbouring rows that have the cell and one after it. */
static void measure(struct row *rows, size_t count, size_t column)
{
    for (size_t first = 0, end; first<count; first = end> first ? end : first + 1) {
        size_t width = 0;
        for (end = first; end < count && rows[end].cells[column + 1]; end++) {
            size_t cell =
                utf8_columns(rows[end].cells[column], strlen(rows[end].cells[column])) + 1;
            width = cell > width ? cell : width;
        }
        for (size_t i = first; i < end; i++)
            rows[i].widths[column] = (width + TAB_WIDTH - 1) / TAB_WIDTH * TAB_WIDTH;
    }
}

static void put_rows(struct sink *sink, struct row *rows, size_t count)
{
    measure(rows, count, 0);
    measure(rows, count, 1);
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        sink_write(sink, "#\t", 2);
        size_t column = 0;
        for (; column < 2 && row->cells[column + 1]; column++) {
            sink_write(sink, row->cells[column], strlen(row->cells[column]));
            size_t used = utf8_columns(row->cells[column], strlen(row->cells[column]));
            for (; used < row->widths[column]; used = (used / TAB_WIDTH + 1) * TAB_WIDTH)
                sink_write(sink, "\t", 1);
        }
        sink_write(sink, row->cells[column], strlen(row->cells[column]));
        sink_write(sink, "\n", 1);
    }
}

void text_put_stack(struct sink *sink, const struct fgprof_profile *profile,
                    const struct profile_stack *stack)
{
    size_t count = 0;
    struct row *rows = calloc(rows_of(profile, stack) + 1, sizeof *rows);
    struct frame_walk walk = {0};
    struct profile_frame frame;
    if (!rows)
        sink->error = -ENOMEM;
    while (rows && frame_next_from_leaf(profile, stack, &walk, &frame)) {
        int err = make_row(profile, &frame, &rows[count++]);
        if (err)
            sink->error = err;
    }
    if (!sink->error)
        put_rows(sink, rows, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < 3; j++)
            free(rows[i].cells[j]);
    }
    free(rows);
}

/* The kind of a profile of counts, without spaces, as pprof expects it. */
static void put_kind(struct sink *sink, const struct fgprof_profile *profile)
{
    struct buffer name = {0};
    name_append(&name, profile_is_of_objects(profile)     ? objects_kind_name(profile)
                       : profile->kind == FGPROF_KIND_CPU ? "cpu"
                                                          : "wallclock");
    for (size_t i = 0; i < name.length; i++) {
        if (name.bytes[i] == ' ')
            name.bytes[i] = '_';
    }
    sink_put(sink, &name);
}

/* For contentions, the header of Go's writeProfileInternal (runtime/pprof/pprof.go); pprof's
 * parseContention reads what follows as "CYCLES COUNT @ ADDRESSES". */
static void put_head(struct sink *sink, const struct fgprof_profile *profile,
                     const struct profile_view *view, uint64_t total)
{
    if (memory_text_is_for(profile)) {
        memory_text_head(sink, profile, view);
    } else if (profile_is_of_contentions(profile)) {
        sink_print(sink, "--- %s:\ncycles/second=1000000000\nsampling period=1\n",
                   profile->kind == FGPROF_KIND_MUTEX ? "mutex" : "contention");
    } else {
        put_kind(sink, profile);
        sink_print(sink, " profile: total %" PRIu64 "\n", total);
    }
}

/* pprof's readers skip lines that begin so. */
static void put_comment(struct sink *sink, const char *before, const char *text)
{
    struct buffer line = {0};
    buffer_print(&line, "# %s", before);
    name_append(&line, text);
    buffer_puts(&line, "\n");
    sink_put(sink, &line);
}

static void put_comments(struct sink *sink, const struct fgprof_profile *profile)
{
    const char *note = profile_contentions_note(profile);
    char losses[OBJECTS_NOTE_BYTES];
    if (note)
        put_comment(sink, "", note);
    if (objects_note(profile, losses))
        put_comment(sink, "", losses);
    if (profile->reason)
        put_comment(sink, "reason: ", profile->reason);
    for (size_t i = 0; i < profile->deadlock_count; i++)
        put_comment(sink, "", strings_get(&profile->strings, profile->deadlocks[i]));
}

static void put_end(struct sink *sink, const struct fgprof_profile *profile)
{
    if (memory_text_is_for(profile))
        memory_text_comments(sink, profile);
    put_comments(sink, profile);
    if (profile_is_of_objects(profile))
        memory_text_map(sink, profile);
}

/* google-pprof divides by contentions. */
static void put_values(struct sink *sink, const struct fgprof_profile *profile,
                       const struct text_sample *row)
{
    const struct profile_sample *sample = row->sample;
    if (memory_text_is_for(profile)) {
        memory_text_values(sink, sample);
    } else if (profile_is_of_contentions(profile)) {
        uint64_t count = sample_contentions(profile, sample);
        if (!count && profile->kind == FGPROF_KIND_BLOCK)
            count = 1;
        sink_print(sink, "%" PRIu64 " %" PRIu64 " ", sample->time_ns, count);
    } else {
        sink_print(sink, "%" PRIu64 " ", (uint64_t)row->rank);
    }
}

static int64_t rank_of(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    if (profile_is_of_objects(profile))
        return objects_main_value(profile, sample);
    return (int64_t)(profile_is_of_contentions(profile) ? sample->time_ns : sample->count);
}

/* A sample of less than a tick gets a line only if times are shown. Freed allocations are shown.
 * Counts can't be negative. */
static bool has_line(const struct fgprof_profile *profile, int64_t rank)
{
    if (objects_are_of_heap(profile))
        return true;
    return profile_is_of_objects(profile) ? rank > 0 : rank != 0;
}

void output_text(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink)
{
    uint64_t total = 0;
    size_t count = 0;
    struct text_sample *samples = calloc(view->sample_count + 1, sizeof *samples);
    if (!samples)
        sink->error = -ENOMEM;
    for (size_t i = 0; samples && i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        int64_t rank = rank_of(profile, sample);
        if (!has_line(profile, rank))
            continue;
        total += (uint64_t)rank;
        samples[count] = (struct text_sample){sample, rank, key_of(profile, sample)};
        if (!samples[count++].key)
            sink->error = -ENOMEM;
    }
    if (!sink->error) {
        array_sort(samples, count, compare);
        put_head(sink, profile, view, total);
    }
    for (size_t i = 0; i < count; i++) {
        if (!sink->error) {
            put_values(sink, profile, &samples[i]);
            sink_write(sink, samples[i].key, strlen(samples[i].key));
            text_put_stack(sink, profile, &profile->stacks[samples[i].sample->stack]);
            sink_write(sink, "\n", 1);
        }
        free(samples[i].key);
    }
    free(samples);
    if (!sink->error)
        put_end(sink, profile);
}
