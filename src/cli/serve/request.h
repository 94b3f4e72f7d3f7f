/* A request and its answer, whatever brings them. */
#ifndef FGPROF_CLI_SERVE_REQUEST_H
#define FGPROF_CLI_SERVE_REQUEST_H

#include "cli/serve/peer.h"
#include "cli/serve/quota.h"
#include "cli/serve/session.h"

/* HEAD wants only the head of the answer, so nothing need be made. */
enum request_method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER };

#define PARAMETERS_MAX 32

/* The parameters of a query. What is beyond PARAMETERS_MAX is left out. */
struct parameters {
    struct parameter {
        const char *name, *value; /* NULL: it has no value */
    } items[PARAMETERS_MAX];
    size_t count;
};

struct request {
    struct session *session;
    enum request_method method;
    const char *path;
    const struct parameters *parameters;
    int client_fd; /* hung up once the client has gone; -1: not known */
    struct peer peer;
    struct quota *quota; /* of all peers; NULL: there is no limit for each */
};

struct answer {
    unsigned status;      /* of HTTP */
    const char *type;     /* Content-Type */
    char disposition[96]; /* Content-Disposition; "": none */
    bool is_failure;      /* the body says why */
    int body_fd;          /* a memory file, written from its beginning */
};

/* Answers a request; the body goes to answer->body_fd. */
void answer_request(const struct request *request, struct answer *answer);

/* Replaces what was written by one line that says why there is no other answer. Returns false. */
bool answer_failure(struct answer *answer, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value of a parameter; NULL: it is not there. */
const char *request_parameter(const struct request *request, const char *name);

/* As session_take, within the limit for each peer; if it can't, answers why, and returns false. */
bool request_take(const struct request *request, struct answer *answer,
                  fgprof_recorder **ret_recorder);
void request_give_back(const struct request *request);

/* Reads a whole number from `least` to `most`, or takes the default. If it is not one, answers with
 * an error and returns false. */
bool request_number(const struct request *request, struct answer *answer, const char *name,
                    uint64_t least, uint64_t most, uint64_t by_default, uint64_t *ret_number);

/* The custom profiles of the processes (fgprof_profiles.h). */
struct custom {
    char *name;
    uint64_t values; /* of all processes */
};

struct customs {
    struct custom *items; /* sorted by name */
    size_t count, capacity;
};

/* Lists the processes' custom profiles. Processes that have none, or can't be read, are left out.
 * The caller frees the list. Returns 0 or -ENOMEM. */
int customs_list(const struct selected_pids *targets, struct customs *ret_customs);
void customs_free(struct customs *customs);

/* The parts of the server, a file each. Their paths are in request.c. */
void answer_fgprof(const struct request *request, struct answer *answer);
void answer_pprof(const struct request *request, struct answer *answer);
void answer_threads(const struct request *request, struct answer *answer);
/* A custom profile of the processes, by its name. */
void answer_custom(const struct request *request, struct answer *answer, const char *name);
void answer_top(const struct request *request, struct answer *answer);
void answer_metrics(const struct request *request, struct answer *answer);
void answer_page(const struct request *request, struct answer *answer);
void answer_index(const struct request *request, struct answer *answer);

#endif
