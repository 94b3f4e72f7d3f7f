/* Who is at the other end of a connection. */
#ifndef FGPROF_CLI_SERVE_PEER_H
#define FGPROF_CLI_SERVE_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

struct peer {
    bool is_local; /* on this machine: by a Unix socket or a loopback address */
    bool has_uid;  /* its user is known, which only that of a local one can be */
    uid_t uid;
    struct in6_addr address; /* see address.h; :: by a Unix socket */
};

/* Finds out as much as is known of the peer of a connected socket. What is not known is 0. */
void peer_find(int fd, struct peer *ret_peer);

/* Whether both are the same user or, if one isn't known, have the same address. */
bool peer_is_same(const struct peer *one, const struct peer *other);

/* Whether a user namespace, by its /proc/PID/uid_map, maps each user to a different number. If not,
 * the kernel shows all the others as one (user_namespaces(7), overflowuid). */
bool peer_map_is_whole(const char *uid_map);

#endif
