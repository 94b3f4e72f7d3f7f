#include "wait/wait_list.h"
#include "wait/child.h"
#include "wait/peers.h"
#include "base/array.h"
#include "observe/watch.h"
#include "proc/tids.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int wait_list_add(struct wait_list *list, const struct wait_facts *facts)
{
    int err = array_append(&list->items, &list->count, &list->capacity, *facts);
    if (!err && facts->program)
        program_hold(facts->program);
    return err;
}

static void release_program(struct wait_facts *facts)
{
    program_release(facts->program);
    facts->program = NULL;
}

static void forget_files(struct wait_facts *facts)
{
    free(facts->file);
    free(facts->polled_file);
    facts->file = facts->polled_file = NULL;
    facts->has_fd = false;
}

void wait_list_free(struct wait_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        release_program(&list->items[i]);
        forget_files(&list->items[i]);
    }
    for (size_t i = 0; i < list->process_count; i++)
        thread_list_free(&list->processes[i].threads);
    free(list->items);
    free(list->processes);
    *list = (struct wait_list){0};
}

/* Reads what the descriptor is from its link, without opening it. *ret_file is NULL if it can't be
 * read. Returns 0 or -ENOMEM. */
static int read_link(int proc_fd, int fd, char **ret_file)
{
    char path[32], text[PATH_MAX];
    snprintf(path, sizeof path, "fd/%d", fd);
    ssize_t length = fd < 0 ? -1 : readlinkat(proc_fd, path, text, sizeof text);
    *ret_file = length < 0 ? NULL : strndup(text, (size_t)length);
    return length < 0 || *ret_file ? 0 : -ENOMEM;
}

static int read_file(struct wait_facts *facts, const struct polled *polled)
{
    facts->has_fd = true;
    facts->fd = polled->fd;
    facts->target.use = polled->use;
    return read_link(facts->program->proc_fd, polled->fd, &facts->file);
}

/* Takes the first of several descriptors. */
static int read_polled(struct wait_facts *facts)
{
    struct polled first;
    facts->target.count = call_polled(&facts->target, &facts->memory, &first);
    return first.fd < 0 ? 0 : read_file(facts, &first);
}

static int read_epoll(struct wait_facts *facts)
{
    int proc_fd = facts->program->proc_fd;
    struct descriptor_info info;
    const struct polled epoll = {.fd = facts->target.fd};
    int err = read_file(facts, &epoll);
    if (err || !facts->file || descriptor_info_read(proc_fd, facts->fd, &info))
        return err;
    facts->target.count = info.polled_count;
    if (info.polled_count != 1)
        return 0;
    facts->polled_fd = info.polled.fd;
    facts->target.use = info.polled.use;
    return read_link(proc_fd, info.polled.fd, &facts->polled_file);
}

/* Reads what the descriptors of the call are, after its memory was read. */
static int read_files(struct wait_facts *facts)
{
    switch (facts->target.kind) {
    case CALL_FILE:
        return read_file(facts, &(const struct polled){facts->target.fd, facts->target.use});
    case CALL_EPOLL:
        return read_epoll(facts);
    case CALL_POLL:
    case CALL_SELECT:
        return read_polled(facts);
    case CALL_SLEEP:
        facts->sleep_ns = call_sleep_ns(&facts->target, &facts->memory);
        return 0;
    default:
        return 0;
    }
}

static bool has_moved(const struct wait_facts *facts)
{
    const struct watch_place place = {facts->program->proc_fd, facts->tid, 0};
    struct watch watch = {0};
    struct activity now;
    int err = watch_read_activity(&place, &watch, &now);
    watch_close(&watch);
    return err || now.counts_ends != facts->activity.counts_ends ||
           now.switches != facts->activity.switches;
}

static void forget(struct wait_facts *facts)
{
    if (facts->gil.kind == RESOURCE_GIL)
        return;
    forget_files(facts);
    facts->sleep_ns = 0;
    facts->target = (struct call_target){0};
    facts->memory = (struct call_memory){0};
}

/* Reads the memory of `count` threads of one program, by the id of the first that is alive. While
 * that thread belongs to the process, its id can't be another process's. */
static void read_memory_of(struct wait_facts *items, size_t count, struct call_reading *readings)
{
    int proc_fd = items->program->proc_fd;
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (!items[i].has_arguments)
            continue;
        items[i].target = call_target_of(items[i].syscall_number, items[i].arguments);
        readings[wanted++] = (struct call_reading){&items[i].target, &items[i].memory};
    }
    for (size_t i = 0; i < count; i++) {
        char path[32];
        snprintf(path, sizeof path, "task/%d", items[i].tid);
        if (call_read_many(items[i].tid, readings, wanted) != -ESRCH &&
            faccessat(proc_fd, path, F_OK, 0) == 0)
            return;
    }
    for (size_t i = 0; i < wanted; i++)
        *readings[i].memory = (struct call_memory){0};
}

/* Reads the memory of the items from `first` on. */
static int read_memory(struct wait_list *list, size_t first)
{
    struct call_reading *readings = calloc(list->count - first + 1, sizeof *readings);
    if (!readings)
        return -ENOMEM;
    for (size_t begin = first, end; begin < list->count; begin = end) {
        const struct program *program = list->items[begin].program;
        for (end = begin + 1; end < list->count && list->items[end].program == program;)
            end++;
        if (program)
            read_memory_of(&list->items[begin], end - begin, readings);
    }
    free(readings);
    return 0;
}

int wait_list_read(struct wait_list *list)
{
    size_t first = list->read_count;
    int err = read_memory(list, first);
    for (size_t i = first; i < list->count && !err; i++) {
        struct wait_facts *facts = &list->items[i];
        if (!facts->program)
            continue;
        facts->inner_tid = procfs_inner_tid(facts->program->proc_fd, facts->tid);
        err = read_files(facts);
    }
    for (size_t i = first; i < list->count; i++) {
        struct wait_facts *facts = &list->items[i];
        if (facts->has_arguments && has_moved(facts))
            forget(facts);
    }
    list->read_count = list->count;
    return err;
}

static int compare_threads(const void *a, const void *b)
{
    const struct wait_facts *left = a, *right = b;
    int order = ORDER(left->process_id, right->process_id);
    return order ? order : ORDER(left->tid, right->tid);
}

/* Lists the process's threads now. */
static int list_threads(struct wait_list *list, pid_t process_id, int proc_fd)
{
    struct wait_process item = {.process_id = process_id};
    int err = process_list_threads_of(proc_fd, &item.threads, SIZE_MAX);
    if (err == -ESRCH)
        return 0;
    if (!err)
        err = array_append(&list->processes, &list->process_count, &list->process_capacity, item);
    if (err)
        thread_list_free(&item.threads);
    return err;
}

static int append_text(char **text, const char *more)
{
    char *joined;
    if (asprintf(&joined, "%s %s", *text, more) < 0)
        return -ENOMEM;
    free(*text);
    *text = joined;
    return 0;
}

/* What a descriptor is, and which process must act for the wait on it to end. */
static int find_file(struct wait_facts *facts, struct peers *peers)
{
    struct peer_answer answer;
    bool is_alone = facts->target.kind == CALL_EPOLL || facts->target.count == 1 ||
                    facts->target.kind == CALL_FILE;
    char **link = facts->polled_file ? &facts->polled_file : &facts->file;
    const struct waited_file file = {
        .process_id = facts->process_id,
        .proc_fd = facts->program->proc_fd,
        .fd = facts->polled_file ? facts->polled_fd : facts->fd,
        .use = facts->target.use,
        .link = *link,
        .is_uninterruptible = facts->is_uninterruptible,
    };
    facts->resource = (struct resource){RESOURCE_POLL, facts->process_id, 0};
    if (!*link)
        return 0;
    int err = peers_find(peers, &file, &answer);
    if (!err && *answer.text)
        err = append_text(link, answer.text);
    if (is_alone)
        facts->resource = answer.resource;
    facts->owner_process = is_alone ? answer.process_id : 0;
    return err;
}

static void find_child(struct wait_facts *facts)
{
    facts->owner_process = child_waited_for(facts->program->proc_fd, facts->tid, &facts->target);
    facts->resource = facts->owner_process
                          ? (struct resource){RESOURCE_PROCESS, 0, (uint64_t)facts->owner_process}
                          : (struct resource){RESOURCE_PROCESS, facts->process_id, 0};
}

/* Finds what the thread waits for, if it is not a futex. */
static int find_resource(struct wait_facts *facts, struct peers *peers)
{
    const uint64_t id = (uint32_t)facts->target.fd;
    int err = 0;
    switch (facts->target.kind) {
    case CALL_FILE:
    case CALL_EPOLL:
    case CALL_POLL:
    case CALL_SELECT:
        err = find_file(facts, peers);
        break;
    case CALL_PROCESS:
        find_child(facts);
        break;
    case CALL_SLEEP:
        facts->resource = (struct resource){RESOURCE_SLEEP, facts->process_id, 0};
        break;
    case CALL_SIGNAL:
        facts->resource = (struct resource){RESOURCE_SIGNAL, facts->process_id, 0};
        break;
    case CALL_SEMAPHORES:
        facts->resource = (struct resource){RESOURCE_SEMAPHORES, 0, id};
        break;
    case CALL_MESSAGES:
        facts->resource = (struct resource){RESOURCE_MESSAGES, 0, id};
        break;
    case CALL_OTHER:
    case CALL_FUTEX:
        break;
    }
    if (facts->owner_process)
        procfs_process_name(facts->owner_process, facts->owner_name);
    return err;
}

/* The items of one process. */
struct members {
    size_t first, end;
    const struct program *program; /* NULL: not known */
};

/* Sets *members to the next process, or to the first if it is zeroed. Returns false after the
 * last. */
static bool next_process(const struct wait_list *list, struct members *members)
{
    struct members next = {.first = members->end, .end = members->end};
    while (next.end < list->count &&
           list->items[next.end].process_id == list->items[next.first].process_id) {
        if (!next.program)
            next.program = list->items[next.end].program;
        next.end++;
    }
    *members = next;
    return next.first < next.end;
}

static int find_resources(struct wait_list *list)
{
    struct peers peers = {0};
    struct members members = {0};
    int err = 0;
    while (!err && next_process(list, &members)) {
        if (members.program)
            err = peers_add_process(&peers, members.program->process_id, members.program->proc_fd);
    }
    peers_finish(&peers);
    for (size_t i = 0; i < list->count && !err; i++) {
        if (list->items[i].program)
            err = find_resource(&list->items[i], &peers);
    }
    peers_free(&peers);
    return err;
}

/* Discards what was found of a thread that has moved since. */
static void note_moved(struct wait_facts *facts)
{
    facts->has_gone_on = facts->has_arguments && has_moved(facts);
    if (facts->has_gone_on) {
        facts->resource = (struct resource){0};
        facts->owner_process = 0;
    }
}

int wait_list_finish(struct wait_list *list)
{
    struct members members = {0};
    int err = wait_list_read(list);
    array_sort(list->items, list->count, compare_threads);
    if (!err)
        err = find_resources(list);
    for (size_t i = 0; i < list->count && !err; i++)
        note_moved(&list->items[i]);
    while (!err && next_process(list, &members)) {
        if (members.program)
            err = list_threads(list, members.program->process_id, members.program->proc_fd);
    }
    for (size_t i = 0; i < list->count; i++)
        release_program(&list->items[i]);
    return err;
}

bool wait_list_has_thread(const struct wait_list *list, pid_t process_id, pid_t tid)
{
    for (size_t i = 0; i < list->process_count; i++) {
        const struct thread_list *threads = &list->processes[i].threads;
        if (list->processes[i].process_id == process_id)
            return tids_have(threads->tids, threads->count, tid);
    }
    return true;
}
