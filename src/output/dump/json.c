/* A dump as JSON (RFC 8259). Addresses are strings, "0x7f00": a double can't hold all of them. */
#include "output/dump/dump.h"
#include "output/json.h"
#include "output/state.h"
#include "profile/births.h"

#include <inttypes.h>
#include <stdio.h>

static void append_string(struct buffer *buffer, const char *key, const char *value)
{
    buffer_puts(buffer, ",\"");
    buffer_puts(buffer, key);
    buffer_puts(buffer, "\":");
    json_append_string(buffer, value);
}

static void append_number(struct buffer *buffer, const char *key, uint64_t value)
{
    buffer_print(buffer, ",\"%s\":%" PRIu64, key, value);
}

static void append_address(struct buffer *buffer, const char *key, uint64_t value)
{
    buffer_print(buffer, ",\"%s\":\"0x%" PRIx64 "\"", key, value);
}

static void append_frame(struct buffer *buffer, const struct fgprof_profile *profile,
                         const struct profile_location *location, const struct profile_line *line)
{
    const struct strings *strings = &profile->strings;
    size_t begin = buffer->length;
    if (location->is_kernel)
        buffer_puts(buffer, ",\"kernel\":true");
    else if (!location->is_note)
        append_address(buffer, "address", location->address);
    if (location->mapping != PROFILE_NO_MAPPING) {
        const struct profile_mapping *mapping = &profile->mappings[location->mapping];
        append_string(buffer, "module", strings_get(strings, mapping->path));
        if (mapping->has_bias)
            append_address(buffer, "module_address", location->address - mapping->bias);
    }
    if (line) {
        const struct profile_function *function = &profile->functions[line->function];
        append_string(buffer, location->is_note ? "note" : "function",
                      strings_get(strings, function->name));
        if (function->file)
            append_string(buffer, "file", strings_get(strings, function->file));
        if (line->line)
            append_number(buffer, "line", line->line);
        if (line->is_inlined)
            buffer_puts(buffer, ",\"inlined\":true");
        else if (!location->is_note && !location->is_kernel)
            append_number(buffer, "offset", location->function_offset);
    }
    if (!buffer->error && buffer->length > begin)
        buffer->bytes[begin] = '{';
    else
        buffer_puts(buffer, "{");
    buffer_puts(buffer, "}");
}

static void append_frames(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_stack *stack)
{
    const char *separator = "";
    buffer_puts(buffer, ",\"frames\":[");
    for (size_t i = 0; i < stack->depth; i++) {
        const struct profile_location *location =
            &profile->locations[profile->stack_locations[stack->first_location + i]];
        uint32_t lines = location->line_count;
        for (uint32_t j = 0; j < (lines ? lines : 1); j++) {
            buffer_puts(buffer, separator);
            append_frame(buffer, profile, location,
                         lines ? &profile->lines[location->first_line + j] : NULL);
            separator = ",";
        }
    }
    buffer_puts(buffer, "]");
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

static void append_futex(struct buffer *buffer, const struct fgprof_dump *dump,
                         const struct dump_thread *thread)
{
    append_address(buffer, "futex", thread->facts->target.address);
    if (thread->lock.kind != RESOURCE_FUTEX)
        append_string(buffer, "lock", resource_kind_name(thread->lock.kind));
    if (thread->owner != DUMP_NOBODY)
        append_number(buffer, "owner", (uint64_t)dump->threads[thread->owner].facts->tid);
    if (thread->is_owner_gone)
        append_number(buffer, "owner_gone", thread->lock.owner);
    if (thread->lock.readers)
        append_number(buffer, "readers", thread->lock.readers);
    if (thread->facts->target.has_timeout)
        buffer_puts(buffer, ",\"timeout\":true");
}

/* The process that must act for the wait to end; a thread of it is told beside it if it is known.
 */
static void append_owner_process(struct buffer *buffer, const struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    if (!thread->owner_process)
        return;
    append_number(buffer, "owner_process", (uint64_t)thread->owner_process);
    if (facts->owner_process && *facts->owner_name)
        append_string(buffer, "owner_process_name", facts->owner_name);
}

static void append_resource(struct buffer *buffer, const struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    char name[RESOURCE_NAME_BYTES];
    if (!thread->resource.kind)
        return;
    resource_name(&thread->resource, facts->polled_file ? facts->polled_file : facts->file, name);
    append_string(buffer, "resource", resource_kind_name(thread->resource.kind));
    append_string(buffer, "resource_name", name);
}

static void append_wait(struct buffer *buffer, const struct fgprof_dump *dump,
                        const struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    if (facts->target.kind == CALL_FUTEX)
        append_futex(buffer, dump, thread);
    if (facts->has_fd && facts->fd >= 0)
        append_number(buffer, "fd", (uint64_t)facts->fd);
    if (facts->file)
        append_string(buffer, "file", facts->file);
    if (facts->polled_file) {
        append_number(buffer, "polled_fd", (uint64_t)facts->polled_fd);
        append_string(buffer, "polled_file", facts->polled_file);
    }
    if (facts->target.kind == CALL_POLL || facts->target.kind == CALL_SELECT ||
        (facts->target.kind == CALL_EPOLL && facts->file))
        append_number(buffer, "fds", facts->target.count);
    if (facts->sleep_ns)
        append_number(buffer, "sleep_ns", facts->sleep_ns);
    append_resource(buffer, thread);
    append_owner_process(buffer, thread);
}

/* Also if the stack shows it. */
static void append_birth(struct buffer *buffer, const struct fgprof_profile *profile,
                         const struct dump_thread *thread)
{
    const struct profile_birth *birth = birth_of(profile, (uint32_t)thread->facts->tid);
    if (!birth)
        return;
    if (birth->maker)
        append_string(buffer, "made_by", strings_get(&profile->strings, birth->maker));
    if (birth->function)
        append_string(buffer, birth->maker ? "made_in" : "began_in",
                      strings_get(&profile->strings, birth->function));
}

static void append_thread(struct buffer *buffer, const struct fgprof_dump *dump,
                          const struct dump_thread *thread)
{
    const struct fgprof_profile *profile = dump->profile;
    const struct profile_sample *sample = thread->sample;
    const char *evidence = evidence_name(thread->facts->evidence);
    buffer_print(buffer, "{\"pid\":%d,\"tid\":%d", thread->facts->process_id, thread->facts->tid);
    append_string(buffer, "name", dump_thread_name(dump, thread));
    append_string(buffer, "state", state_name(sample->state));
    if (evidence)
        append_string(buffer, "evidence", evidence);
    if (sample->syscall_name)
        append_string(buffer, "syscall", strings_get(&profile->strings, sample->syscall_name));
    if (sample->wait_channel)
        append_string(buffer, "wait_channel", strings_get(&profile->strings, sample->wait_channel));
    append_wait(buffer, dump, thread);
    if (thread->deadlock)
        append_number(buffer, "deadlock", thread->deadlock);
    append_birth(buffer, profile, thread);
    append_frames(buffer, profile, &profile->stacks[sample->stack]);
    buffer_puts(buffer, "}");
}

/* Writes each deadlock as the ids of its threads, in the order in which they wait for each
 * other. */
static void put_deadlocks(struct sink *sink, const struct fgprof_dump *dump)
{
    sink_print(sink, "\"deadlocks\":[");
    for (size_t number = 1; number <= dump->deadlock_count; number++) {
        const struct dump_thread *first = dump_first_of_deadlock(dump, number), *thread = first;
        sink_print(sink, number > 1 ? ",[" : "[");
        do {
            sink_print(sink, "%s%d", thread == first ? "" : ",", thread->facts->tid);
            thread = &dump->threads[thread->owner];
        } while (thread != first);
        sink_print(sink, "]");
    }
    sink_print(sink, "]");
}

void output_dump_json(const struct fgprof_dump *dump, struct sink *sink)
{
    sink_print(sink, "{\"threads\":[");
    for (size_t i = 0; i < dump->thread_count && !sink->error; i++) {
        struct buffer buffer = {0};
        buffer_puts(&buffer, i ? ",\n" : "\n");
        append_thread(&buffer, dump, &dump->threads[i]);
        sink_put(sink, &buffer);
    }
    sink_print(sink, "],\n");
    put_deadlocks(sink, dump);
    sink_print(sink, "}\n");
}
