#include "cli/sandboxed.h"
#include "base/regular_file.h"
#include "base/sandbox.h"
#include "base/sink.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A recording of 18 MB when decompressed (bench/convert_cost.py) needs up to 280 MB and 5 s: so the
 * largest, of 256 MiB, need half of this memory and an eighth of the time. */
#define MEMORY_BYTES_MAX ((uint64_t)8 << 30)
#define CPU_SECONDS_MAX 600
#define MESSAGES_BYTES_MAX 65536

/* The child's descriptors: its recordings are the first and those from the fourth on. */
enum { CHILD_FDS = 2 + SANDBOXED_INPUTS_MAX, UNUSED_FD = 10 };

struct child {
    pid_t pid;
    int output, messages; /* pipes from it */
};

struct result {
    struct output_file file; /* opened once there is something to write */
    int err;                 /* why it can't be written */
    /* Not allocated: they may say that memory is short. */
    char messages[MESSAGES_BYTES_MAX + 1];
    size_t message_bytes;
};

/* ---- In the child ---- */

/* Keeps only the child's files, as its descriptors from 0 on; some may be negative. Returns 0 or a
 * negative errno. */
static int keep_only(const int fds[CHILD_FDS])
{
    int high[CHILD_FDS];
    /* Moved first: any of them may have the number of another one. */
    for (int i = 0; i < CHILD_FDS; i++) {
        high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD, UNUSED_FD);
        if (fds[i] >= 0 && high[i] < 0)
            return -errno;
    }
    for (int i = 0; i < CHILD_FDS; i++) {
        if (high[i] < 0)
            close(i);
        else if (dup2(high[i], i) < 0)
            return -errno;
    }
    return close_range(CHILD_FDS, ~0u, 0) ? -errno : 0;
}

static int run_child(const struct cli_options *options, const int *inputs, size_t input_count,
                     const int pipes[2], sandboxed_work_fn *work)
{
    int fds[CHILD_FDS] = {inputs[0], pipes[0], pipes[1], -1}, kept[SANDBOXED_INPUTS_MAX];
    for (size_t i = 0; i < input_count; i++) {
        int place = i ? (int)i + 2 : 0;
        fds[place] = inputs[i];
        kept[i] = inputs[i] < 0 ? inputs[i] : place;
    }
    int err = keep_only(fds);
    if (!err)
        err = sandbox_enter(SANDBOX_READS, MEMORY_BYTES_MAX, CPU_SECONDS_MAX);
    if (!err)
        return work(options, kept);
    say("%s can't be read: %s", options->inputs[0], strerror(-err));
    return EXIT_NOT_WRITTEN;
}

static void end_process(int status)
{
#ifdef __SANITIZE_ADDRESS__
    exit(status); /* LeakSanitizer looks then */
#endif
    _exit(status);
}

/* ---- In the parent ---- */

static int fork_child(const struct cli_options *options, const int *inputs, size_t input_count,
                      sandboxed_work_fn *work, struct child *ret_child)
{
    int output[2], messages[2];
    pid_t parent = getpid();
    if (pipe2(output, O_CLOEXEC))
        return -errno;
    int err = pipe2(messages, O_CLOEXEC) ? -errno : 0;
    if (err) {
        close(output[0]);
        close(output[1]);
        return err;
    }
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int pipes[2] = {output[1], messages[1]};
        int status = getppid() != parent ? EXIT_NOT_WRITTEN
                                         : run_child(options, inputs, input_count, pipes, work);
        end_process(status);
    }
    err = pid < 0 ? -errno : 0;
    close(output[1]);
    close(messages[1]);
    *ret_child = (struct child){pid, output[0], messages[0]};
    if (err) {
        close(output[0]);
        close(messages[0]);
    }
    return err;
}

static int open_once(struct result *result, const struct cli_options *options)
{
    return result->file.fd >= 0 ? 0 : output_file_open(&result->file, options->output);
}

/* A pipe that can't be read counts as ended: it would otherwise fill up, and its writer wait for
 * ever. Returns how many bytes were read; 0 at the end. */
static size_t read_part(struct result *result, int from, char *part, size_t bytes)
{
    ssize_t got;
    do
        got = read(from, part, bytes);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        result->err = -errno;
    return got < 0 ? 0 : (size_t)got;
}

/* Passes on the contents of the child's pipe. Returns false at its end. */
static bool take_output(struct result *result, const struct cli_options *options, int from)
{
    char part[65536];
    size_t got = read_part(result, from, part, sizeof part);
    if (!got)
        return false;
    result->err = open_once(result, options);
    if (!result->err)
        result->err = write_all(result->file.fd, part, got);
    return !result->err;
}

/* What is beyond MESSAGES_BYTES_MAX is dropped. */
static bool take_messages(struct result *result, int from)
{
    char rest[4096];
    size_t left = MESSAGES_BYTES_MAX - result->message_bytes;
    char *to = left ? result->messages + result->message_bytes : rest;
    size_t got = read_part(result, from, to, left ? left : sizeof rest);
    result->message_bytes += left ? got : 0;
    return got > 0;
}

static void take_all(struct result *result, const struct cli_options *options,
                     const struct child *child)
{
    struct pollfd from[] = {{.fd = child->output, .events = POLLIN},
                            {.fd = child->messages, .events = POLLIN}};
    while ((from[0].fd >= 0 || from[1].fd >= 0) && !result->err) {
        if (poll(from, 2, -1) < 0)
            continue;
        if (from[0].revents && !take_output(result, options, child->output))
            from[0].fd = -1;
        if (from[1].revents && !take_messages(result, child->messages))
            from[1].fd = -1;
    }
}

/* Returns how it has ended. */
static int end_child(const struct child *child, bool is_unwanted)
{
    int how = SIGKILL; /* as if killed, unless it is known */
    close(child->output);
    close(child->messages);
    if (is_unwanted)
        kill(child->pid, SIGKILL);
    while (waitpid(child->pid, &how, 0) < 0 && errno == EINTR)
        ;
    return how;
}

/* The messages may repeat text of an untrusted file, so each line is escaped. */
static void show_messages(char *messages)
{
    char *rest = messages;
    for (char *line; (line = strsep(&rest, "\n"));) {
        put_escaped(stderr, line);
        if (rest)
            fputc('\n', stderr);
    }
}

static int complain_of_child(const struct cli_options *options, size_t input_count, int how)
{
    fprintf(stderr, "fgprof-c: %s", options->inputs[0]);
    for (size_t i = 1; i < input_count; i++)
        fprintf(stderr, " or %s", options->inputs[i]);
    fprintf(stderr, " can't be read: %s\n",
            WIFSIGNALED(how) && WTERMSIG(how) == SIGXCPU ? "reading it takes too long"
                                                         : "its reader crashed");
    return EXIT_NOT_WRITTEN;
}

/* Prints errors. Returns the command's exit status. */
static int finish(struct result *result, const struct cli_options *options, size_t input_count,
                  int how)
{
    bool has_exited = WIFEXITED(how);
    bool is_made = has_exited && WEXITSTATUS(how) == EXIT_WRITTEN;
    if (!result->err && is_made)
        result->err = open_once(result, options);
    if (!result->err && is_made)
        result->err = output_file_commit(&result->file);
    output_file_abandon(&result->file);
    if (result->err) {
        say("%s can't be written: %s", output_file_name(options->output), strerror(-result->err));
        return EXIT_NOT_WRITTEN;
    }
    show_messages(result->messages);
    if (is_made || (has_exited && WEXITSTATUS(how) == EXIT_NOT_WRITTEN))
        return WEXITSTATUS(how);
    return complain_of_child(options, input_count, how);
}

int sandboxed_run(const struct cli_options *options, size_t input_count, sandboxed_work_fn *work)
{
    int inputs[SANDBOXED_INPUTS_MAX];
    struct child child = {0};
    struct result result = {.file = {.fd = -1}};
    for (size_t i = 0; i < input_count; i++)
        inputs[i] = open_regular_file(AT_FDCWD, options->inputs[i], 0);
    int err = fork_child(options, inputs, input_count, work, &child);
    for (size_t i = 0; i < input_count; i++) {
        if (inputs[i] >= 0)
            close(inputs[i]);
    }
    if (err) {
        say("%s can't be read: %s", options->inputs[0], strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    take_all(&result, options, &child);
    return finish(&result, options, input_count, end_child(&child, result.err));
}
