/* Who may ask. */
#ifndef FGPROF_CLI_SERVE_ACCESS_H
#define FGPROF_CLI_SERVE_ACCESS_H

#include "cli/serve/peer.h"

struct access_rules {
    uid_t own_uid;           /* may always ask, like root, unless a token is required */
    bool allows_local_users; /* all on this machine may, without a token, too */
    const char *token_file;  /* whoever sends the token in it may; NULL: none is demanded */
};

enum access {
    ACCESS_GRANTED,
    ACCESS_BY_TOKEN, /* granted, which it would not be without the token */
    ACCESS_OTHER_USER,
    ACCESS_UNKNOWN_USER,
    ACCESS_WITHOUT_TOKEN, /* or with a wrong one */
    ACCESS_TOKEN_UNREADABLE,
};

/* `authorization`: the header of that name; NULL: there is none. */
enum access access_check(const struct access_rules *rules, const struct peer *peer,
                         const char *authorization);

/* Whether the file holds a token. Returns NULL, or the reason why not. */
const char *access_check_token_file(const char *path);

#endif
