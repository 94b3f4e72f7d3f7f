/* A fixture that runs with the agent in it, and the reader of its segment. */
#ifndef FGPROF_TESTS_AGENT_TARGET_H
#define FGPROF_TESTS_AGENT_TARGET_H

#include "unit.h"
#include "reader.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

/* A rate at which every object is sampled, except those of a few bytes. */
#define EVERY_OBJECT 1

struct target {
    pid_t pid;
    int input, output;
    struct reader reader;
};

/* What the fixture reports that it did. */
struct truth {
    long long live, live_bytes;
    unsigned long long made, made_bytes;
};

/* Executes a command line: the name of a fixture, or a path, and its arguments. */
static inline _Noreturn void target_exec(const char *command)
{
    char words[512], *arguments[16];
    size_t count = 0;
    snprintf(words, sizeof words, "%s%s", command[0] == '/' ? "" : FIXTURES "/fixture-", command);
    for (char *word = strtok(words, " "); word && count < 15; word = strtok(NULL, " "))
        arguments[count++] = word;
    arguments[count] = NULL;
    execv(arguments[0], arguments);
    _exit(127);
}

/* Starts a fixture. If not NULL, `preload` is its LD_PRELOAD, and `variable` another environment
 * variable, with the value `value`. */
static inline void target_start(struct target *target, const char *preload, const char *variable,
                                const char *value, const char *command)
{
    int input[2], output[2];
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    memset(target, 0, sizeof *target);
    target->pid = fork();
    if (target->pid == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        if (preload)
            setenv("LD_PRELOAD", preload, 1);
        if (variable)
            setenv(variable, value, 1);
        target_exec(command);
    }
    close(input[0]);
    close(output[1]);
    target->input = input[1];
    target->output = output[0];
}

static inline void target_go(struct target *target)
{
    assert_int_equal(write(target->input, "\n", 1), 1);
}

/* Reads a line, and meanwhile takes records if there is a reader. Fails if no line comes. */
static inline void target_line(struct target *target, char *line, size_t bytes)
{
    size_t length = 0;
    time_t end = time(NULL) + 60;
    while (length + 1 < bytes) {
        struct pollfd file = {.fd = target->output, .events = POLLIN};
        if (target->reader.header)
            reader_drain(&target->reader);
        if (time(NULL) > end)
            fail_msg("the fixture says nothing");
        if (poll(&file, 1, 1) <= 0)
            continue;
        if (read(target->output, &line[length], 1) != 1)
            fail_msg("the fixture has ended");
        if (line[length] == '\n')
            break;
        length++;
    }
    line[length] = '\0';
}

/* Waits for the "ready" line, and returns the process id in it. */
static inline pid_t target_ready(struct target *target)
{
    char line[128];
    int pid;
    target_line(target, line, sizeof line);
    if (sscanf(line, "ready %d", &pid) != 1)
        fail_msg("not ready: %s", line);
    return pid;
}

static inline struct truth target_done(struct target *target)
{
    char line[256];
    struct truth truth;
    target_line(target, line, sizeof line);
    if (sscanf(line, "done %lld %lld %llu %llu", &truth.live, &truth.live_bytes, &truth.made,
               &truth.made_bytes) != 4)
        fail_msg("not done: %s", line);
    if (target->reader.header)
        reader_drain(&target->reader);
    return truth;
}

static inline void target_end(struct target *target)
{
    int status;
    close(target->input);
    assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
    close(target->output);
    if (target->reader.header)
        reader_close(&target->reader);
    assert_int_equal(status, 0);
}

#endif
