/* What a thread of a dump is doing, in words, and the formats of dumps. */
#include "output/dump/dump.h"
#include "output/state.h"
#include "output/output.h"
#include "profile/births.h"
#include "profile/frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dump_thread_name(const struct fgprof_dump *dump, const struct dump_thread *thread)
{
    return strings_get(&dump->profile->strings, thread->sample->thread_name);
}

static void append_thread(struct buffer *buffer, const struct fgprof_dump *dump,
                          const struct dump_thread *thread)
{
    buffer_print(buffer, "%d \"", thread->facts->tid);
    name_append(buffer, dump_thread_name(dump, thread));
    buffer_puts(buffer, "\"");
}

static void append_owner(struct buffer *buffer, const struct fgprof_dump *dump,
                         const struct dump_thread *thread)
{
    const struct lock *lock = &thread->lock;
    if (thread->owner != DUMP_NOBODY) {
        buffer_puts(buffer, lock->kind == RESOURCE_THREAD ? ": " : ", owner ");
        append_thread(buffer, dump, &dump->threads[thread->owner]);
        if (&dump->threads[thread->owner] == thread)
            buffer_puts(buffer, " itself");
    } else if (thread->is_owner_gone) {
        buffer_print(buffer, ", owner %" PRIu32 " (no longer a thread of the process)",
                     lock->owner);
    } else if (lock->owner && lock->is_shared) {
        buffer_print(buffer, ", shared between processes, owner %" PRIu32, lock->owner);
    }
    if (lock->readers)
        buffer_print(buffer, ", held by %" PRIu32 " reader%s", lock->readers,
                     lock->readers == 1 ? "" : "s");
}

void dump_resource_name(const struct fgprof_dump *dump, const struct dump_thread *thread,
                        char ret_name[RESOURCE_NAME_BYTES])
{
    const struct profile_wait *wait = sample_wait(dump->profile, thread->sample);
    const struct wait_facts *facts = thread->facts;
    if (wait && resource_is_lock(thread->lock.kind))
        snprintf(ret_name, RESOURCE_NAME_BYTES, "%s",
                 strings_get(&dump->profile->strings, wait->resource));
    else
        resource_name(&thread->resource, facts->polled_file ? facts->polled_file : facts->file,
                      ret_name);
}

/* Such as " 0x55d0c0, mutex g_lock". A futex that is not part of a known lock is named after its
 * variable: " g_word". */
static void append_futex(struct buffer *buffer, const struct fgprof_dump *dump,
                         const struct dump_thread *thread, bool has_addresses)
{
    char name[RESOURCE_NAME_BYTES];
    enum resource_kind kind = thread->lock.kind;
    if (has_addresses)
        buffer_print(buffer, " 0x%" PRIx64, thread->facts->target.address);
    dump_resource_name(dump, thread, name);
    if (kind != RESOURCE_FUTEX)
        buffer_puts(buffer, ", ");
    name_append(buffer, kind == RESOURCE_THREAD  ? resource_kind_name(kind)
                        : kind == RESOURCE_FUTEX ? name + strlen(resource_kind_name(kind))
                                                 : name);
    append_owner(buffer, dump, thread);
    if (thread->facts->target.has_timeout)
        buffer_puts(buffer, ", with a timeout");
}

/* Like: process 1234 "name"; nothing if it is not known. */
static void append_process(struct buffer *buffer, const char *before,
                           const struct wait_facts *facts)
{
    if (!facts->owner_process)
        return;
    buffer_puts(buffer, before);
    if (facts->owner_process == facts->process_id) {
        buffer_puts(buffer, "its own process");
        return;
    }
    buffer_print(buffer, "process %d", facts->owner_process);
    if (!*facts->owner_name)
        return;
    buffer_puts(buffer, " \"");
    name_append(buffer, facts->owner_name);
    buffer_puts(buffer, "\"");
}

static void append_name(struct buffer *buffer, const char *name)
{
    if (!name)
        return;
    buffer_puts(buffer, " ");
    name_append(buffer, name);
}

static void append_polled(struct buffer *buffer, const struct wait_facts *facts)
{
    uint64_t count = facts->target.count;
    if (!count) {
        buffer_puts(buffer, " of no fd"); /* a sleep, or all of its entries are ignored */
    } else if (facts->target.kind != CALL_EPOLL) {
        if (count > 1 && facts->has_fd)
            buffer_print(buffer, " and %" PRIu64 " more", count - 1);
    } else if (facts->polled_file) {
        buffer_print(buffer, " of fd %d", facts->polled_fd);
        append_name(buffer, facts->polled_file);
    } else {
        buffer_print(buffer, " of %" PRIu64 " fd%s", count, count == 1 ? "" : "s");
    }
}

static void append_file(struct buffer *buffer, const struct wait_facts *facts)
{
    enum call_kind kind = facts->target.kind;
    if (facts->has_fd)
        buffer_print(buffer, " fd %d", facts->fd);
    append_name(buffer, facts->file);
    if (kind != CALL_FILE && (kind != CALL_EPOLL || facts->file))
        append_polled(buffer, facts);
    append_process(buffer,
                   facts->resource.kind == RESOURCE_FILE_LOCK ? ", held by " : ", other end in ",
                   facts);
}

/* With the number that ipcs(1) shows. */
static void append_ipc(struct buffer *buffer, const struct wait_facts *facts)
{
    char name[RESOURCE_NAME_BYTES];
    resource_name(&facts->resource, NULL, name);
    buffer_puts(buffer, " of ");
    name_append(buffer, name);
}

static void append_wait(struct buffer *buffer, const struct fgprof_dump *dump,
                        const struct dump_thread *thread, bool has_addresses)
{
    const struct wait_facts *facts = thread->facts;
    switch (facts->target.kind) {
    case CALL_FUTEX:
        append_futex(buffer, dump, thread, has_addresses);
        return;
    case CALL_FILE:
    case CALL_EPOLL:
    case CALL_POLL:
    case CALL_SELECT:
        append_file(buffer, facts);
        return;
    case CALL_SLEEP:
        if (facts->sleep_ns)
            buffer_print(buffer, " of %.9g s", (double)facts->sleep_ns / 1e9);
        return;
    case CALL_PROCESS:
        append_process(buffer, " for ", facts);
        return;
    case CALL_SEMAPHORES:
    case CALL_MESSAGES:
        append_ipc(buffer, facts);
        return;
    default:
        return;
    }
}

void dump_append_state(struct buffer *buffer, const struct fgprof_dump *dump,
                       const struct dump_thread *thread, bool has_addresses)
{
    const struct profile_sample *sample = thread->sample;
    const char *call = strings_get(&dump->profile->strings, sample->syscall_name);
    const char *channel = strings_get(&dump->profile->strings, sample->wait_channel);
    if (sample->state == THREAD_SLEEPING && *call) {
        buffer_puts(buffer, call);
    } else {
        buffer_puts(buffer, state_name(sample->state));
        if (thread_state_waits((enum thread_state)sample->state) && *call) {
            buffer_puts(buffer, " in ");
            buffer_puts(buffer, call);
        }
        if (*channel) {
            buffer_puts(buffer, " at ");
            name_append(buffer, channel);
        }
    }
    append_wait(buffer, dump, thread, has_addresses);
    if (thread->facts->evidence == EVIDENCE_STOPPED && sample->state != THREAD_STOPPED)
        buffer_puts(buffer, ", paused");
}

const char *dump_task_state(const struct fgprof_dump *dump, const struct dump_task *task)
{
    const struct profile_sample *sample = task->sample;
    if (!sample)
        return task->listed->is_in_call ? "syscall" : "running";
    const char *reason = strings_get(&dump->profile->strings, sample->syscall_name);
    return *reason ? reason : sample->state == THREAD_RUNNABLE ? "runnable" : "waiting";
}

void dump_append_birth(struct buffer *buffer, const struct fgprof_dump *dump,
                       const struct dump_thread *thread, const char *before)
{
    const struct fgprof_profile *profile = dump->profile;
    const struct profile_birth *birth = birth_of(profile, (uint32_t)thread->facts->tid);
    if (!birth)
        return;
    const char *maker = strings_get(&profile->strings, birth->maker);
    const char *function = strings_get(&profile->strings, birth->function);
    if (!*maker &&
        stack_has_function(profile, &profile->stacks[thread->sample->stack], function, false))
        return;
    buffer_puts(buffer, before);
    if (*maker) {
        buffer_puts(buffer, "made by ");
        name_append(buffer, maker);
    }
    if (*function) {
        buffer_puts(buffer, *maker ? " in " : "began in ");
        name_append(buffer, function);
    }
}

static void append_link(struct buffer *buffer, const struct fgprof_dump *dump,
                        const struct dump_thread *thread)
{
    const struct dump_thread *owner = &dump->threads[thread->owner];
    buffer_puts(buffer, "\tthread ");
    append_thread(buffer, dump, thread);
    buffer_puts(buffer, " waits for ");
    if (thread->lock.kind == RESOURCE_THREAD) {
        buffer_puts(buffer, resource_kind_name(RESOURCE_THREAD));
    } else {
        char name[RESOURCE_NAME_BYTES];
        dump_resource_name(dump, thread, name);
        name_append(buffer, name);
    }
    buffer_puts(buffer, owner == thread                        ? ", which it holds itself"
                        : thread->lock.kind == RESOURCE_THREAD ? ", "
                                                               : ", held by ");
    if (owner != thread)
        append_thread(buffer, dump, owner);
    buffer_puts(buffer, "\n");
}

static void put_deadlock(struct sink *sink, const struct fgprof_dump *dump, size_t number,
                         const char *prefix)
{
    const struct dump_thread *first = dump_first_of_deadlock(dump, number), *thread = first;
    struct buffer links = {0};
    size_t members = 0;
    do {
        buffer_puts(&links, prefix);
        append_link(&links, dump, thread);
        thread = &dump->threads[thread->owner];
        members++;
    } while (thread != first);
    if (members == 1)
        sink_print(sink, "%sdeadlock: a thread waits for itself\n", prefix);
    else
        sink_print(sink, "%sdeadlock: %zu threads wait for each other\n", prefix, members);
    sink_put(sink, &links);
}

void dump_put_deadlocks(struct sink *sink, const struct fgprof_dump *dump, const char *prefix)
{
    for (size_t i = 1; i <= dump->deadlock_count && !sink->error; i++) {
        put_deadlock(sink, dump, i, prefix);
        sink_print(sink, "\n");
    }
}

/* Threads of equal stack, name and state are one sample. */
static int write_pprof(const struct fgprof_dump *dump, int fd)
{
    struct fgprof_profile profile = *dump->profile;
    profile.is_of_threads = true;
    profile.threads = FGPROF_THREADS_BY_NAME;
    profile.has_elapsed = false;
    return fgprof_profile_write(&profile, FGPROF_PPROF, fd);
}

int fgprof_dump_write(const fgprof_dump *dump, enum fgprof_dump_format format, int fd)
{
    static void (*const writers[])(const struct fgprof_dump *, struct sink *) = {
        [FGPROF_DUMP_TEXT] = output_dump_text,
        [FGPROF_DUMP_GROUPED] = output_dump_grouped,
        [FGPROF_DUMP_JSON] = output_dump_json,
        [FGPROF_DUMP_ADDRESSES] = output_dump_addresses,
    };
    if (format == FGPROF_DUMP_PPROF)
        return write_pprof(dump, fd);
    if ((size_t)format >= sizeof writers / sizeof *writers)
        return -EINVAL;
    struct sink *sink = malloc(sizeof *sink);
    if (!sink)
        return -ENOMEM;
    sink_open(sink, fd, false);
    writers[format](dump, sink);
    int err = sink_close(sink);
    free(sink);
    return err;
}
