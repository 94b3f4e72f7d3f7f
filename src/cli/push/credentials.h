/* What proves to a server who pushes. */
#ifndef FGPROF_CLI_PUSH_CREDENTIALS_H
#define FGPROF_CLI_PUSH_CREDENTIALS_H

#include "cli/options/push.h"
#include "cli/secret_file.h"

/* A token, or a user and a password; and headers, which may name a tenant or hold a key. They are
 * never on the command line, which others can read. */
struct credentials {
    char header[SECRET_BYTES + 32]; /* "Authorization: Bearer ..."; "": none */
    char password[SECRET_BYTES];    /* "USER:PASSWORD"; "": none */
    char others[SECRET_BYTES + 1];  /* each "NAME: VALUE", with its NUL; "" ends them */
};

/* Reads them from the given files, which may be replaced at any time, or else from the environment.
 * Returns NULL, or the reason why not. The caller erases them after use. */
const char *credentials_read(const struct push_options *options,
                             struct credentials *ret_credentials);
void credentials_forget(struct credentials *credentials);

#endif
