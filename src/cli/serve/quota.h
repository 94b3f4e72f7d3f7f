/* How many profiles each peer has made at once, so that one leaves room for others. */
#ifndef FGPROF_CLI_SERVE_QUOTA_H
#define FGPROF_CLI_SERVE_QUOTA_H

#include "cli/serve/peer.h"
#include "cli/serve/session.h"

/* Of the session's SESSION_USERS_MAX. Scrapers ask for a handful of profiles at once. */
#define QUOTA_PROFILES_MAX 16

struct quota {
    pthread_mutex_t lock;
    struct {
        struct peer peer;
        unsigned profiles; /* 0: the place is free */
    } peers[SESSION_USERS_MAX];
};

void quota_init(struct quota *quota);
void quota_destroy(struct quota *quota);

/* Counts one more profile. Returns false if the peer has as many as it may. */
bool quota_take(struct quota *quota, const struct peer *peer);

/* The same peer as taken with. */
void quota_give_back(struct quota *quota, const struct peer *peer);

#endif
