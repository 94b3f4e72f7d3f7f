/* Which user has the other end of a TCP connection within this machine. */
#ifndef FGPROF_CLI_SERVE_TCP_OWNER_H
#define FGPROF_CLI_SERVE_TCP_OWNER_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/types.h>

/* A connection, from the side of the socket whose owner is wanted. */
struct tcp_ends {
    struct in6_addr local, remote; /* see address.h */
    in_port_t local_port, remote_port;
};

/* Finds the user of the socket that has exactly these ends, is connected, and is still held by a
 * process. Returns 0, -ENOENT if there is none, or another negative errno. */
int tcp_owner_find(const struct tcp_ends *ends, uid_t *ret_uid);

/* The two ways to find it, in the order in which they are tried. */
int tcp_owner_ask_kernel(const struct tcp_ends *ends, uid_t *ret_uid);
int tcp_owner_read_tables(const struct tcp_ends *ends, uid_t *ret_uid);

/* The same, from the kernel's answer, which begins with its netlink header, and from a line of
 * /proc/net/tcp or tcp6. */
int tcp_owner_in_answer(const void *answer, size_t bytes, const struct tcp_ends *ends,
                        uid_t *ret_uid);
int tcp_owner_in_line(const char *line, const struct tcp_ends *ends, uid_t *ret_uid);

#endif
