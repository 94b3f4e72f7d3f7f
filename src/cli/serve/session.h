/* The sampled processes, as requests see them: one recorder after the other, as processes of a name
 * come and go, and any number of requests that use it at once. */
#ifndef FGPROF_CLI_SERVE_SESSION_H
#define FGPROF_CLI_SERVE_SESSION_H

#include "cli/options/options.h"
#include "cli/select_pids.h"

#include <pthread.h>

#define SESSION_USERS_MAX 64

#define SESSION_NAME_BYTES 16 /* the kernel's TASK_COMM_LEN */
#define SESSION_TEXT_BYTES 64

struct session;
typedef void session_begins_fn(const struct session *session, void *context);
/* Sampling has ended: `profile` covers all that was kept. `is_stopped`: the processes have not
 * ended by themselves. */
typedef void session_ends_fn(struct session *session, fgprof_profile *profile, bool is_stopped,
                             void *context);

struct pusher;

struct session {
    const struct cli_options *options;
    bool is_for_one; /* request, which is of a program that profiles itself */
    session_begins_fn *begins;
    void *context;
    session_ends_fn *ends; /* NULL: none; to be set before session_run */
    void *ends_context;
    struct pusher *pusher; /* NULL: nothing is pushed */
    pthread_mutex_t lock;  /* protects what follows */
    pthread_cond_t changed;
    fgprof_recorder *beginning; /* with its processes; NULL: there are none */
    fgprof_recorder *recorder;  /* the same, once it samples; NULL: no process is sampled now */
    unsigned long number;       /* of that recorder, from 1 on */
    unsigned users;             /* requests that use the recorder */
    int ended_fd;     /* an eventfd: readable once the recorder has ended, or the server ends */
    bool is_stopping; /* the server ends */
    struct selected_pids targets;            /* the recorder's processes, */
    char name[SESSION_NAME_BYTES];           /* and the name of the first */
    struct fgprof_progress progress, before; /* of the recorder; of those before it, in all */

    pthread_mutex_t dumping; /* one request at a time takes all threads' stacks */
};

/* How far back profiles can reach. */
uint64_t session_keep_ns(const struct session *session);

/* `begins` is called whenever sampling of processes begins. Returns 0 or a negative errno. */
int session_init(struct session *session, const struct cli_options *options,
                 session_begins_fn *begins, void *context);
void session_destroy(struct session *session);

/* Samples the chosen processes until they have exited or session_stop is called; with --wait also
 * those of the name that come later. Prints why it could not, and returns the exit status. */
int session_run(struct session *session);

/* Ends session_run and all waits. */
void session_stop(struct session *session);

/* The recorder, until it is given back. Returns 0, -ESRCH if no process is being sampled, or -EBUSY
 * if too many requests use it. */
int session_take(struct session *session, fgprof_recorder **ret_recorder);
void session_give_back(struct session *session);

/* How often to retry an operation that fails with -EBUSY because the recorder's sampling thread
 * holds a thread of the process for a moment; and the pause in between. */
#define SESSION_TRIES_MAX 50
#define SESSION_PAUSE_NS 2000000

/* Makes another recorder of the processes. Those that have exited are left out. Frees the options;
 * NULL: there was no memory for them. Returns 0, -ESRCH if no process is left, or another negative
 * errno. */
int session_second_recorder(const struct selected_pids *targets, fgprof_options *options,
                            fgprof_recorder **ret_recorder);

/* Writes which processes are sampled, while they are: "redis-server (1234) and 2 others". */
void session_describe(const struct session *session, char text[SESSION_TEXT_BYTES]);

enum session_wait { SESSION_WAITED, SESSION_ENDED, SESSION_CLIENT_GONE };

/* Waits for this time, or until the processes have ended, or the client at the other end of
 * `client_fd` has gone. */
enum session_wait session_wait(struct session *session, uint64_t wait_ns, int client_fd);

/* Waits until sampling has stopped, after session_wait has returned SESSION_ENDED: the recorder
 * then has everything. */
void session_wait_for_end(struct session *session);

#endif
