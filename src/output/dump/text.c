/* A dump as text: a paragraph for each thread, in the form of Go's goroutine profile with debug=2
 * (printed by its runtime, "goroutine 1 [chan receive]:"), and one for each distinct stack, in the
 * form of debug=1 (printCountProfile of its runtime/pprof/pprof.go). */
#include "output/dump/dump.h"
#include "profile/frame.h"
#include "output/output.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_NAMED_MAX 100 /* of the threads, goroutines and tasks with the same stack */

/* The function's file and line, or else the mapped file: " (/src/a.c:12)" or " (libfoo.so)". */
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

/* Like: task "Task-3" [waiting] */
static void append_asyncio_task(struct buffer *buffer, const struct fgprof_dump *dump,
                                const struct dump_task *task)
{
    buffer_puts(buffer, "task \"");
    name_append(buffer, task->listed->name);
    buffer_print(buffer, "\" [%s]", dump_task_state(dump, task));
}

/* Like: goroutine 18 [chan receive, 3 minutes] */
static void append_goroutine(struct buffer *buffer, const struct fgprof_dump *dump,
                             const struct dump_task *goroutine)
{
    const struct runtime_task *listed = goroutine->listed;
    uint64_t minutes = listed->waits_ns / 60000000000u;
    buffer_print(buffer, "goroutine %" PRIu64 " [%s", listed->id, dump_task_state(dump, goroutine));
    if (goroutine->sample && minutes)
        buffer_print(buffer, ", %" PRIu64 " minutes", minutes);
    if (listed->tid)
        buffer_print(buffer, ", on thread %d", listed->tid);
    buffer_puts(buffer, listed->is_locked ? ", locked to thread]" : "]");
}

static void append_task(struct buffer *buffer, const struct fgprof_dump *dump,
                        const struct dump_task *task)
{
    if (task->listed->name)
        append_asyncio_task(buffer, dump, task);
    else
        append_goroutine(buffer, dump, task);
}

static void append_others(struct buffer *buffer, const struct fgprof_dump *dump,
                          const struct runtime_task *listed, uint64_t address)
{
    size_t count = dump_count_waiters(dump, listed->process_id, address);
    if (count > 1)
        buffer_print(buffer, ", as %zu other%s do%s", count - 1, count == 2 ? "" : "s",
                     count == 2 ? "es" : "");
}

/* One of several channels. */
static void append_channels(struct buffer *buffer, const struct fgprof_dump *dump,
                            const struct runtime_task *listed)
{
    uint32_t count = listed->wait.count;
    buffer_print(buffer, "waits for one of %" PRIu32 " channels:", count);
    for (uint32_t i = 0; i < count && i < GO_WAIT_ADDRESSES_MAX; i++) {
        uint64_t address = listed->wait.addresses[i];
        buffer_print(buffer, "%s 0x%" PRIx64, i ? ";" : "", address);
        append_others(buffer, dump, listed, address);
    }
    buffer_puts(buffer, count > GO_WAIT_ADDRESSES_MAX ? "; ...\n" : "\n");
}

/* Such as: waits for mutex main.table, as 3 others do */
static void append_goroutine_wait(struct buffer *buffer, const struct fgprof_dump *dump,
                                  const struct dump_task *goroutine)
{
    const struct runtime_task *listed = goroutine->listed;
    const struct profile_wait *wait =
        goroutine->sample ? sample_wait(dump->profile, goroutine->sample) : NULL;
    if (goroutine->sample && listed->wait.count > 1) {
        append_channels(buffer, dump, listed);
        return;
    }
    bool has_fd = goroutine->sample && listed->wait.kind == GO_WAIT_FILE;
    if (!wait && !has_fd)
        return;
    buffer_puts(buffer, "waits for");
    if (has_fd)
        buffer_print(buffer, " fd %" PRIu32, listed->wait.fd);
    if (wait) {
        buffer_puts(buffer, " ");
        name_append(buffer, strings_get(&dump->profile->strings, wait->resource));
    }
    if (!has_fd)
        append_others(buffer, dump, listed, listed->wait.addresses[0]);
    buffer_puts(buffer, "\n");
}

/* What began it, or waits for it. */
static void append_origin(struct buffer *buffer, const struct dump_task *task, const char *before)
{
    const struct runtime_task *listed = task->listed;
    if (listed->awaited_by) {
        buffer_print(buffer, "%sawaited by ", before);
        name_append(buffer, listed->awaited_by);
    }
    if (!listed->creator)
        return;
    buffer_print(buffer, "%screated by ", before);
    name_append(buffer, listed->creator);
    if (listed->parent)
        buffer_print(buffer, " in goroutine %" PRIu64, listed->parent);
}

static void put_task(struct sink *sink, const struct fgprof_dump *dump,
                     const struct dump_task *task, bool has_addresses)
{
    struct buffer buffer = {0};
    append_task(&buffer, dump, task);
    buffer_puts(&buffer, task->sample ? ":\n" : "\n");
    append_goroutine_wait(&buffer, dump, task);
    if (task->sample)
        append_frames(&buffer, dump->profile, &dump->profile->stacks[task->sample->stack],
                      has_addresses);
    size_t end = buffer.length;
    append_origin(&buffer, task, "");
    buffer_puts(&buffer, buffer.length > end ? "\n\n" : "\n");
    sink_put(sink, &buffer);
}

/* How many of the next threads are the process's. */
static size_t count_threads(const struct fgprof_dump *dump, size_t at, pid_t process_id)
{
    size_t end = at;
    while (end < dump->thread_count && dump->threads[end].facts->process_id == process_id)
        end++;
    return end - at;
}

/* The same of goroutines, or of the tasks of asyncio that follow them. */
static size_t count_tasks(const struct fgprof_dump *dump, size_t at, pid_t process_id,
                          bool are_asyncio)
{
    const struct dump_task *items = dump->tasks;
    size_t end = at;
    while (end < dump->task_count && items[end].listed->process_id == process_id &&
           !items[end].listed->name == !are_asyncio)
        end++;
    return end - at;
}

static void put_process(struct sink *sink, const struct fgprof_dump *dump, pid_t process_id,
                        size_t threads, size_t goroutines, size_t tasks)
{
    sink_print(sink, "process %d: %zu thread%s", process_id, threads, threads == 1 ? "" : "s");
    if (goroutines)
        sink_print(sink, "%s, %zu goroutine%s",
                   dump->leaves_out_threads ? ", not counting those without a goroutine" : "",
                   goroutines, goroutines == 1 ? "" : "s");
    if (tasks)
        sink_print(sink, ", %zu task%s", tasks, tasks == 1 ? "" : "s");
    sink_print(sink, "\n\n");
}

static void put_threads(const struct fgprof_dump *dump, struct sink *sink, bool has_addresses)
{
    size_t i = 0, j = 0;
    dump_put_deadlocks(sink, dump, "");
    while ((i < dump->thread_count || j < dump->task_count) && !sink->error) {
        pid_t of_thread = i < dump->thread_count ? dump->threads[i].facts->process_id : INT_MAX;
        pid_t of_task = j < dump->task_count ? dump->tasks[j].listed->process_id : INT_MAX;
        pid_t process_id = of_thread < of_task ? of_thread : of_task;
        size_t threads = count_threads(dump, i, process_id);
        size_t goroutines = count_tasks(dump, j, process_id, false);
        size_t tasks = count_tasks(dump, j + goroutines, process_id, true);
        put_process(sink, dump, process_id, threads, goroutines, tasks);
        for (; threads && !sink->error; threads--)
            put_thread(sink, dump, &dump->threads[i++], has_addresses);
        for (goroutines += tasks; goroutines && !sink->error; goroutines--)
            put_task(sink, dump, &dump->tasks[j++], has_addresses);
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

/* Either a thread, or a task whose stack is known. */
struct member {
    uint32_t stack;
    const struct dump_thread *thread;
    const struct dump_task *task;
};

/* Members with the same stack are neighbours. */
struct group {
    uint32_t stack;
    size_t first, count;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = ORDER(left->stack, right->stack);
    if (!order)
        order = ORDER(left->thread, right->thread);
    return order ? order : ORDER(left->task, right->task);
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    int order = ORDER(right->count, left->count);
    return order ? order : ORDER(left->stack, right->stack);
}

static size_t find_members(const struct fgprof_dump *dump, struct member *members)
{
    size_t count = 0;
    for (size_t i = 0; i < dump->thread_count; i++)
        members[count++] = (struct member){dump->threads[i].sample->stack, &dump->threads[i], NULL};
    for (size_t i = 0; i < dump->task_count; i++) {
        const struct dump_task *task = &dump->tasks[i];
        if (task->sample)
            members[count++] = (struct member){task->sample->stack, NULL, task};
    }
    array_sort(members, count, compare_members);
    return count;
}

static size_t make_groups(const struct member *members, size_t count, struct group *groups)
{
    size_t group_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!group_count || groups[group_count - 1].stack != members[i].stack)
            groups[group_count++] = (struct group){.stack = members[i].stack, .first = i};
        groups[group_count - 1].count++;
    }
    array_sort(groups, group_count, compare_groups);
    return group_count;
}

static void append_member(struct buffer *buffer, const struct fgprof_dump *dump,
                          const struct member *member)
{
    if (member->thread) {
        append_thread(buffer, dump, member->thread, false);
        dump_append_birth(buffer, dump, member->thread, ", ");
    } else {
        append_task(buffer, dump, member->task);
        append_origin(buffer, member->task, ", ");
    }
}

static void put_group(struct sink *sink, const struct fgprof_dump *dump,
                      const struct member *members, const struct group *group)
{
    const struct profile_stack *stack = &dump->profile->stacks[group->stack];
    struct buffer buffer = {0};
    buffer_print(&buffer, "%zu @", group->count);
    text_append_addresses(&buffer, dump->profile, stack);
    buffer_puts(&buffer, "\n");
    for (size_t i = 0; i < group->count && i < MEMBERS_NAMED_MAX; i++) {
        buffer_puts(&buffer, "# ");
        append_member(&buffer, dump, &members[group->first + i]);
        buffer_puts(&buffer, "\n");
    }
    if (group->count > MEMBERS_NAMED_MAX) {
        buffer_print(&buffer, "# and %zu more\n", group->count - MEMBERS_NAMED_MAX);
    }
    sink_put(sink, &buffer);
    text_put_stack(sink, dump->profile, stack);
    sink_print(sink, "\n");
}

void output_dump_grouped(const struct fgprof_dump *dump, struct sink *sink)
{
    size_t most = dump->thread_count + dump->task_count + 1;
    struct member *members = calloc(most, sizeof *members);
    struct group *groups = calloc(most, sizeof *groups);
    if (!members || !groups) {
        sink->error = -ENOMEM;
    } else {
        size_t count = find_members(dump, members);
        size_t group_count = make_groups(members, count, groups);
        sink_print(sink, "thread profile: total %zu\n", count);
        dump_put_deadlocks(sink, dump, "# ");
        for (size_t i = 0; i < group_count && !sink->error; i++)
            put_group(sink, dump, members, &groups[i]);
    }
    free(members);
    free(groups);
}
