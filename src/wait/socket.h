/* What sockets are connected to, from the tables of a network namespace. */
#ifndef FGPROF_WAIT_SOCKET_H
#define FGPROF_WAIT_SOCKET_H

#include "wait/resource.h"
#include "base/index.h"

enum socket_protocol { SOCKET_TCP, SOCKET_TCP6, SOCKET_UDP, SOCKET_UDP6, SOCKET_UNIX };

/* An address and port, as in IPv6: an IPv4 address is a mapped one (RFC 4291, 2.5.5.2), so that the
 * two ends of a connection have equal values. */
struct socket_address {
    uint8_t bytes[16];
    uint32_t port;
};

struct socket {
    uint64_t inode;
    enum socket_protocol protocol;
    unsigned state; /* as in the kernel's include/net/tcp_states.h */
    unsigned type;  /* SOCK_STREAM ..., of a Unix socket */
    struct socket_address local, remote;
    char *path;    /* of a Unix socket, unchanged; NULL: none */
    uint64_t peer; /* the inode of the socket that a Unix socket is connected to; 0: not known */
};

/* Parses a line of /proc/PID/net/tcp, tcp6, udp or udp6, such as
 *    0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 27423 1 ...
 * Returns false for any other line, such as the header. */
bool socket_parse_inet(enum socket_protocol protocol, const char *line, struct socket *ret_socket);

/* The same for /proc/PID/net/unix, such as
 *   0000000000000000: 00000002 00000000 00010000 0001 01 27423 /run/name
 * *ret_path is where the path begins in the line, or NULL if it has none. */
bool socket_parse_unix(const char *line, struct socket *ret_socket, const char **ret_path);

#define SOCKET_TEXT_BYTES 256

/* Describes the socket, such as "tcp 127.0.0.1:80 -> 127.0.0.1:40322" or "unix stream /run/name". A
 * path comes from the target and is not escaped. */
void socket_text(const struct socket *socket, char ret_text[SOCKET_TEXT_BYTES]);
enum resource_kind socket_resource_kind(const struct socket *socket);

/* The sockets of a network namespace. Starts zeroed. */
struct sockets {
    struct socket *items; /* by inode */
    size_t count, capacity;
    struct index by_addresses; /* the numbers of TCP sockets, by their two addresses */
    uint8_t listening[8192];   /* a bit for each TCP port that is listened at */
};

/* Reads the tables below the open directory /proc/PID and, if the process is in our own network
 * namespace, asks the kernel how Unix sockets are connected. Skips what can't be read. Returns 0 or
 * -ENOMEM. */
int sockets_read(struct sockets *sockets, int proc_fd);
void sockets_free(struct sockets *sockets);

const struct socket *sockets_find(const struct sockets *sockets, uint64_t inode);

/* The socket at the other end of the connection, in the same namespace; NULL: not known. */
const struct socket *sockets_peer(const struct sockets *sockets, const struct socket *socket);

/* The name of the connection's service, equal at both ends: "tcp 127.0.0.1:6379", "unix stream
 * /run/name". */
void sockets_service(const struct sockets *sockets, const struct socket *socket,
                     char ret_text[SOCKET_TEXT_BYTES]);

/* Takes the peers of Unix sockets from an answer to SOCK_DIAG_BY_FAMILY (sock_diag(7)). Returns
 * true if more of the answer follows. */
bool sockets_take_answer(struct sockets *sockets, const void *bytes, size_t length);

/* Adds a socket and its path, which may be NULL. Call sockets_finish after all of them, and before
 * the first question. Both return 0 or -ENOMEM. */
int sockets_add(struct sockets *sockets, const struct socket *socket, const char *path);
int sockets_finish(struct sockets *sockets);

#endif
