/* What a socket is connected to, from the tables of its network namespace. */
#ifndef FGPROF_WAIT_SOCKET_H
#define FGPROF_WAIT_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCKET_TEXT_BYTES 256

/* A socket to look up, and what it is, like "tcp 127.0.0.1:80 -> 127.0.0.1:40322"; "": not found.
 * The path of a Unix socket comes from the target unchanged. */
struct socket_text {
    uint64_t inode;
    char text[SOCKET_TEXT_BYTES];
};

/* Parses a line of /proc/PID/net/tcp, tcp6, udp or udp6 (`protocol`), like
 *    0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 27423 1 ...
 * Returns false if it is not one, like the headline. */
bool socket_parse_inet(const char *protocol, const char *line, struct socket_text *ret_socket);

/* The same for /proc/PID/net/unix, like
 *   0000000000000000: 00000002 00000000 00010000 0001 01 27423 /run/name
 */
bool socket_parse_unix(const char *line, struct socket_text *ret_socket);

/* Fills in the texts of `sockets`, ascending by inode, from the tables below the open directory
 * /proc/PID. Sockets in tables that can't be read are not found. */
void sockets_find(int proc_fd, struct socket_text *sockets, size_t count);

#endif
