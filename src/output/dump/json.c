/* A dump as JSON (RFC 8259). Addresses are strings, "0x7f00": a double can't hold all of them. */
#include "output/dump/dump.h"
#include "profile/frame.h"
#include "output/json.h"
#include "output/state.h"
#include "profile/births.h"

#include <inttypes.h>

static void put_address(struct json *json, const char *key, uint64_t address)
{
    json_print(json, key, "\"0x%" PRIx64 "\"", address);
}

static void put_frame(struct json *json, const struct fgprof_profile *profile,
                      const struct profile_frame *frame)
{
    const struct strings *strings = &profile->strings;
    const struct profile_location *location = frame->location;
    const struct profile_line *line = frame->line;
    json_begin(json, NULL, '{');
    if (location->is_kernel)
        json_bool(json, "kernel", true);
    else if (!location->is_note)
        put_address(json, "address", location->address);
    if (location->mapping != PROFILE_NO_MAPPING) {
        const struct profile_mapping *mapping = &profile->mappings[location->mapping];
        json_string(json, "module", strings_get(strings, mapping->path));
        if (mapping->has_bias)
            put_address(json, "module_address", location->address - mapping->bias);
    }
    if (line) {
        const struct profile_function *function = &profile->functions[line->function];
        json_string(json, location->is_note ? "note" : "function",
                    strings_get(strings, function->name));
        json_string_if_any(json, "file", strings_get(strings, function->file));
        json_number_if_any(json, "line", line->line);
        if (line->is_inlined)
            json_bool(json, "inlined", true);
        else if (!location->is_note && !location->is_kernel)
            json_number(json, "offset", location->function_offset);
    }
    json_end(json, '}');
}

/* `sample`: NULL: it has no stack. */
static void put_frames(struct json *json, const struct fgprof_profile *profile,
                       const struct profile_sample *sample)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    json_begin(json, "frames", '[');
    while (sample && frame_next_from_leaf(profile, &profile->stacks[sample->stack], &walk, &frame))
        put_frame(json, profile, &frame);
    json_end(json, ']');
}

static const char *evidence_name(enum evidence evidence)
{
    switch (evidence) {
    case EVIDENCE_ASLEEP:
        return "asleep";
    case EVIDENCE_STOPPED:
        return "stopped";
    case EVIDENCE_WAITING:
        return "waiting";
    case EVIDENCE_SAMPLED:
        return "sampled";
    default:
        return NULL;
    }
}

static void put_futex(struct json *json, const struct fgprof_dump *dump,
                      const struct dump_thread *thread)
{
    put_address(json, "futex", thread->facts->target.address);
    if (thread->lock.kind != RESOURCE_FUTEX)
        json_string(json, "lock", resource_kind_name(thread->lock.kind));
    if (thread->owner != DUMP_NOBODY)
        json_number(json, "owner", (uint64_t)dump->threads[thread->owner].facts->tid);
    if (thread->is_owner_gone)
        json_number(json, "owner_gone", thread->lock.owner);
    json_number_if_any(json, "readers", thread->lock.readers);
    if (thread->facts->target.has_timeout)
        json_bool(json, "timeout", true);
}

/* The process that must act for the wait to end. If its thread is known, that is written next to
 * it. */
static void put_owner_process(struct json *json, const struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    json_number_if_any(json, "owner_process", (uint64_t)thread->owner_process);
    if (thread->owner_process && facts->owner_process)
        json_string_if_any(json, "owner_process_name", facts->owner_name);
}

static void put_resource(struct json *json, const struct fgprof_dump *dump,
                         const struct dump_thread *thread)
{
    char name[RESOURCE_NAME_BYTES];
    if (!thread->resource.kind)
        return;
    dump_resource_name(dump, thread, name);
    json_string(json, "resource", resource_kind_name(thread->resource.kind));
    json_string(json, "resource_name", name);
}

static void put_wait(struct json *json, const struct fgprof_dump *dump,
                     const struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    if (facts->target.kind == CALL_FUTEX)
        put_futex(json, dump, thread);
    if (facts->has_fd && facts->fd >= 0)
        json_number(json, "fd", (uint64_t)facts->fd);
    json_string_if_any(json, "file", facts->file);
    if (facts->polled_file) {
        json_number(json, "polled_fd", (uint64_t)facts->polled_fd);
        json_string(json, "polled_file", facts->polled_file);
    }
    if (facts->target.kind == CALL_POLL || facts->target.kind == CALL_SELECT ||
        (facts->target.kind == CALL_EPOLL && facts->file))
        json_number(json, "fds", facts->target.count);
    json_number_if_any(json, "sleep_ns", facts->sleep_ns);
    put_resource(json, dump, thread);
    put_owner_process(json, thread);
}

/* Also if the stack shows it. */
static void put_birth(struct json *json, const struct fgprof_profile *profile,
                      const struct dump_thread *thread)
{
    const struct profile_birth *birth = birth_of(profile, (uint32_t)thread->facts->tid);
    if (!birth)
        return;
    json_string_if_any(json, "made_by", strings_get(&profile->strings, birth->maker));
    json_string_if_any(json, birth->maker ? "made_in" : "began_in",
                       strings_get(&profile->strings, birth->function));
}

static void put_thread(struct json *json, const struct fgprof_dump *dump,
                       const struct dump_thread *thread)
{
    const struct fgprof_profile *profile = dump->profile;
    const struct profile_sample *sample = thread->sample;
    json_break_line(json);
    json_begin(json, NULL, '{');
    json_number(json, "pid", (uint64_t)thread->facts->process_id);
    json_number(json, "tid", (uint64_t)thread->facts->tid);
    json_string(json, "name", dump_thread_name(dump, thread));
    json_string(json, "state", state_name(sample->state));
    json_string_if_any(json, "evidence", evidence_name(thread->facts->evidence));
    json_string_if_any(json, "syscall", strings_get(&profile->strings, sample->syscall_name));
    json_string_if_any(json, "wait_channel", strings_get(&profile->strings, sample->wait_channel));
    put_wait(json, dump, thread);
    json_number_if_any(json, "deadlock", thread->deadlock);
    put_birth(json, profile, thread);
    put_frames(json, profile, sample);
    json_end(json, '}');
}

static void put_goroutine_wait(struct json *json, const struct fgprof_dump *dump,
                               const struct dump_task *goroutine)
{
    const struct strings *strings = &dump->profile->strings;
    const struct profile_wait *wait = sample_wait(dump->profile, goroutine->sample);
    const struct go_wait *go_wait = &goroutine->listed->wait;
    if (go_wait->kind == GO_WAIT_FILE)
        json_number(json, "fd", go_wait->fd);
    if (wait) {
        json_string(json, "resource", strings_get(strings, wait->kind));
        json_string(json, "resource_name", strings_get(strings, wait->resource));
    }
    if (go_wait->count > 1) {
        json_number(json, "channel_count", go_wait->count);
        json_begin(json, "channels", '[');
        for (uint32_t i = 0; i < go_wait->count && i < GO_WAIT_ADDRESSES_MAX; i++)
            put_address(json, NULL, go_wait->addresses[i]);
        json_end(json, ']');
    } else if (wait && go_wait->kind != GO_WAIT_FILE) {
        json_number(json, "waiters",
                    dump_count_waiters(dump, goroutine->listed->process_id, go_wait->addresses[0]));
    }
}

static void put_task(struct json *json, const struct fgprof_dump *dump,
                     const struct dump_task *task)
{
    json_break_line(json);
    json_begin(json, NULL, '{');
    json_number(json, "pid", (uint64_t)task->listed->process_id);
    json_string(json, "name", task->listed->name);
    json_string(json, "state", dump_task_state(dump, task));
    json_string_if_any(json, "awaited_by", task->listed->awaited_by);
    put_frames(json, dump->profile, task->sample);
    json_end(json, '}');
}

static void put_goroutine(struct json *json, const struct fgprof_dump *dump,
                          const struct dump_task *goroutine)
{
    const struct runtime_task *listed = goroutine->listed;
    json_break_line(json);
    json_begin(json, NULL, '{');
    json_number(json, "pid", (uint64_t)listed->process_id);
    json_number(json, "goroutine", listed->id);
    json_string(json, "state", dump_task_state(dump, goroutine));
    json_number_if_any(json, "waits_ns", listed->waits_ns);
    if (goroutine->sample)
        put_goroutine_wait(json, dump, goroutine);
    json_number_if_any(json, "tid", (uint64_t)listed->tid);
    if (listed->is_locked)
        json_bool(json, "locked_to_thread", true);
    json_number_if_any(json, "created_by_goroutine", listed->parent);
    json_string_if_any(json, "created_in", listed->creator);
    put_frames(json, dump->profile, goroutine->sample);
    json_end(json, '}');
}

/* Writes each deadlock as a list of thread ids, in the order in which the threads wait for each
 * other. */
static void put_deadlocks(struct json *json, const struct fgprof_dump *dump)
{
    json_break_line(json);
    json_begin(json, "deadlocks", '[');
    for (size_t number = 1; number <= dump->deadlock_count; number++) {
        const struct dump_thread *first = dump_first_of_deadlock(dump, number), *thread = first;
        json_begin(json, NULL, '[');
        do {
            json_number(json, NULL, (uint64_t)thread->facts->tid);
            thread = &dump->threads[thread->owner];
        } while (thread != first);
        json_end(json, ']');
    }
    json_end(json, ']');
}

/* Either the goroutines or the tasks, if there are any. */
static void put_all_of(struct json *json, const struct fgprof_dump *dump, const char *name,
                       bool are_tasks)
{
    bool has_begun = false;
    for (size_t i = 0; i < dump->task_count && !json->sink->error; i++) {
        const struct dump_task *item = &dump->tasks[i];
        if (!item->listed->name != !are_tasks)
            continue;
        if (!has_begun)
            json_begin(json, name, '[');
        has_begun = true;
        if (are_tasks)
            put_task(json, dump, item);
        else
            put_goroutine(json, dump, item);
    }
    if (has_begun)
        json_end(json, ']');
}

void output_dump_json(const struct fgprof_dump *dump, struct sink *sink)
{
    struct json json = {.sink = sink};
    json_begin(&json, NULL, '{');
    json_begin(&json, "threads", '[');
    for (size_t i = 0; i < dump->thread_count && !sink->error; i++)
        put_thread(&json, dump, &dump->threads[i]);
    json_end(&json, ']');
    put_all_of(&json, dump, "goroutines", false);
    put_all_of(&json, dump, "tasks", true);
    put_deadlocks(&json, dump);
    json_end(&json, '}');
    sink_write(sink, "\n", 1);
}
