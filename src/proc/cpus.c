#include "proc/cpus.h"
#include "base/procfs_file.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 65536
#define LIST_BYTES 4096

/* Parses a CPU's number and moves *at behind it. Returns it, or -EINVAL. */
static int parse_number(const char **at)
{
    char *end;
    errno = 0;
    unsigned long number = **at >= '0' && **at <= '9' ? strtoul(*at, &end, 10) : CPUS_MAX;
    if (number >= CPUS_MAX)
        return -EINVAL;
    *at = end;
    return (int)number;
}

int cpus_parse(struct cpus *cpus, const char *list)
{
    cpus->count = 0;
    while (*list && *list != '\n') {
        int first = parse_number(&list), last = first;
        if (first >= 0 && *list == '-') {
            list++;
            last = parse_number(&list);
        }
        if (first < 0 || last < first)
            return -EINVAL;
        if (*list == ',')
            list++;
        else if (*list && *list != '\n')
            return -EINVAL;
        if (array_reserve(&cpus->items, &cpus->capacity, cpus->count + (size_t)(last - first) + 1))
            return -ENOMEM;
        for (int cpu = first; cpu <= last; cpu++)
            cpus->items[cpus->count++] = cpu;
    }
    return 0;
}

/* The file begins with "cpu  ..." for all CPUs together, then "cpu0 ..." and so on for each one
 * online. */
int cpus_read_stat(struct cpus *cpus, const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    int err = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    cpus->count = 0;
    while (!err && getline(&line, &capacity, file) > 0 && strncmp(line, "cpu", 3) == 0) {
        const char *at = line + 3;
        int cpu = parse_number(&at);
        if (cpu < 0)
            continue;
        err = array_append(&cpus->items, &cpus->count, &cpus->capacity, cpu);
    }
    free(line);
    fclose(file);
    return err ? err : cpus->count ? 0 : -ENODATA;
}

int cpus_read_online(struct cpus *cpus)
{
    char list[LIST_BYTES];
    ssize_t length = procfs_read(AT_FDCWD, "/sys/devices/system/cpu/online", list, sizeof list);
    return length < 0 ? cpus_read_stat(cpus, "/proc/stat") : cpus_parse(cpus, list);
}

void cpus_free(struct cpus *cpus)
{
    free(cpus->items);
    *cpus = (struct cpus){0};
}
