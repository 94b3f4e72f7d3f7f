#include "cli/serve/address.h"

#include <arpa/inet.h>
#include <string.h>

struct in6_addr address_of_v4(struct in_addr v4)
{
    struct in6_addr address = {0};
    address.s6_addr[10] = address.s6_addr[11] = 0xff;
    memcpy(&address.s6_addr[12], &v4, sizeof v4);
    return address;
}

struct in6_addr address_of(const struct sockaddr *name, in_port_t *ret_port)
{
    const void *of_family = name;
    const struct sockaddr_in *v4 = of_family;
    const struct sockaddr_in6 *v6 = of_family;
    *ret_port = 0;
    if (name->sa_family == AF_INET) {
        *ret_port = ntohs(v4->sin_port);
        return address_of_v4(v4->sin_addr);
    }
    if (name->sa_family == AF_INET6) {
        *ret_port = ntohs(v6->sin6_port);
        return v6->sin6_addr;
    }
    return in6addr_any;
}

bool address_is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}
