#include "proc/descendants.h"
#include "proc/procfs.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/upper_bound.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* If there are more new ids than this, all processes are listed instead of asking for each. */
#define ASKED_MAX 512
#define LISTING_MAX_AGE_NS 100000000u
#define LISTING_PART_OF_TIME 50
#define LISTING_PART_WITHOUT_IDS 10 /* if only listing finds new processes */
#define UNSEEN_MAX 128              /* how many ids are asked for again: the newest */
#define UNSEEN_MAX_AGE_NS 1000000000u
#define PID_LIMIT (4 << 20) /* PID_MAX_LIMIT of the kernel's include/linux/threads.h */

pid_t descendants_parse_last_pid(const char *line)
{
    const char *slash = strchr(line, '/');
    const char *space = slash ? strchr(slash, ' ') : NULL;
    long last = space ? strtol(space, NULL, 10) : 0;
    return last > 0 && last <= PID_LIMIT ? (pid_t)last : 0;
}

static pid_t read_last_pid(void)
{
    char line[128];
    return procfs_read(AT_FDCWD, "/proc/loadavg", line, sizeof line) > 0
               ? descendants_parse_last_pid(line)
               : 0;
}

static int append(struct relatives *relatives, const struct relative *relative)
{
    return array_append(&relatives->items, &relatives->count, &relatives->capacity, *relative);
}

/* The member with this id, or NULL. */
static struct relative *find_member(const struct descendants *descendants, pid_t pid)
{
    struct relative *members = descendants->members.items;
    uint32_t number = INDEX_FIND(&descendants->by_pid, sizeof pid, &pid, members);
    return number == INDEX_NONE ? NULL : &members[number];
}

/* In place of a member that had the id before. */
static int add_member(struct descendants *descendants, const struct relative *relative)
{
    struct relatives *members = &descendants->members;
    uint32_t number;
    int err = INDEX_INTERN(&descendants->by_pid, sizeof relative->pid, relative, &members->items,
                           &members->count, &members->capacity, &number);
    if (!err)
        members->items[number] = *relative;
    return err;
}

/* Returns 0 or a negative errno. */
static int read_relative(pid_t pid, struct relative *ret_relative)
{
    char path[32];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int err = procfs_stat(AT_FDCWD, path, &stat);
    if (!err)
        *ret_relative =
            (struct relative){.pid = pid, .parent = stat.parent, .start_tick = stat.start_tick};
    return err;
}

/* Whether a read failed for want of descriptors or memory, which says nothing about the process.
 * Other errors do: it is gone, or hidden from us, as hidepid of proc(5) does for good. */
static bool is_shortage(int err)
{
    return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

int descendants_add(struct descendants *descendants, pid_t pid)
{
    struct relative relative = {.pid = pid};
    read_relative(pid, &relative);
    return add_member(descendants, &relative);
}

/* Returns 0, even if there is no such process, or -ENOMEM. */
static int see(struct descendants *descendants, pid_t pid, uint64_t unseen_ns, bool *ret_is_there)
{
    struct relative relative;
    *ret_is_there = !read_relative(pid, &relative);
    relative.unseen_ns = unseen_ns;
    return *ret_is_there ? append(&descendants->seen, &relative) : 0;
}

/* Keeps the newest ids that are not too old. */
static void give_up_old_ids(struct descendants *descendants, uint64_t now_ns)
{
    size_t surplus =
        descendants->unseen_count > UNSEEN_MAX ? descendants->unseen_count - UNSEEN_MAX : 0;
    while (surplus < descendants->unseen_count &&
           now_ns - descendants->unseen_ids[surplus].asked_ns >= UNSEEN_MAX_AGE_NS)
        surplus++;
    if (!surplus)
        return;
    if (descendants->unseen_ids[surplus - 1].pid > descendants->given_up_pid)
        descendants->given_up_pid = descendants->unseen_ids[surplus - 1].pid;
    descendants->unseen_count -= surplus;
    memmove(descendants->unseen_ids, descendants->unseen_ids + surplus,
            descendants->unseen_count * sizeof *descendants->unseen_ids);
}

/* Asks again for the ids that had no process. */
static int see_unseen(struct descendants *descendants)
{
    size_t kept = 0;
    int err = 0;
    for (size_t i = 0; i < descendants->unseen_count; i++) {
        const struct unseen_id id = descendants->unseen_ids[i];
        bool is_there = false;
        if (!err)
            err = see(descendants, id.pid, id.unseen_ns, &is_there);
        if (!is_there)
            descendants->unseen_ids[kept++] = id;
    }
    descendants->unseen_count = kept;
    return err;
}

/* Asks for the ids that were handed out since the last look. */
static int see_new(struct descendants *descendants, pid_t last_pid, uint64_t now_ns)
{
    int err = 0;
    for (pid_t pid = descendants->last_pid + 1; pid <= last_pid && !err; pid++) {
        bool is_there;
        err = see(descendants, pid, descendants->complete_ns, &is_there);
        if (err || is_there)
            continue;
        err = array_append(&descendants->unseen_ids, &descendants->unseen_count,
                           &descendants->unseen_capacity,
                           (struct unseen_id){pid, now_ns, descendants->complete_ns});
    }
    return err;
}

static int see_listed(struct descendants *descendants, pid_t pid, bool *ret_is_complete)
{
    struct relative relative;
    int err = read_relative(pid, &relative);
    *ret_is_complete = !is_shortage(err);
    if (err)
        return 0;
    relative.is_listed = true;
    relative.unseen_ns =
        pid > descendants->last_pid ? descendants->complete_ns : descendants->listing.done_ns;
    return append(&descendants->seen, &relative);
}

/* Lists all processes; those already seen are in `seen` twice. Returns 0 or -ENOMEM. Sets
 * *ret_is_complete to whether the listing reached its end: a shortage breaks it off. */
static int see_all(struct descendants *descendants, bool *ret_is_complete)
{
    DIR *proc = opendir("/proc");
    bool is_complete = proc != NULL;
    int err = 0;
    while (!err && is_complete) {
        errno = 0;
        const struct dirent *entry = readdir(proc);
        if (!entry) {
            is_complete = !errno;
            break;
        }
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0)
            err = see_listed(descendants, pid, &is_complete);
    }
    if (proc)
        closedir(proc);
    *ret_is_complete = is_complete;
    return err;
}

/* Drops members that no longer exist; all processes must have been seen. */
static void drop_gone(struct descendants *descendants)
{
    struct relatives *members = &descendants->members;
    size_t kept = 0;
    for (size_t i = 0; i < descendants->seen.count; i++) {
        const struct relative *seen = &descendants->seen.items[i];
        struct relative *member = find_member(descendants, seen->pid);
        if (member && member->start_tick == seen->start_tick)
            member->is_there = true;
    }
    for (size_t i = 0; i < members->count; i++) {
        if (!members->items[i].is_there)
            continue;
        members->items[kept] = members->items[i];
        members->items[kept++].is_there = false;
    }
    members->count = kept;
    INDEX_AGAIN(&descendants->by_pid, sizeof(pid_t), members->items, kept);
}

/* Children of one parent are adjacent, and a process that was looked up by its id precedes its
 * duplicate from the listing. */
static int compare_parents(const void *a, const void *b)
{
    const struct relative *left = a, *right = b;
    if (left->parent != right->parent)
        return ORDER(left->parent, right->parent);
    return left->pid != right->pid ? ORDER(left->pid, right->pid)
                                   : ORDER(left->is_listed, right->is_listed);
}

/* The first of what was seen whose parent is not below `parent`. */
static size_t first_child(const struct relatives *seen, pid_t parent)
{
    return parent
               ? upper_bound(seen->items, seen->count, sizeof *seen->items,
                             offsetof(struct relative, parent), sizeof parent, (uint64_t)parent - 1)
               : 0;
}

/* Adds the children of each member, those that it adds included. */
static int take_in_seen(struct descendants *descendants)
{
    const struct relatives *seen = &descendants->seen;
    pid_t own_pid = getpid();
    int err = 0;
    array_sort(seen->items, seen->count, compare_parents);
    for (size_t i = 0; i < descendants->members.count && seen->count && !err; i++) {
        pid_t parent = descendants->members.items[i].pid;
        for (size_t j = first_child(seen, parent);
             j < seen->count && seen->items[j].parent == parent && !err; j++) {
            const struct relative *child = &seen->items[j];
            if (child->pid == own_pid || find_member(descendants, child->pid))
                continue;
            err = add_member(descendants, child);
            if (!err)
                err = append(&descendants->found, child);
        }
    }
    return err;
}

int descendants_relate(struct descendants *descendants, bool is_complete)
{
    if (is_complete)
        drop_gone(descendants);
    return take_in_seen(descendants);
}

/* Whether few enough ids were handed out since the last look to ask for each. */
static bool may_ask(const struct descendants *descendants, pid_t last_pid)
{
    return descendants->listing.done_ns && last_pid >= descendants->last_pid &&
           last_pid - descendants->last_pid <= ASKED_MAX;
}

static bool must_list(const struct descendants *descendants, pid_t last_pid, uint64_t now_ns)
{
    if (!may_ask(descendants, last_pid))
        return true;
    return !last_pid || descendants->last_pid_lags
               ? throttle_allows(&descendants->listing, now_ns, 0, LISTING_PART_WITHOUT_IDS)
               : throttle_allows(&descendants->listing, now_ns, LISTING_MAX_AGE_NS,
                                 LISTING_PART_OF_TIME);
}

/* Whether a new process shows that the reported last id is wrong: the process was listed, but its
 * id had been reported as handed out before and was not yet given up, or has not been reported yet.
 * `last_pid` was read before the listing. */
static bool is_out_of_turn(const struct descendants *descendants, pid_t last_pid)
{
    pid_t last_pid_now = read_last_pid();
    bool began_anew = last_pid < descendants->last_pid || last_pid_now < last_pid;
    for (size_t i = 0; i < descendants->found.count && !began_anew; i++) {
        const struct relative *found = &descendants->found.items[i];
        bool was_asked =
            found->pid <= descendants->last_pid && found->pid > descendants->given_up_pid;
        if (found->is_listed && (was_asked || found->pid > last_pid_now))
            return true;
    }
    return false;
}

/* Lists all processes if `lists`. Sets *ret_has_listed to whether that was complete. */
static int see_who_is_there(struct descendants *descendants, pid_t last_pid, uint64_t now_ns,
                            bool lists, bool *ret_has_listed)
{
    descendants->seen.count = 0;
    give_up_old_ids(descendants, now_ns);
    int err = see_unseen(descendants);
    if (!err && may_ask(descendants, last_pid))
        err = see_new(descendants, last_pid, now_ns);
    else
        descendants->given_up_pid = last_pid; /* they were not asked for */
    *ret_has_listed = false;
    return !err && lists ? see_all(descendants, ret_has_listed) : err;
}

int descendants_look(struct descendants *descendants, uint64_t now_ns)
{
    uint64_t began_cpu_ns = thread_cpu_ns();
    pid_t last_pid = read_last_pid();
    bool lists = must_list(descendants, last_pid, now_ns), has_listed;
    descendants->found.count = 0;
    int err = see_who_is_there(descendants, last_pid, now_ns, lists, &has_listed);
    if (err)
        return err;
    err = descendants_relate(descendants, has_listed);
    if (has_listed) {
        bool is_first = !descendants->listing.done_ns;
        descendants->last_pid_lags =
            descendants->last_pid_lags || (!is_first && is_out_of_turn(descendants, last_pid));
        descendants->listing = (struct throttle){now_ns, thread_cpu_ns() - began_cpu_ns};
    }
    if (has_listed || (!lists && !descendants->last_pid_lags))
        descendants->complete_ns = now_ns;
    descendants->looked_before_ns = descendants->looked_ns;
    descendants->looked_ns = now_ns;
    descendants->last_pid = last_pid;
    return err;
}

void descendants_free(struct descendants *descendants)
{
    free(descendants->members.items);
    index_free(&descendants->by_pid);
    free(descendants->seen.items);
    free(descendants->found.items);
    free(descendants->unseen_ids);
    *descendants = (struct descendants){0};
}
