#include "wait/facts.h"
#include "wait/socket.h"
#include "base/array.h"
#include "observe/watch.h"
#include "proc/memory.h"
#include "proc/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STATUS_BYTES 8192
#define POLL_ENTRIES_MAX 256   /* of one call that are read */
#define SLEEP_MAX_S 1000000000 /* longer counts as forever, and would not fit */

int wait_list_add(struct wait_list *list, const struct wait_facts *facts, struct program *program)
{
    if (array_reserve(&list->items, &list->capacity, list->count + 1) ||
        array_reserve(&list->programs, &list->program_capacity, list->count + 1))
        return -ENOMEM;
    list->programs[list->count] = program ? program_hold(program) : NULL;
    list->items[list->count++] = *facts;
    return 0;
}

static void release_programs(struct wait_list *list)
{
    for (size_t i = 0; list->programs && i < list->count; i++)
        program_release(list->programs[i]);
    free(list->programs);
    list->programs = NULL;
    list->program_capacity = 0;
}

void wait_list_free(struct wait_list *list)
{
    release_programs(list);
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].file);
    for (size_t i = 0; i < list->process_count; i++)
        thread_list_free(&list->processes[i].threads);
    free(list->items);
    free(list->processes);
    *list = (struct wait_list){0};
}

static void read_lock(struct wait_facts *facts)
{
    struct lock_words *lock = &facts->lock;
    uint64_t address = facts->target.address;
    size_t before = LOCK_WORDS_BEFORE * sizeof *lock->words, rest = sizeof lock->words - before;
    *lock = (struct lock_words){.is_pi = facts->target.is_pi};
    if (address % sizeof *lock->words || address < before)
        return;
    lock->has_before = memory_read(facts->tid, address - before, lock->words, before) == before;
    lock->has_rest =
        memory_read(facts->tid, address, &lock->words[LOCK_WORDS_BEFORE], rest) == rest;
}

/* The link tells what the descriptor is; nothing is opened. */
static int read_file(struct wait_facts *facts, int proc_fd, int fd)
{
    char path[32], text[PATH_MAX];
    facts->has_fd = true;
    facts->fd = fd;
    snprintf(path, sizeof path, "fd/%d", fd);
    ssize_t length = fd < 0 ? -1 : readlinkat(proc_fd, path, text, sizeof text);
    if (length < 0)
        return 0;
    facts->file = strndup(text, (size_t)length);
    return facts->file ? 0 : -ENOMEM;
}

/* Takes the first of several files. Entries with a negative descriptor are ignored (poll(2)):
 * programs take an entry out of their list that way. */
static int read_poll(struct wait_facts *facts, int proc_fd)
{
    struct pollfd entries[POLL_ENTRIES_MAX];
    uint64_t *count = &facts->target.count;
    size_t wanted = *count < POLL_ENTRIES_MAX ? (size_t)*count : POLL_ENTRIES_MAX;
    size_t bytes =
        memory_read(facts->tid, facts->target.address, entries, wanted * sizeof *entries);
    int first = -1;
    for (size_t i = bytes / sizeof *entries; i-- > 0;) {
        if (entries[i].fd < 0)
            (*count)--;
        else
            first = entries[i].fd;
    }
    return first < 0 ? 0 : read_file(facts, proc_fd, first);
}

static void read_sleep(struct wait_facts *facts)
{
    struct timespec length;
    if (memory_read(facts->tid, facts->target.address, &length, sizeof length) == sizeof length &&
        length.tv_sec >= 0 && length.tv_sec < SLEEP_MAX_S && length.tv_nsec >= 0 &&
        length.tv_nsec < 1000000000)
        facts->sleep_ns = (uint64_t)length.tv_sec * 1000000000u + (uint64_t)length.tv_nsec;
}

static int read_target(struct wait_facts *facts, int proc_fd)
{
    if (!facts->has_arguments)
        return 0;
    facts->target = call_target_of(facts->syscall_number, facts->arguments);
    switch (facts->target.kind) {
    case CALL_FUTEX:
        read_lock(facts);
        return 0;
    case CALL_FILE:
    case CALL_EPOLL:
        return read_file(facts, proc_fd, facts->target.fd);
    case CALL_POLL:
        return read_poll(facts, proc_fd);
    case CALL_SLEEP:
        read_sleep(facts);
        return 0;
    default:
        return 0;
    }
}

/* The last number of "NSpid:\t1234\t12\t5". */
static pid_t inner_tid(const struct wait_facts *facts, int proc_fd)
{
    char path[32], status[STATUS_BYTES];
    snprintf(path, sizeof path, "task/%d/status", facts->tid);
    if (procfs_read(proc_fd, path, status, sizeof status) <= 0)
        return 0;
    const char *line = strstr(status, "\nNSpid:");
    if (!line) /* a kernel without PID namespaces */
        return facts->tid;
    long last = 0;
    int used;
    for (line += strlen("\nNSpid:"); sscanf(line, "%*[\t ]%ld%n", &last, &used) == 1;
         line += used) {
    }
    return last > 0 && last <= INT_MAX ? (pid_t)last : 0;
}

static bool has_moved(const struct wait_facts *facts, int proc_fd)
{
    const struct watch_place place = {proc_fd, facts->tid, 0};
    struct watch watch = {0};
    struct activity now;
    int err = watch_read_activity(&place, &watch, &now);
    watch_close(&watch);
    return err || now.counts_ends != facts->activity.counts_ends ||
           now.switches != facts->activity.switches;
}

static int compare_inodes(const void *a, const void *b)
{
    const struct socket_text *left = a, *right = b;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

static bool socket_inode(const struct wait_facts *facts, uint64_t *ret_inode)
{
    return facts->file && sscanf(facts->file, "socket:[%" SCNu64 "]", ret_inode) == 1;
}

static int name_socket(struct wait_facts *facts, const struct socket_text *sockets, size_t count)
{
    struct socket_text wanted;
    if (!socket_inode(facts, &wanted.inode))
        return 0;
    const struct socket_text *found =
        bsearch(&wanted, sockets, count, sizeof *sockets, compare_inodes);
    char *text;
    if (!found || !*found->text)
        return 0;
    if (asprintf(&text, "%s %s", facts->file, found->text) < 0)
        return -ENOMEM;
    free(facts->file);
    facts->file = text;
    return 0;
}

/* Names the sockets of `count` threads of one process, reading its tables once. */
static int name_sockets(struct wait_facts *items, size_t count, int proc_fd)
{
    struct socket_text *sockets = calloc(count + 1, sizeof *sockets);
    size_t wanted = 0, distinct = 0;
    int err = 0;
    if (!sockets)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        wanted += socket_inode(&items[i], &sockets[wanted].inode);
    qsort(sockets, wanted, sizeof *sockets, compare_inodes);
    for (size_t i = 0; i < wanted; i++) {
        if (!distinct || sockets[distinct - 1].inode != sockets[i].inode)
            sockets[distinct++].inode = sockets[i].inode;
    }
    if (distinct)
        sockets_find(proc_fd, sockets, distinct);
    for (size_t i = 0; i < count && !err; i++)
        err = name_socket(&items[i], sockets, distinct);
    free(sockets);
    return err;
}

static void forget(struct wait_facts *facts)
{
    free(facts->file);
    facts->file = NULL;
    facts->has_fd = false;
    facts->sleep_ns = 0;
    facts->target = (struct call_target){0};
    facts->lock = (struct lock_words){0};
}

int wait_list_read(struct wait_list *list)
{
    int err = 0;
    size_t first = list->read_count;
    for (size_t i = first; i < list->count && !err; i++) {
        if (!list->programs[i])
            continue;
        int proc_fd = list->programs[i]->proc_fd;
        list->items[i].inner_tid = inner_tid(&list->items[i], proc_fd);
        err = read_target(&list->items[i], proc_fd);
    }
    for (size_t i = first; i < list->count; i++) {
        struct wait_facts *facts = &list->items[i];
        if (facts->has_arguments && has_moved(facts, list->programs[i]->proc_fd))
            forget(facts);
    }
    list->read_count = list->count;
    return err;
}

/* What wait_list_finish sorts. */
struct entry {
    struct wait_facts facts;
    struct program *program;
};

static int compare_threads(const void *a, const void *b)
{
    const struct wait_facts *left = &((const struct entry *)a)->facts;
    const struct wait_facts *right = &((const struct entry *)b)->facts;
    if (left->process_id != right->process_id)
        return left->process_id < right->process_id ? -1 : 1;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

static int sort(struct wait_list *list)
{
    struct entry *entries = calloc(list->count, sizeof *entries);
    if (!entries)
        return -ENOMEM;
    for (size_t i = 0; i < list->count; i++)
        entries[i] = (struct entry){list->items[i], list->programs[i]};
    qsort(entries, list->count, sizeof *entries, compare_threads);
    for (size_t i = 0; i < list->count; i++) {
        list->items[i] = entries[i].facts;
        list->programs[i] = entries[i].program;
    }
    free(entries);
    return 0;
}

/* Notes which threads the process has now. */
static int list_threads(struct wait_list *list, pid_t process_id, int proc_fd)
{
    struct wait_process item = {.process_id = process_id};
    int task_fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct process process = {.task_dir = task_fd < 0 ? NULL : fdopendir(task_fd)};
    if (!process.task_dir) {
        if (task_fd >= 0)
            close(task_fd);
        return 0;
    }
    int err = process_list_threads(&process, &item.threads, SIZE_MAX);
    closedir(process.task_dir);
    if (!err)
        err = array_reserve(&list->processes, &list->process_capacity, list->process_count + 1);
    if (err)
        thread_list_free(&item.threads);
    else
        list->processes[list->process_count++] = item;
    return err;
}

/* Completes the facts of the threads from `first` up to `end`, all of one process. */
static int finish_process(struct wait_list *list, size_t first, size_t end)
{
    const struct program *program = NULL;
    for (size_t i = first; i < end && !program; i++)
        program = list->programs[i];
    if (!program)
        return 0;
    int err = name_sockets(&list->items[first], end - first, program->proc_fd);
    return err ? err : list_threads(list, program->process_id, program->proc_fd);
}

int wait_list_finish(struct wait_list *list)
{
    int err = wait_list_read(list);
    if (!err && list->count)
        err = sort(list);
    for (size_t i = 0; i < list->count && !err; i++) {
        struct wait_facts *facts = &list->items[i];
        facts->has_gone_on = facts->has_arguments && has_moved(facts, list->programs[i]->proc_fd);
    }
    for (size_t first = 0, end; first < list->count && !err; first = end) {
        for (end = first + 1; end < list->count; end++) {
            if (list->items[end].process_id != list->items[first].process_id)
                break;
        }
        err = finish_process(list, first, end);
    }
    release_programs(list);
    return err;
}

static int compare_tids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

bool wait_list_has_thread(const struct wait_list *list, pid_t process_id, pid_t tid)
{
    for (size_t i = 0; i < list->process_count; i++) {
        const struct thread_list *threads = &list->processes[i].threads;
        if (list->processes[i].process_id == process_id)
            return threads->count &&
                   bsearch(&tid, threads->tids, threads->count, sizeof tid, compare_tids);
    }
    return true;
}
