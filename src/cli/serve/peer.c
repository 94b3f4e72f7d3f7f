#include "cli/serve/peer.h"
#include "base/procfs_file.h"
#include "cli/serve/address.h"
#include "cli/serve/tcp_owner.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#define OVERFLOW_UID 65534 /* DEFAULT_OVERFLOWUID of include/linux/highuid.h */

bool peer_map_is_whole(const char *uid_map)
{
    unsigned inside, outside, count;
    return sscanf(uid_map, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
           count == UINT32_MAX;
}

/* Whether the number may stand for any user that has none in our user namespace. */
static bool stands_for_others(uid_t uid)
{
    char map[64] = "";
    if (uid != (uid_t)procfs_number("/proc/sys/kernel/overflowuid", OVERFLOW_UID))
        return false;
    procfs_read(AT_FDCWD, "/proc/self/uid_map", map, sizeof map);
    return !peer_map_is_whole(map);
}

/* If our end was reset, another socket may have got the same ports meanwhile. */
static bool is_still_connected(int fd)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

static void find_tcp(int fd, const struct sockaddr *name, struct peer *peer)
{
    struct sockaddr_storage own = {0};
    socklen_t bytes = sizeof own;
    struct tcp_ends ends;
    ends.local = peer->address = address_of(name, &ends.local_port);
    peer->is_local = address_is_loopback(&peer->address);
    if (!peer->is_local || getsockname(fd, (struct sockaddr *)&own, &bytes))
        return;
    ends.remote = address_of((const struct sockaddr *)&own, &ends.remote_port);
    peer->has_uid = tcp_owner_find(&ends, &peer->uid) == 0 && is_still_connected(fd);
}

static void find_unix(int fd, struct peer *peer)
{
    struct ucred user;
    socklen_t bytes = sizeof user;
    peer->is_local = true;
    peer->has_uid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &bytes) == 0;
    if (peer->has_uid)
        peer->uid = user.uid;
}

void peer_find(int fd, struct peer *ret_peer)
{
    struct sockaddr_storage name = {0};
    socklen_t bytes = sizeof name;
    *ret_peer = (struct peer){0};
    if (getpeername(fd, (struct sockaddr *)&name, &bytes))
        return;
    if (name.ss_family == AF_UNIX)
        find_unix(fd, ret_peer);
    else
        find_tcp(fd, (const struct sockaddr *)&name, ret_peer);
    if (ret_peer->has_uid && stands_for_others(ret_peer->uid))
        ret_peer->has_uid = false;
}

bool peer_is_same(const struct peer *one, const struct peer *other)
{
    if (one->has_uid && other->has_uid)
        return one->uid == other->uid;
    return one->has_uid == other->has_uid && one->is_local == other->is_local &&
           IN6_ARE_ADDR_EQUAL(&one->address, &other->address);
}
