/* The helper process of a program that profiles itself: how the program starts it, and their
 * messages.
 *
 * They talk over a pair of sockets (SOCK_SEQPACKET); the helper's is its standard input, and what
 * it writes goes to its standard output:
 *
 *     helper   fgprof-c helper VERSION PID record FORMAT
 *     program  a byte: it may trace us now
 *     helper   struct helper_message: it is about to sample, or why it can't
 *     program  closes its side for writing: this is the end
 *     helper   struct helper_message: the profile is written, or why it is not
 *
 *     helper   fgprof-c helper VERSION PID answer PATH QUERY
 *     program  a byte
 *     helper   struct helper_message: the answer is written, or why it is not
 *
 *     helper   fgprof-c helper VERSION PID write NAME FORMAT
 *     program  a byte
 *     helper   struct helper_message: the custom profile is written, as FORMAT, pprof or text, or
 *              why it is not */
#ifndef FGPROF_AGENT_HELPER_H
#define FGPROF_AGENT_HELPER_H

#include <stdint.h>
#include <sys/types.h>

#define HELPER_COMMAND "helper"
#define HELPER_RECORDS "record"
#define HELPER_ANSWERS "answer"
#define HELPER_WRITES "write"

struct helper_message {
    int32_t error; /* 0 or a negative errno */
};

/* For the program: */
struct helper {
    pid_t pid;
    int channel;
};

/* Starts a helper that does what the words say: up to three, followed by NULL. Its output goes to
 * `fd`. Waits for its first message. Returns 0 or a negative errno: -EBUSY if the process already
 * has a helper. */
int helper_begin(int fd, const char *const words[3], struct helper *ret_helper);

/* Tells it that this is the end, and waits for its last message. Returns what that says. */
int helper_finish(const struct helper *helper);

/* For a helper whose first message is its last. */
void helper_dismiss(const struct helper *helper);

#endif
