#include "proc/cpu_limits.h"
#include "base/array.h"
#include "base/clock.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX 64
#define NS_PER_US 1000u

struct cpu_group {
    char *folder;
    uint64_t begin_ns;     /* how long it was throttled when it was added, */
    uint64_t throttled_ns; /* and since then, when it was last read */
};

/* ---- Files, as texts ---- */

/* Whether `name` is among those that commas separate. */
static bool has_controller(const char *list, size_t length, const char *name)
{
    size_t wanted = strlen(name);
    for (const char *at = list, *end = list + length; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t bytes = (size_t)((comma ? comma : end) - at);
        if (bytes == wanted && memcmp(at, name, bytes) == 0)
            return true;
        at += bytes + 1;
    }
    return false;
}

/* A group that is not below our own root begins with "/..". */
static bool is_below_root(const char *path)
{
    return *path == '/' && !strstr(path, "/../") &&
           (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

/* A line is such as "4:cpu,cpuacct:/user.slice" or "0::/user.slice". */
bool cpu_group_parse(const char *text, bool is_v2, char ret_path[CPU_GROUP_BYTES])
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = strcspn(line, "\n");
        const char *list = memchr(line, ':', length);
        const char *path = list ? memchr(list + 1, ':', length - (size_t)(list + 1 - line)) : NULL;
        if (!path)
            continue;
        size_t listed = (size_t)(path - list) - 1, bytes = length - (size_t)(++path - line);
        bool is_it = is_v2 ? !listed && strncmp(line, "0:", 2) == 0
                           : has_controller(list + 1, listed, "cpu");
        if (!is_it || bytes >= CPU_GROUP_BYTES)
            continue;
        memcpy(ret_path, path, bytes);
        ret_path[bytes] = '\0';
        bool is_valid = is_below_root(ret_path);
        if (bytes == 1)
            *ret_path = '\0';
        return is_valid;
    }
    return false;
}

static uint64_t times(uint64_t number, uint64_t factor)
{
    return number > UINT64_MAX / factor ? UINT64_MAX : number * factor;
}

uint64_t cpu_throttled_parse(const char *text)
{
    long usec = procfs_status_number(text, "throttled_usec "); /* version 2 */
    long nsec = procfs_status_number(text, "throttled_time ");
    return usec > 0 ? times((uint64_t)usec, NS_PER_US) : nsec > 0 ? (uint64_t)nsec : 0;
}

uint64_t cpu_quota_parse(const char *text)
{
    int64_t quota_us, period_us;
    if (sscanf(text, "%" SCNd64 " %" SCNd64, &quota_us, &period_us) != 2 || quota_us <= 0 ||
        period_us <= 0)
        return 0;
    return times((uint64_t)quota_us, 1000) / (uint64_t)period_us;
}

/* The line is such as "cpu  10 0 5 90 0 0 0 7 0 0", in ticks of USER_HZ. */
uint64_t cpu_steal_parse(const char *text)
{
    uint64_t ticks;
    long hz = sysconf(_SC_CLK_TCK);
    if (strncmp(text, "cpu ", 4) != 0 ||
        sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1 || hz <= 0)
        return 0;
    return times(ticks, NS_PER_S / (uint64_t)hz);
}

/* ---- Groups ---- */

/* Reads a group's file. Returns false if there is none. */
static bool read_file(const char *folder, const char *name, char *ret_text, size_t bytes)
{
    char path[CPU_GROUP_BYTES + 128];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path &&
           procfs_read(AT_FDCWD, path, ret_text, bytes) >= 0;
}

static bool read_throttled(const char *folder, uint64_t *ret_ns)
{
    char text[1024];
    if (!read_file(folder, "cpu.stat", text, sizeof text))
        return false;
    *ret_ns = cpu_throttled_parse(text);
    return true;
}

static uint64_t read_quota(const char *folder)
{
    char text[64], quota[24], period[24];
    if (read_file(folder, "cpu.max", text, sizeof text))
        return cpu_quota_parse(text);
    if (!read_file(folder, "cpu.cfs_quota_us", quota, sizeof quota) ||
        !read_file(folder, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    snprintf(text, sizeof text, "%s %s", quota, period);
    return cpu_quota_parse(text);
}

static uint64_t read_steal(void)
{
    char text[256]; /* only the first line counts */
    return procfs_read(AT_FDCWD, "/proc/stat", text, sizeof text) > 0 ? cpu_steal_parse(text) : 0;
}

static bool is_there(const struct cpu_limits *limits, const char *folder)
{
    for (size_t i = 0; i < limits->count; i++) {
        if (strcmp(limits->groups[i].folder, folder) == 0)
            return true;
    }
    return false;
}

static int add(struct cpu_limits *limits, const char *folder)
{
    struct cpu_group group = {0};
    if (is_there(limits, folder) || !read_throttled(folder, &group.begin_ns))
        return 0;
    if (array_reserve(&limits->groups, &limits->capacity, limits->count + 1) ||
        !(group.folder = strdup(folder)))
        return -ENOMEM;
    limits->groups[limits->count++] = group;
    return 0;
}

/* Adds the group and those above it. */
static int add_all(struct cpu_limits *limits, const char *root, const char *path)
{
    char folder[CPU_GROUP_BYTES + 64];
    size_t root_bytes = strlen(root);
    int err = 0;
    snprintf(folder, sizeof folder, "%s%s", root, path);
    while (!err && limits->count < GROUPS_MAX) {
        err = add(limits, folder);
        char *last = strrchr(folder, '/');
        if ((size_t)(last - folder) < root_bytes)
            break;
        *last = '\0';
    }
    return err;
}

int cpu_limits_add(struct cpu_limits *limits, int proc_fd)
{
    static const struct {
        const char *root;
        bool is_v2;
    } hierarchies[] = {
        {"/sys/fs/cgroup", true}, {"/sys/fs/cgroup/unified", true}, {"/sys/fs/cgroup/cpu", false}};
    char text[4096], path[CPU_GROUP_BYTES];
    int err = 0;
    if (!limits->has_begun)
        limits->steal_begin_ns = read_steal();
    limits->has_begun = true;
    if (limits->count >= GROUPS_MAX || procfs_read(proc_fd, "cgroup", text, sizeof text) < 0)
        return 0;
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies && !err; i++) {
        if (cpu_group_parse(text, hierarchies[i].is_v2, path))
            err = add_all(limits, hierarchies[i].root, path);
    }
    return err;
}

static void grow(uint64_t *ns, uint64_t begin_ns, uint64_t now_ns)
{
    if (now_ns > begin_ns && now_ns - begin_ns > *ns)
        *ns = now_ns - begin_ns;
}

/* A group that is gone keeps what it last said. */
struct cpu_losses cpu_limits_read(struct cpu_limits *limits)
{
    struct cpu_losses losses = {0};
    uint64_t most_ns = 0, now_ns;
    if (limits->has_begun)
        grow(&limits->steal_ns, limits->steal_begin_ns, read_steal());
    losses.steal_ns = limits->steal_ns;
    for (size_t i = 0; i < limits->count; i++) {
        struct cpu_group *group = &limits->groups[i];
        if (read_throttled(group->folder, &now_ns))
            grow(&group->throttled_ns, group->begin_ns, now_ns);
        uint64_t quota = read_quota(group->folder);
        losses.throttled_ns += group->throttled_ns;
        if (!quota || group->throttled_ns < most_ns ||
            (group->throttled_ns == most_ns && losses.quota_millicpu &&
             quota > losses.quota_millicpu))
            continue;
        losses.quota_millicpu = quota;
        most_ns = group->throttled_ns;
    }
    return losses;
}

void cpu_limits_free(struct cpu_limits *limits)
{
    for (size_t i = 0; i < limits->count; i++)
        free(limits->groups[i].folder);
    free(limits->groups);
    *limits = (struct cpu_limits){0};
}
