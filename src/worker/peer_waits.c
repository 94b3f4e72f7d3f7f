#include "worker/peer_waits.h"
#include "base/array.h"
#include "base/clock.h"
#include "observe/watch.h"
#include "wait/child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The maximum age of the lists of descriptors and of sockets, how often each is made at most (with
 * a limit of its own for descriptors of new programs), and for what part of the time. */
#define LISTING_OLD_NS 3000000000u
#define LISTING_AGE_NS 1000000000u
#define LISTING_NEW_AGE_NS 100000000u
#define LISTING_PART_OF_TIME 50
/* Reading /proc/locks takes the kernel a grace period, in which it mostly sleeps. */
#define LOCKS_AGE_NS 250000000u
#define LOCKS_PART_OF_TIME 10
#define CHILDREN_PART_OF_TIME 100
/* While the kernel lists the entries of an epoll descriptor, it locks the descriptor for some
 * microseconds per entry, so processes that may have more entries are skipped. */
#define EPOLL_SLOTS_MAX 256
#define EPOLL_AGE_NS 3000000000u
#define EPOLL_PART_OF_TIME 500
#define STATUS_BYTES 4096
#define ROWS_MAX 65536u
#define NAMES_MAX 4096u
#define EXACT_COUNT_MAX 8

struct peer_answer_row {
    struct resource link; /* what the descriptor is */
    uint32_t process;     /* which waits */
    enum file_use use;
    uint64_t locks_read; /* of a file lock: when it was asked */
    struct peer_answer answer;
};
#define QUESTION_BYTES offsetof(struct peer_answer_row, locks_read)
_Static_assert(QUESTION_BYTES == 24, "no padding: questions are compared as bytes");

struct epoll_row {
    uint32_t program;
    int fd;
    struct throttle reading;
    uint64_t count; /* 0: not known */
    struct polled polled;
};

int peer_waits_begin(struct peer_waits *waits, struct program *program, uint32_t process)
{
    if (array_append(&waits->programs, &waits->program_count, &waits->program_capacity,
                     (struct peer_program){program_hold(program), process}))
        return -ENOMEM;
    waits->program_added_ns = monotonic_ns();
    return 0;
}

void peer_waits_end(struct peer_waits *waits, uint32_t program)
{
    for (size_t i = 0; i < waits->program_count; i++) {
        if (waits->programs[i].program->number != program)
            continue;
        program_release(waits->programs[i].program);
        waits->programs[i] = waits->programs[--waits->program_count];
        return;
    }
}

static void forget_answers(struct peer_waits *waits)
{
    waits->answer_count = 0;
    index_free(&waits->answer_index);
}

static void forget_epolls(struct peer_waits *waits)
{
    waits->epoll_count = 0;
    index_free(&waits->epoll_index);
}

void peer_waits_free(struct peer_waits *waits)
{
    while (waits->program_count)
        program_release(waits->programs[--waits->program_count].program);
    forget_answers(waits);
    forget_epolls(waits);
    peers_free(&waits->peers);
    free(waits->programs);
    free(waits->answers);
    free(waits->epolls);
    *waits = (struct peer_waits){0};
}

/* A sampled program of this process, or NULL. */
static const struct peer_program *program_of_pid(const struct peer_waits *waits, pid_t process_id)
{
    for (size_t i = 0; i < waits->program_count && process_id > 0; i++) {
        if (waits->programs[i].program->process_id == process_id)
            return &waits->programs[i];
    }
    return NULL;
}

bool peer_waits_is_single(const struct peer_waits *waits, uint32_t process)
{
    struct stat status;
    for (size_t i = 0; i < waits->program_count; i++) {
        /* Its entries are ".", ".." and a folder for each thread. */
        if (waits->programs[i].process == process &&
            fstatat(waits->programs[i].program->proc_fd, "task", &status, 0) == 0)
            return status.st_nlink == 3;
    }
    return false;
}

/* Whether a list must be reread, because it does not answer a question (`lacks_something`), or
 * because it is old. */
static bool is_due(const struct throttle *throttle, uint64_t now_ns, bool lacks_something,
                   uint64_t age_ns)
{
    return (lacks_something || now_ns >= throttle->done_ns + LISTING_OLD_NS) &&
           throttle_allows(throttle, now_ns, age_ns, LISTING_PART_OF_TIME);
}

/* Rereads the lists that a question about the resource needs, if due. New descriptors may be new
 * sockets. */
static int list_again(struct peer_waits *waits, const struct resource *resource,
                      bool lacks_something)
{
    uint64_t now_ns = monotonic_ns();
    bool is_socket = resource->kind == RESOURCE_SOCKET;
    bool lacks_program = waits->program_added_ns >= waits->listing.done_ns;
    bool sockets_due =
        is_socket && is_due(&waits->sockets, now_ns, lacks_something, LISTING_AGE_NS);
    if (!sockets_due &&
        !is_due(&waits->listing, now_ns, lacks_program || (lacks_something && !is_socket),
                lacks_program ? LISTING_NEW_AGE_NS : LISTING_AGE_NS))
        return 0;
    if (sockets_due) {
        peers_forget_sockets(&waits->peers);
        waits->sockets = (struct throttle){.done_ns = now_ns};
    }
    peers_forget_processes(&waits->peers);
    forget_answers(waits);
    int err = 0;
    for (size_t i = 0; i < waits->program_count && !err; i++)
        err = peers_add_process(&waits->peers, waits->programs[i].program->process_id,
                                waits->programs[i].program->proc_fd);
    peers_finish(&waits->peers);
    waits->listing.done_ns = now_ns;
    waits->listing.cost_ns = monotonic_ns() - now_ns;
    if (sockets_due)
        waits->sockets.cost_ns += waits->listing.cost_ns;
    return err;
}

static struct peer_answer_row *find_answer(const struct peer_waits *waits,
                                           const struct peer_answer_row *question)
{
    uint32_t item = INDEX_FIND(&waits->answer_index, QUESTION_BYTES, question, waits->answers);
    return item == INDEX_NONE ? NULL : &waits->answers[item];
}

static int ask(struct peer_waits *waits, const struct waited_file *file,
               const struct peer_answer_row *question, struct peer_answer_row **ret_row)
{
    uint32_t item;
    if (waits->answer_count >= ROWS_MAX && !find_answer(waits, question))
        forget_answers(waits);
    if (INDEX_INTERN(&waits->answer_index, QUESTION_BYTES, question, &waits->answers,
                     &waits->answer_count, &waits->answer_capacity, &item))
        return -ENOMEM;
    struct peer_answer_row *row = &waits->answers[item];
    row->locks_read = waits->locks_read;
    *ret_row = row;
    /* The sockets are read at the first question. */
    uint64_t begin_ns = monotonic_ns();
    int err = peers_find(&waits->peers, file, &row->answer);
    if (question->link.kind == RESOURCE_SOCKET)
        waits->sockets.cost_ns += monotonic_ns() - begin_ns;
    return err;
}

/* `resource` is that of the link. */
static int answer_of(struct peer_waits *waits, const struct waited_file *file,
                     const struct resource *resource, uint32_t process, uint64_t since_ns,
                     const struct peer_answer **ret_answer)
{
    /* The ends of a pipe are the same for all. */
    const struct peer_answer_row question = {
        .link = *resource,
        .process = resource->kind == RESOURCE_PIPE ? 0 : process,
        .use = file->use,
    };
    bool is_lock = file->use >= FILE_USE_FLOCK;
    int err = list_again(waits, resource, false);
    struct peer_answer_row *row = find_answer(waits, &question);
    if (!err && (!row || (is_lock && row->locks_read != waits->locks_read)))
        err = ask(waits, file, &question, &row);
    if (!err && !row->answer.is_known) {
        err = list_again(waits, resource, true);
        if (!err && !find_answer(waits, &question))
            err = ask(waits, file, &question, &row);
        /* Lists made since the wait began would have the answer. Some sockets are in none, such as
         * netlink sockets to the kernel. */
        const struct throttle *reading =
            resource->kind == RESOURCE_SOCKET ? &waits->sockets : &waits->listing;
        if (!err && reading->done_ns > since_ns)
            row->answer.is_known = true;
    }
    if (!err)
        *ret_answer = &row->answer;
    return err;
}

/* Rereads the file locks if due. *ret_is_news: they were read after the thread was seen asleep, and
 * not during an earlier wait. */
static int read_locks(struct peer_waits *waits, uint64_t since_ns, bool *ret_is_news)
{
    uint64_t now_ns = monotonic_ns();
    int err = 0;
    if (throttle_allows(&waits->locks, now_ns, LOCKS_AGE_NS, LOCKS_PART_OF_TIME)) {
        err = peers_read_locks(&waits->peers);
        waits->locks_read++;
        waits->locks.done_ns = now_ns;
        waits->locks.cost_ns = monotonic_ns() - now_ns;
    }
    *ret_is_news = waits->locks.done_ns >= since_ns;
    return err;
}

/* Sets the resource that is waited for; its name, which the target chose, is kept as a string. */
static int set_name(struct peer_waits *waits, struct results *results, enum resource_kind kind,
                    const char *name, struct counted_wait *wait)
{
    uint32_t id;
    size_t before = results->strings.count;
    if (waits->name_count >= NAMES_MAX && !strings_find(&results->strings, name, &id))
        name = resource_kind_name(kind);
    int err = strings_intern(&results->strings, name, &id);
    waits->name_count += results->strings.count > before;
    wait->kind = kind;
    wait->key = id;
    return err;
}

void peer_waits_limit_names(struct peer_waits *waits, size_t string_count)
{
    if (waits->name_count > string_count)
        waits->name_count = string_count;
}

/* The descriptor that the observed thread waits on. */
static struct waited_file file_of(const struct observation *observation, int fd, enum file_use use,
                                  const char *link)
{
    return (struct waited_file){
        .process_id = observation->program->process_id,
        .proc_fd = observation->program->proc_fd,
        .fd = fd,
        .use = use,
        .link = link,
        .is_uninterruptible = observation->state == THREAD_UNINTERRUPTIBLE,
    };
}

/* Whether another process may have to do with it. */
static bool may_have_peer(const struct waited_file *file, const struct resource *resource)
{
    if (resource->kind != RESOURCE_FILE || file->use >= FILE_USE_FLOCK)
        return true;
    /* It may be a FIFO: threads do not sleep interruptibly in ordinary files. */
    return *file->link == '/' && strncmp(file->link, "/dev/", 5) != 0 &&
           !file->is_uninterruptible && (file->use == FILE_USE_READ || file->use == FILE_USE_WRITE);
}

static const char *name_of_answer(const struct waited_file *file, const struct peer_answer *answer,
                                  char name[RESOURCE_NAME_BYTES])
{
    switch (answer->resource.kind) {
    case RESOURCE_PIPE:
        return "pipe";
    case RESOURCE_UNIX_SOCKET:
    case RESOURCE_TCP_SOCKET:
    case RESOURCE_SOCKET:
        return *answer->service ? answer->service : "socket (not looked up)";
    default:
        resource_name(&answer->resource, file->link, name);
        return name;
    }
}

/* Whether a program may not be listed yet, or not have all its descriptors. */
static bool has_new_programs(const struct peer_waits *waits)
{
    return monotonic_ns() < waits->program_added_ns + LISTING_OLD_NS;
}

static int find_file(struct peer_waits *waits, struct results *results,
                     const struct observation *observation, const struct waited_file *file,
                     uint64_t since_ns, struct peer_wait *wait)
{
    const struct peer_answer *answer;
    char name[RESOURCE_NAME_BYTES], within[RESOURCE_NAME_BYTES + 32];
    bool is_lock = file->use >= FILE_USE_FLOCK, is_news = true;
    int err = 0;
    if (!*file->link)
        return 0;
    const struct resource resource = resource_of_link(file->link, file->process_id, file->fd);
    if (!may_have_peer(file, &resource))
        return set_name(waits, results, RESOURCE_FILE, file->link, &wait->wait);
    if (is_lock)
        err = read_locks(waits, since_ns, &is_news);
    if (!err)
        err = answer_of(waits, file, &resource, observation->process, since_ns, &answer);
    if (err)
        return err;
    const char *text = name_of_answer(file, answer, name);
    const struct peer_program *owner = is_news ? program_of_pid(waits, answer->process_id) : NULL;
    wait->is_pending = is_lock || !answer->is_known || (!owner && has_new_programs(waits));
    if (owner && owner->process == observation->process) {
        snprintf(within, sizeof within, "%s within the process", text);
        text = within;
    } else if (owner) {
        wait->wait.owner_process = owner->process;
    }
    return set_name(waits, results, answer->resource.kind, text, &wait->wait);
}

/* Exact counts only if there are few, because names with different numbers are different resources.
 */
static int name_several(struct peer_waits *waits, struct results *results, uint64_t count,
                        struct counted_wait *wait)
{
    char name[64];
    uint64_t least = EXACT_COUNT_MAX;
    while (least <= count / 2)
        least *= 2;
    if (!count)
        snprintf(name, sizeof name, "%s", resource_kind_name(RESOURCE_POLL));
    else if (count <= EXACT_COUNT_MAX)
        snprintf(name, sizeof name, "%" PRIu64 " descriptor%s", count, count > 1 ? "s" : "");
    else
        snprintf(name, sizeof name, "%" PRIu64 " or more descriptors", least);
    return set_name(waits, results, RESOURCE_POLL, name, wait);
}

static bool has_few_descriptors(struct peer_waits *waits, const struct program *program,
                                uint64_t now_ns)
{
    char status[STATUS_BYTES];
    if (waits->descriptors.read_ns && waits->descriptors.program == program->number &&
        now_ns < waits->descriptors.read_ns + EPOLL_AGE_NS)
        return waits->descriptors.is_few;
    ssize_t length = procfs_read(program->proc_fd, "status", status, sizeof status);
    long slots = length > 0 ? procfs_status_number(status, "FDSize:") : -1;
    waits->descriptors.program = program->number;
    waits->descriptors.read_ns = now_ns;
    waits->descriptors.is_few = slots >= 0 && slots <= EPOLL_SLOTS_MAX;
    return waits->descriptors.is_few;
}

static void read_epoll(struct peer_waits *waits, const struct program *program,
                       struct epoll_row *row)
{
    struct descriptor_info info;
    uint64_t now_ns = monotonic_ns();
    if (!throttle_allows(&row->reading, now_ns, EPOLL_AGE_NS, EPOLL_PART_OF_TIME))
        return;
    row->count = 0;
    if (has_few_descriptors(waits, program, now_ns) &&
        descriptor_info_read(program->proc_fd, row->fd, &info) == 0) {
        row->count = info.polled_count;
        row->polled = info.polled;
    }
    row->reading.done_ns = now_ns;
    row->reading.cost_ns = monotonic_ns() - now_ns;
}

static int find_epoll(struct peer_waits *waits, struct results *results,
                      const struct observation *observation, uint64_t since_ns,
                      struct peer_wait *wait)
{
    const struct program *program = observation->program;
    const struct epoll_row key = {.program = program->number, .fd = observation->wait.call.fd};
    size_t key_bytes = offsetof(struct epoll_row, reading);
    uint32_t item = INDEX_FIND(&waits->epoll_index, key_bytes, &key, waits->epolls);
    if (item == INDEX_NONE && waits->epoll_count >= ROWS_MAX)
        forget_epolls(waits);
    if (item == INDEX_NONE && INDEX_INTERN(&waits->epoll_index, key_bytes, &key, &waits->epolls,
                                           &waits->epoll_count, &waits->epoll_capacity, &item))
        return -ENOMEM;
    struct epoll_row *row = &waits->epolls[item];
    read_epoll(waits, program, row);
    if (row->count != 1)
        return name_several(waits, results, row->count, &wait->wait);
    struct call_memory memory;
    const struct call_target only = {.fd = row->polled.fd};
    call_read_link(&only, program->proc_fd, &memory);
    const struct waited_file file =
        file_of(observation, row->polled.fd, row->polled.use, memory.link);
    return *memory.link ? find_file(waits, results, observation, &file, since_ns, wait)
                        : name_several(waits, results, row->count, &wait->wait);
}

static bool has_moved(const struct observation *observation)
{
    const struct watch_place place = {observation->program->proc_fd, observation->tid, 0};
    const struct activity *before = &observation->now.activity;
    struct watch watch = {0};
    struct activity now;
    int err = watch_read_activity(&place, &watch, &now);
    watch_close(&watch);
    return err || !observation->now.has_activity || now.counts_ends != before->counts_ends ||
           now.switches != before->switches;
}

/* The child that the thread waits for; 0: not known, or not one. */
static pid_t find_child_id(struct peer_waits *waits, const struct observation *observation)
{
    const struct call_target *target = &observation->wait.call;
    uint64_t now_ns = monotonic_ns();
    if (target->process > 0 && observation->inner_tid == observation->tid)
        return target->process;
    if (!throttle_allows(&waits->children, now_ns, 0, CHILDREN_PART_OF_TIME))
        return 0;
    pid_t child = child_waited_for(observation->program->proc_fd, observation->tid, target);
    /* It may belong to another wait. */
    if (child && has_moved(observation))
        child = 0;
    waits->children.done_ns = monotonic_ns();
    waits->children.cost_ns = waits->children.done_ns - now_ns;
    return child;
}

static int find_child(struct peer_waits *waits, struct results *results,
                      const struct observation *observation, uint64_t since_ns,
                      struct waited_child *child, struct peer_wait *wait)
{
    char name[RESOURCE_NAME_BYTES];
    if (!child->process_id || child->since_ns != since_ns)
        *child = (struct waited_child){find_child_id(waits, observation), since_ns};
    const struct peer_program *owner = program_of_pid(waits, child->process_id);
    const struct resource resource = {.kind = RESOURCE_PROCESS,
                                      .process_id = child->process_id ? 0 : 1,
                                      .key = (uint64_t)child->process_id};
    wait->is_pending = !owner; /* it may be sampled soon */
    if (owner)
        wait->wait.owner_process = owner->process;
    resource_name(&resource, NULL, name);
    return set_name(waits, results, RESOURCE_PROCESS, name, &wait->wait);
}

static int find_ipc(struct peer_waits *waits, struct results *results, enum resource_kind kind,
                    int id, struct counted_wait *wait)
{
    const struct resource resource = {.kind = kind, .key = (uint32_t)id};
    char name[RESOURCE_NAME_BYTES];
    resource_name(&resource, NULL, name);
    return set_name(waits, results, kind, name, wait);
}

int peer_waits_find(struct peer_waits *waits, struct results *results,
                    const struct observation *observation, uint64_t since_ns,
                    struct waited_child *child, struct peer_wait *ret_wait)
{
    const struct call_target *call = &observation->wait.call;
    const struct waited_file file =
        file_of(observation, call->fd, call->use, observation->wait.memory.link);
    *ret_wait = (struct peer_wait){.wait = wait_of_nothing(observation->process)};
    switch (call->kind) {
    case CALL_POLL:
    case CALL_SELECT:
        return name_several(waits, results, call->count, &ret_wait->wait);
    case CALL_FILE:
        return find_file(waits, results, observation, &file, since_ns, ret_wait);
    case CALL_EPOLL:
        return find_epoll(waits, results, observation, since_ns, ret_wait);
    case CALL_PROCESS:
        return find_child(waits, results, observation, since_ns, child, ret_wait);
    case CALL_SEMAPHORES:
        return find_ipc(waits, results, RESOURCE_SEMAPHORES, call->fd, &ret_wait->wait);
    case CALL_MESSAGES:
        return find_ipc(waits, results, RESOURCE_MESSAGES, call->fd, &ret_wait->wait);
    default:
        return 0;
    }
}
