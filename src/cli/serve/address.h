/* Addresses of IPv4 and IPv6 in one form. */
#ifndef FGPROF_CLI_SERVE_ADDRESS_H
#define FGPROF_CLI_SERVE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

/* Maps an IPv4 address into IPv6, ::ffff:192.0.2.1, as IPv6 sockets show it. */
struct in6_addr address_of_v4(struct in_addr v4);

/* The address and port of a name of AF_INET or AF_INET6; :: and 0 for any other family. */
struct in6_addr address_of(const struct sockaddr *name, in_port_t *ret_port);

/* ::1 and 127.0.0.0/8, which is only reached from this machine. */
bool address_is_loopback(const struct in6_addr *address);

#endif
