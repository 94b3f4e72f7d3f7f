/* A dump as text: a paragraph for each thread, in the form of Go's goroutine profile with debug=2
 * (printed by its runtime, "goroutine 1 [chan receive]:"), and one for each distinct stack, as with
 * debug=1 (printCountProfile of its runtime/pprof/pprof.go). */
#include "output/dump/dump.h"
#include "profile/frame.h"
#include "output/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_NAMED_MAX 100 /* of the threads with the same stack */

/* The function's place in its source, else in which file it is: " (/src/a.c:12)" or
 * " (libfoo.so)". */
static void append_place(struct buffer *buffer, const struct fgprof_profile *profile,
                         const struct profile_location *location, const struct profile_line *line)
{
    const struct profile_function *function = &profile->functions[line->function];
    if (location->is_kernel) {
        buffer_puts(buffer, " ([kernel]");
    } else if (function->file) {
        buffer_puts(buffer, " (");
        name_append(buffer, strings_get(&profile->strings, function->file));
        if (line->line)
            buffer_print(buffer, ":%" PRIu32, line->line);
    } else if (location->mapping != PROFILE_NO_MAPPING) {
        buffer_puts(buffer, " (");
        name_append(buffer, basename(strings_get(&profile->strings,
                                                 profile->mappings[location->mapping].path)));
    } else {
        return;
    }
    buffer_puts(buffer, line->is_inlined ? ", inlined)" : ")");
}

static void append_frame(struct buffer *buffer, const struct fgprof_profile *profile,
                         const struct profile_frame *frame, bool has_addresses)
{
    const struct profile_location *location = frame->location;
    has_addresses = has_addresses && !location->is_note && !location->is_kernel;
    buffer_puts(buffer, "    ");
    if (has_addresses)
        buffer_print(buffer, "0x%" PRIx64 " ", location->address);
    if (!frame->line) {
        frame_append_unnamed(buffer, profile, location, true);
    } else {
        const struct profile_function *function = &profile->functions[frame->line->function];
        name_append(buffer, strings_get(&profile->strings, function->name));
        if (has_addresses && !frame->line->is_inlined)
            buffer_print(buffer, "+0x%" PRIx64, location->function_offset);
        if (!location->is_note)
            append_place(buffer, profile, location, frame->line);
    }
    buffer_puts(buffer, "\n");
}

static void append_frames(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_stack *stack, bool has_addresses)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    while (frame_next_from_leaf(profile, stack, &walk, &frame))
        append_frame(buffer, profile, &frame, has_addresses);
}

/* Like: thread 7 "worker" [futex] */
static void append_thread(struct buffer *buffer, const struct fgprof_dump *dump,
                          const struct dump_thread *thread, bool has_addresses)
{
    buffer_print(buffer, "thread %d \"", thread->facts->tid);
    name_append(buffer, dump_thread_name(dump, thread));
    buffer_puts(buffer, "\" [");
    dump_append_state(buffer, dump, thread, has_addresses);
    buffer_puts(buffer, "]");
}

static void put_thread(struct sink *sink, const struct fgprof_dump *dump,
                       const struct dump_thread *thread, bool has_addresses)
{
    struct buffer buffer = {0};
    append_thread(&buffer, dump, thread, has_addresses);
    buffer_puts(&buffer, ":\n");
    append_frames(&buffer, dump->profile, &dump->profile->stacks[thread->sample->stack],
                  has_addresses);
    size_t end = buffer.length;
    dump_append_birth(&buffer, dump, thread, "");
    buffer_puts(&buffer, buffer.length > end ? "\n\n" : "\n");
    sink_put(sink, &buffer);
}

static void put_threads(const struct fgprof_dump *dump, struct sink *sink, bool has_addresses)
{
    dump_put_deadlocks(sink, dump, "");
    for (size_t i = 0; i < dump->thread_count && !sink->error; i++) {
        pid_t process_id = dump->threads[i].facts->process_id;
        if (!i || dump->threads[i - 1].facts->process_id != process_id) {
            size_t end = i;
            while (end < dump->thread_count && dump->threads[end].facts->process_id == process_id)
                end++;
            sink_print(sink, "process %d: %zu thread%s\n\n", process_id, end - i,
                       end - i == 1 ? "" : "s");
        }
        put_thread(sink, dump, &dump->threads[i], has_addresses);
    }
}

void output_dump_text(const struct fgprof_dump *dump, struct sink *sink)
{
    put_threads(dump, sink, false);
}

void output_dump_addresses(const struct fgprof_dump *dump, struct sink *sink)
{
    put_threads(dump, sink, true);
}

/* Threads with the same stack are neighbours in `members`. */
struct group {
    uint32_t stack;
    size_t first, count;
};

static int compare_members(const void *a, const void *b)
{
    const struct dump_thread *left = *(const struct dump_thread *const *)a;
    const struct dump_thread *right = *(const struct dump_thread *const *)b;
    if (left->sample->stack != right->sample->stack)
        return left->sample->stack < right->sample->stack ? -1 : 1;
    return (left > right) - (left < right);
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->count != right->count)
        return left->count > right->count ? -1 : 1;
    return (left->stack > right->stack) - (left->stack < right->stack);
}

static size_t make_groups(const struct fgprof_dump *dump, const struct dump_thread **members,
                          struct group *groups)
{
    size_t group_count = 0;
    for (size_t i = 0; i < dump->thread_count; i++)
        members[i] = &dump->threads[i];
    qsort(members, dump->thread_count, sizeof *members, compare_members);
    for (size_t i = 0; i < dump->thread_count; i++) {
        uint32_t stack = members[i]->sample->stack;
        if (!group_count || groups[group_count - 1].stack != stack)
            groups[group_count++] = (struct group){.stack = stack, .first = i};
        groups[group_count - 1].count++;
    }
    qsort(groups, group_count, sizeof *groups, compare_groups);
    return group_count;
}

static void put_group(struct sink *sink, const struct fgprof_dump *dump,
                      const struct dump_thread **members, const struct group *group)
{
    const struct profile_stack *stack = &dump->profile->stacks[group->stack];
    struct buffer buffer = {0};
    buffer_print(&buffer, "%zu @", group->count);
    text_append_addresses(&buffer, dump->profile, stack);
    buffer_puts(&buffer, "\n");
    for (size_t i = 0; i < group->count && i < THREADS_NAMED_MAX; i++) {
        buffer_puts(&buffer, "# ");
        append_thread(&buffer, dump, members[group->first + i], false);
        dump_append_birth(&buffer, dump, members[group->first + i], ", ");
        buffer_puts(&buffer, "\n");
    }
    if (group->count > THREADS_NAMED_MAX) {
        buffer_print(&buffer, "# and %zu more\n", group->count - THREADS_NAMED_MAX);
    }
    sink_put(sink, &buffer);
    text_put_stack(sink, dump->profile, stack);
    sink_print(sink, "\n");
}

void output_dump_grouped(const struct fgprof_dump *dump, struct sink *sink)
{
    const struct dump_thread **members = calloc(dump->thread_count + 1, sizeof *members);
    struct group *groups = calloc(dump->thread_count + 1, sizeof *groups);
    if (!members || !groups) {
        sink->error = -ENOMEM;
    } else {
        size_t group_count = make_groups(dump, members, groups);
        sink_print(sink, "thread profile: total %zu\n", dump->thread_count);
        dump_put_deadlocks(sink, dump, "# ");
        for (size_t i = 0; i < group_count && !sink->error; i++)
            put_group(sink, dump, members, &groups[i]);
    }
    free(members);
    free(groups);
}
