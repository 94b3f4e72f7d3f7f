#include "target/family.h"
#include "target/procfs.h"
#include "target/stop.h"
#include "base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More new ids than these are not asked one by one: all processes are listed. */
#define ASKED_MAX 512
#define LISTING_MAX_AGE_NS 100000000u
#define LISTING_PART_OF_TIME 50
#define LISTING_PART_WITHOUT_IDS 10 /* where only listing finds them */
#define PID_LIMIT (4 << 20)         /* PID_MAX_LIMIT of the kernel's include/linux/threads.h */

pid_t family_parse_last_pid(const char *line)
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
               ? family_parse_last_pid(line)
               : 0;
}

static int append(struct relatives *relatives, const struct relative *relative)
{
    if (array_reserve((void **)&relatives->items, &relatives->capacity, relatives->count + 1,
                      sizeof *relatives->items))
        return -ENOMEM;
    relatives->items[relatives->count++] = *relative;
    return 0;
}

static bool holds(const struct relatives *relatives, pid_t pid)
{
    for (size_t i = 0; i < relatives->count; i++) {
        if (relatives->items[i].pid == pid)
            return true;
    }
    return false;
}

/* Returns false where there is no such process. */
static bool read_relative(pid_t pid, struct relative *ret_relative)
{
    char path[32];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (procfs_stat(AT_FDCWD, path, &stat))
        return false;
    *ret_relative = (struct relative){pid, stat.parent, stat.start_tick};
    return true;
}

int family_add(struct family *family, pid_t pid)
{
    struct relative relative = {.pid = pid};
    read_relative(pid, &relative);
    return append(&family->members, &relative);
}

static int see(struct family *family, pid_t pid)
{
    struct relative relative;
    return read_relative(pid, &relative) ? append(&family->seen, &relative) : 0;
}

/* An id is given out before the process is there to be seen (copy_process in the kernel's fork.c):
 * so those that were new at the look before are asked again. */
static int see_new(struct family *family, pid_t last_pid)
{
    int err = 0;
    for (pid_t pid = family->last_pid_before + 1; pid <= last_pid && !err; pid++)
        err = see(family, pid);
    return err;
}

static int see_all(struct family *family)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    int err = 0;
    while (!err && proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0)
            err = see(family, pid);
    }
    if (proc)
        closedir(proc);
    return err;
}

/* Members that are there no more, after all processes were seen. */
static void drop_gone(struct family *family)
{
    size_t kept = 0;
    for (size_t i = 0; i < family->members.count; i++) {
        const struct relative *member = &family->members.items[i];
        for (size_t j = 0; j < family->seen.count; j++) {
            const struct relative *seen = &family->seen.items[j];
            if (seen->pid == member->pid && seen->start_tick == member->start_tick) {
                family->members.items[kept++] = *member;
                break;
            }
        }
    }
    family->members.count = kept;
}

/* Whose parent is a member, until there are no more: a child's id may be less than its parent's. */
static int take_in_seen(struct family *family)
{
    pid_t own_pid = getpid();
    int err = 0;
    for (bool has_more = true; has_more && !err;) {
        has_more = false;
        for (size_t i = 0; i < family->seen.count && !err; i++) {
            const struct relative *seen = &family->seen.items[i];
            if (seen->pid == own_pid || !holds(&family->members, seen->parent) ||
                holds(&family->members, seen->pid))
                continue;
            has_more = true;
            err = append(&family->members, seen);
            if (!err)
                err = array_reserve((void **)&family->found, &family->found_capacity,
                                    family->found_count + 1, sizeof *family->found);
            if (!err)
                family->found[family->found_count++] = seen->pid;
        }
    }
    return err;
}

static bool must_list(const struct family *family, pid_t last_pid, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - family->listed_ns;
    if (!family->listed_ns || last_pid < family->last_pid_before ||
        last_pid - family->last_pid_before > ASKED_MAX)
        return true;
    if (!last_pid || family->last_pid_lags)
        return age_ns >= LISTING_PART_WITHOUT_IDS * family->listing_ns;
    return age_ns >= LISTING_MAX_AGE_NS && age_ns >= LISTING_PART_OF_TIME * family->listing_ns;
}

/* A new one with an id that was said to be given out before, or not to be given out yet, shows that
 * we are not told the last one. `last_pid` was read before all were listed. */
static bool is_out_of_turn(const struct family *family, pid_t last_pid)
{
    pid_t last_pid_now = read_last_pid();
    for (size_t i = 0; i < family->found_count; i++) {
        pid_t pid = family->found[i];
        if (last_pid >= family->last_pid_before && last_pid_now >= last_pid &&
            (pid <= family->last_pid_before || pid > last_pid_now))
            return true;
    }
    return false;
}

int family_look(struct family *family, uint64_t now_ns)
{
    pid_t last_pid = read_last_pid();
    bool lists = must_list(family, last_pid, now_ns);
    int err;
    family->seen.count = family->found_count = 0;
    err = lists ? see_all(family) : see_new(family, last_pid);
    if (err)
        return err;
    if (lists)
        drop_gone(family);
    err = take_in_seen(family);
    if (lists) {
        bool is_first = !family->listed_ns;
        family->last_pid_lags =
            family->last_pid_lags || (!is_first && is_out_of_turn(family, last_pid));
        family->listed_ns = now_ns;
        family->listing_ns = monotonic_ns() - now_ns;
    }
    if (lists || !family->last_pid_lags) {
        family->complete_before_ns = family->complete_ns;
        family->complete_ns = now_ns;
    }
    family->looked_before_ns = family->looked_ns;
    family->looked_ns = now_ns;
    bool follows = family->last_pid && last_pid >= family->last_pid;
    family->last_pid_before = follows ? family->last_pid : last_pid;
    family->last_pid = last_pid;
    return err;
}

void family_free(struct family *family)
{
    free(family->members.items);
    free(family->seen.items);
    free(family->found);
    *family = (struct family){0};
}
