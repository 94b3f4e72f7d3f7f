#include "cli/targets.h"
#include "cli/escape.h"
#include "cli/options/values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_LENGTH_MAX 15 /* the kernel's TASK_COMM_LEN, less the NUL */
#define LISTED_MAX 20
#define COMMAND_LINE_BYTES 61

static bool is_id(const char *word)
{
    return *word && !word[strspn(word, "0123456789,")];
}

/* The kernel keeps at most 15 bytes of a name. */
static int find(const char *name, pid_t **ret_pids, size_t *ret_count)
{
    char cut[NAME_LENGTH_MAX + 3];
    bool is_long = strlen(name) > NAME_LENGTH_MAX && !strpbrk(name, "^$.*+?()[]{}|\\");
    snprintf(cut, sizeof cut, "^%.*s$", NAME_LENGTH_MAX, name);
    return fgprof_find_processes(is_long ? cut : name, ret_pids, ret_count);
}

bool is_target(const char *word)
{
    pid_t *pids = NULL;
    size_t count = 0;
    if (is_id(word))
        return true;
    bool is_found = *word && !find(word, &pids, &count) && count;
    free(pids);
    return is_found;
}

bool find_named_processes(const char *name, pid_t **ret_pids, size_t *ret_count)
{
    int err = find(name, ret_pids, ret_count);
    if (err == -EINVAL)
        regex_check("name", name);
    else if (err)
        fprintf(stderr, "fgprof-c: processes can't be listed: %s\n", strerror(-err));
    else if (!*ret_count)
        fprintf(stderr, "fgprof-c: no process's name matches '%s'\n", name);
    return !err && *ret_count;
}

/* If only one of the processes has exactly this name, it becomes the only one. */
static void prefer_whole_name(const char *name, pid_t *pids, size_t *count)
{
    char known[64];
    size_t exact = 0, last = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!fgprof_process_name(pids[i], known, sizeof known) || strcmp(known, name) != 0)
            continue;
        exact++;
        last = i;
    }
    if (exact != 1)
        return;
    pids[0] = pids[last];
    *count = 1;
}

/* Prints the beginning of the process's command line, or its name if it has none. */
static void print_command_line(pid_t pid)
{
    char path[32], line[COMMAND_LINE_BYTES];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i + 1 < bytes; i++)
        line[i] = line[i] ? line[i] : ' ';
    /* Programs that change their title leave what they do not need as spaces. */
    while (bytes > 0 && (!line[bytes - 1] || line[bytes - 1] == ' '))
        bytes--;
    line[bytes > 0 ? bytes : 0] = '\0';
    if (!*line)
        fgprof_process_name(pid, line, sizeof line);
    print_escaped(line);
}

static int by_id(const void *a, const void *b)
{
    return *(const pid_t *)a < *(const pid_t *)b ? -1 : 1;
}

static void list(const char *name, pid_t *pids, size_t count)
{
    fprintf(stderr, "fgprof-c: %zu processes match '%s': give the id of one, or --pgrep %s\n",
            count, name, name);
    qsort(pids, count, sizeof *pids, by_id);
    for (size_t i = 0; i < count && i < LISTED_MAX; i++) {
        fprintf(stderr, "  %7d  ", (int)pids[i]);
        print_command_line(pids[i]);
        fputc('\n', stderr);
    }
    if (count > LISTED_MAX)
        fprintf(stderr, "  and %zu more\n", count - LISTED_MAX);
}

static bool add(struct cli_options *options, pid_t pid)
{
    bool ok = id_add(&options->pids, &options->pid_count, pid);
    if (!ok)
        fprintf(stderr, "fgprof-c: out of memory\n");
    return ok;
}

static bool find_named(struct cli_options *options, const char *name)
{
    pid_t *pids = NULL;
    size_t count = 0;
    bool ok = find_named_processes(name, &pids, &count);
    if (count > 1)
        prefer_whole_name(name, pids, &count);
    if (count > 1)
        list(name, pids, count);
    ok = ok && count == 1 && add(options, pids[0]);
    if (ok && !options->is_quiet && options->command != COMMAND_TOP) {
        fprintf(stderr, "fgprof-c: %s is process %d: ", name, (int)pids[0]);
        print_command_line(pids[0]);
        fputc('\n', stderr);
    }
    free(pids);
    return ok;
}

bool find_targets(struct cli_options *options)
{
    bool ok = true;
    for (size_t i = 0; i < options->target_count && ok; i++) {
        const char *word = options->targets[i];
        ok = is_id(word) ? pids_parse(word, &options->pids, &options->pid_count)
                         : find_named(options, word);
    }
    return ok;
}
