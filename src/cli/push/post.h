/* Requests over HTTP, with credentials, by libcurl, which is loaded when it is needed first. */
#ifndef FGPROF_CLI_PUSH_POST_H
#define FGPROF_CLI_PUSH_POST_H

#include "cli/options/push.h"
#include "cli/secret_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What proves to a server who pushes: a token, or a user and a password; and headers, which may
 * name a tenant or hold a key. Never on the command line, which others can read. */
struct credentials {
    char header[SECRET_BYTES + 32]; /* "Authorization: Bearer ..."; "": none */
    char password[SECRET_BYTES];    /* "USER:PASSWORD"; "": none */
    char others[SECRET_BYTES + 1];  /* each "NAME: VALUE", with its NUL; "" ends them */
};

/* Reads them from the files that are given, which may be replaced any time, or else from the
 * environment. Returns NULL, or says what is wrong. The caller forgets them after use. */
const char *credentials_read(const struct push_options *options,
                             struct credentials *ret_credentials);
void credentials_forget(struct credentials *credentials);

/* Loads the library, before any thread is started. Returns false if it is not there. */
bool post_load(void);

struct post {
    const char *url, *type;   /* Content-Type */
    bool is_gzip, is_connect; /* see body.h */
    const void *body;
    size_t body_bytes;
    const struct credentials *credentials;
    const char *ca_file; /* NULL: the system's certificates */
    /* CLOCK_MONOTONIC: given up then, and whenever it is set to an earlier time. */
    const atomic_uint_least64_t *deadline_ns;
};

struct post_answer {
    long status; /* 0: there was none */
    bool has_retry_after;
    uint64_t retry_after_ns; /* how long the server wants to be left alone */
    char why[256];           /* what went wrong, if there was no status */
    char body[4096];         /* its beginning */
    size_t body_bytes;
};

/* Sends the request and waits for the answer. No redirection is
 * followed. */
void post_send(const struct post *post, struct post_answer *ret_answer);

#endif
