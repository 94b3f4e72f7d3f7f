#include "wait/socket.h"
#include "base/procfs_file.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* At most this much of a table is read, some hundred thousand sockets. */
#define TABLE_BYTES_MAX (64u << 20)
#define LINE_BYTES 512
#define ANSWER_BYTES 32768 /* the kernel's largest message of a dump */

#define STATE_ESTABLISHED 1 /* of the kernel's include/net/tcp_states.h */
#define STATE_LISTEN 10

static const char *const protocol_names[] = {
    [SOCKET_TCP] = "tcp",   [SOCKET_TCP6] = "tcp6", [SOCKET_UDP] = "udp",
    [SOCKET_UDP6] = "udp6", [SOCKET_UNIX] = "unix",
};
static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* Parses the hex digits of one or four 32-bit words, each in this machine's byte order
 * (get_tcp4_sock, get_tcp6_sock in the kernel's net/ipv4/tcp_ipv4.c and ipv6/tcp_ipv6.c). */
static bool parse_address(const char *hex, struct socket_address *ret_address)
{
    uint32_t words[4];
    size_t digits = strlen(hex);
    if (digits != 8 && digits != 32)
        return false;
    for (size_t i = 0; i < digits / 8; i++) {
        if (sscanf(hex + 8 * i, "%8" SCNx32, &words[i]) != 1)
            return false;
    }
    size_t prefix = sizeof ret_address->bytes - digits / 2;
    memcpy(ret_address->bytes, mapped_prefix, prefix);
    memcpy(ret_address->bytes + prefix, words, digits / 2);
    return true;
}

bool socket_parse_inet(enum socket_protocol protocol, const char *line, struct socket *ret_socket)
{
    char local[33], remote[33];
    struct socket found = {.protocol = protocol};
    int fields =
        sscanf(line,
               " %*[0-9]: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*[0-9A-Fa-f]:%*x "
               "%*x:%*x %*x %*u %*u %" SCNu64,
               local, &found.local.port, remote, &found.remote.port, &found.state, &found.inode);
    if (fields != 6 || !parse_address(local, &found.local) || !parse_address(remote, &found.remote))
        return false;
    *ret_socket = found;
    return true;
}

bool socket_parse_unix(const char *line, struct socket *ret_socket, const char **ret_path)
{
    int path = 0;
    struct socket found = {.protocol = SOCKET_UNIX};
    if (sscanf(line, "%*[0-9A-Fa-f]: %*x %*x %*x %x %*x %" SCNu64 "%n", &found.type, &found.inode,
               &path) != 2 ||
        !path)
        return false;
    line += path;
    line += strspn(line, " ");
    *ret_path = *line ? line : NULL;
    *ret_socket = found;
    return true;
}

static const char *unix_type(const struct socket *socket)
{
    return socket->type == SOCK_STREAM  ? "stream"
           : socket->type == SOCK_DGRAM ? "datagram"
                                        : "seqpacket";
}

static void append_address(char *text, const struct socket_address *address, bool is_six)
{
    char host[INET6_ADDRSTRLEN];
    size_t used = strlen(text);
    inet_ntop(is_six ? AF_INET6 : AF_INET,
              is_six ? address->bytes : address->bytes + sizeof mapped_prefix, host, sizeof host);
    snprintf(text + used, SOCKET_TEXT_BYTES - used, is_six ? "[%s]:%u" : "%s:%u", host,
             address->port);
}

void socket_text(const struct socket *socket, char ret_text[SOCKET_TEXT_BYTES])
{
    if (socket->protocol == SOCKET_UNIX) {
        snprintf(ret_text, SOCKET_TEXT_BYTES, "unix %s%s%s", unix_type(socket),
                 socket->path ? " " : "", socket->path ? socket->path : "");
        return;
    }
    bool is_six = socket->protocol == SOCKET_TCP6 || socket->protocol == SOCKET_UDP6;
    snprintf(ret_text, SOCKET_TEXT_BYTES, "%s ", protocol_names[socket->protocol]);
    append_address(ret_text, &socket->local, is_six);
    if (socket_resource_kind(socket) == RESOURCE_TCP_SOCKET && socket->state == STATE_LISTEN) {
        strcat(ret_text, " listening");
    } else if (socket->remote.port) {
        strcat(ret_text, " -> ");
        append_address(ret_text, &socket->remote, is_six);
    }
}

enum resource_kind socket_resource_kind(const struct socket *socket)
{
    switch (socket->protocol) {
    case SOCKET_TCP:
    case SOCKET_TCP6:
        return RESOURCE_TCP_SOCKET;
    case SOCKET_UNIX:
        return RESOURCE_UNIX_SOCKET;
    default:
        return RESOURCE_SOCKET;
    }
}

int sockets_add(struct sockets *sockets, const struct socket *socket, const char *path)
{
    char *copy = path ? strdup(path) : NULL;
    if ((path && !copy) || array_reserve(&sockets->items, &sockets->capacity, sockets->count + 1)) {
        free(copy);
        return -ENOMEM;
    }
    sockets->items[sockets->count] = *socket;
    sockets->items[sockets->count++].path = copy;
    return 0;
}

/* By inode, and those of one inode in the order in which the tables are read. */
static int compare_sockets(const void *a, const void *b)
{
    const struct socket *left = a, *right = b;
    int order = ORDER(left->inode, right->inode);
    return order ? order : ORDER(left->protocol, right->protocol);
}

static uint64_t hash_addresses(const struct socket_address *from, const struct socket_address *to)
{
    return hash_bytes(to, sizeof *to, hash_bytes(from, sizeof *from, 0));
}

/* The kernel writes the name of a Unix socket unchanged (unix_seq_show in its net/unix/af_unix.c):
 * after a line feed, the name may continue with a line that claims any inode. Keeps one socket of
 * each inode: that of the TCP and UDP tables, which contain no names, or else a Unix socket without
 * a path, because it is not known which line is genuine. */
static void drop_forged(struct sockets *sockets)
{
    size_t kept = 0;
    for (size_t i = 0; i < sockets->count; i++) {
        struct socket *item = &sockets->items[i];
        struct socket *last = kept ? &sockets->items[kept - 1] : NULL;
        if (!last || !item->inode || last->inode != item->inode) {
            sockets->items[kept++] = *item;
            continue;
        }
        free(item->path);
        free(last->path);
        last->path = NULL;
    }
    sockets->count = kept;
}

int sockets_finish(struct sockets *sockets)
{
    int err = 0;
    array_sort(sockets->items, sockets->count, compare_sockets);
    drop_forged(sockets);
    for (size_t i = 0; i < sockets->count && !err; i++) {
        const struct socket *item = &sockets->items[i];
        if (socket_resource_kind(item) == RESOURCE_TCP_SOCKET && item->state == STATE_LISTEN)
            sockets->listening[item->local.port % 65536 / 8] |=
                (uint8_t)(1 << item->local.port % 8);
        if (item->inode && socket_resource_kind(item) == RESOURCE_TCP_SOCKET &&
            item->state != STATE_LISTEN)
            err = index_add(&sockets->by_addresses, hash_addresses(&item->local, &item->remote),
                            (uint32_t)i);
    }
    return err;
}

void sockets_free(struct sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++)
        free(sockets->items[i].path);
    free(sockets->items);
    index_free(&sockets->by_addresses);
    *sockets = (struct sockets){0};
}

const struct socket *sockets_find(const struct sockets *sockets, uint64_t inode)
{
    return inode ? FIND_SORTED(sockets->items, sockets->count, inode, inode) : NULL;
}

/* Whether item number `item` is at the other end of the socket `key`. */
static bool is_other_end(const void *owner, uint32_t item, const void *key)
{
    const struct socket *other = &((const struct sockets *)owner)->items[item], *socket = key;
    return memcmp(&other->local, &socket->remote, sizeof other->local) == 0 &&
           memcmp(&other->remote, &socket->local, sizeof other->remote) == 0;
}

const struct socket *sockets_peer(const struct sockets *sockets, const struct socket *socket)
{
    if (socket->protocol == SOCKET_UNIX)
        return sockets_find(sockets, socket->peer);
    if (socket_resource_kind(socket) != RESOURCE_TCP_SOCKET || socket->state != STATE_ESTABLISHED)
        return NULL;
    uint32_t item =
        index_find(&sockets->by_addresses, hash_addresses(&socket->remote, &socket->local),
                   is_other_end, sockets, socket);
    return item == INDEX_NONE ? NULL : &sockets->items[item];
}

void sockets_service(const struct sockets *sockets, const struct socket *socket,
                     char ret_text[SOCKET_TEXT_BYTES])
{
    const struct socket_address *local = &socket->local, *remote = &socket->remote;
    if (socket->protocol == SOCKET_UNIX) {
        const struct socket *peer = socket->path ? NULL : sockets_peer(sockets, socket);
        const char *path = peer ? peer->path : socket->path;
        snprintf(ret_text, SOCKET_TEXT_BYTES, "unix %s%s%s", unix_type(socket), path ? " " : "",
                 path ? path : "");
        return;
    }
    bool is_tcp = socket_resource_kind(socket) == RESOURCE_TCP_SOCKET;
    bool is_served = is_tcp && sockets->listening[local->port % 65536 / 8] & 1 << local->port % 8;
    const struct socket_address *shown = is_served || !remote->port ? local : remote;
    snprintf(ret_text, SOCKET_TEXT_BYTES, "%s ", is_tcp ? "tcp" : "udp");
    append_address(ret_text, shown, memcmp(shown->bytes, mapped_prefix, sizeof mapped_prefix) != 0);
    if (is_tcp && socket->state == STATE_LISTEN)
        strcat(ret_text, " listening");
}

static void take_peer(struct sockets *sockets, const struct nlmsghdr *header)
{
    const struct unix_diag_msg *message = NLMSG_DATA(header);
    struct rtattr *attribute = (struct rtattr *)(message + 1);
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof *message))
        return;
    int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof *message));
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        uint32_t peer;
        struct socket *socket = (struct socket *)sockets_find(sockets, message->udiag_ino);
        if (attribute->rta_type != UNIX_DIAG_PEER || RTA_PAYLOAD(attribute) < sizeof peer ||
            !socket)
            continue;
        memcpy(&peer, RTA_DATA(attribute), sizeof peer);
        socket->peer = peer;
    }
}

bool sockets_take_answer(struct sockets *sockets, const void *bytes, size_t length)
{
    const struct nlmsghdr *header = bytes;
    int left = (int)length;
    for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
        if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR)
            return false;
        if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY)
            take_peer(sockets, header);
    }
    return true;
}

/* The tables in /proc lack the peers of Unix sockets. */
static void ask_for_peers(struct sockets *sockets)
{
    const struct timeval patience = {.tv_sec = 1};
    const struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = {.sdiag_family = AF_UNIX,
                    .udiag_states = UINT32_MAX,
                    .udiag_show = UDIAG_SHOW_PEER},
    };
    size_t bytes = 0;
    ssize_t got;
    void *answer = malloc(ANSWER_BYTES);
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (answer && fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question) {
        do {
            got = recv(fd, answer, ANSWER_BYTES, 0);
            bytes += got > 0 ? (size_t)got : 0;
        } while (got > 0 && bytes < TABLE_BYTES_MAX &&
                 sockets_take_answer(sockets, answer, (size_t)got));
    }
    free(answer);
    if (fd >= 0)
        close(fd);
}

/* Returns 0 or -ENOMEM. */
static int read_table(struct sockets *sockets, enum socket_protocol protocol, FILE *table)
{
    char line[LINE_BYTES];
    size_t bytes = 0;
    int err = 0;
    while (!err && bytes < TABLE_BYTES_MAX && fgets(line, sizeof line, table)) {
        struct socket socket;
        const char *path = NULL;
        bytes += strlen(line);
        line[strcspn(line, "\n")] = '\0';
        if (protocol == SOCKET_UNIX ? socket_parse_unix(line, &socket, &path)
                                    : socket_parse_inet(protocol, line, &socket))
            err = sockets_add(sockets, &socket, path);
    }
    return err;
}

static bool is_in_our_namespace(int proc_fd)
{
    char own[64], theirs[64];
    ssize_t own_length = readlink("/proc/self/ns/net", own, sizeof own);
    ssize_t length = readlinkat(proc_fd, "ns/net", theirs, sizeof theirs);
    return length > 0 && length == own_length && memcmp(own, theirs, (size_t)length) == 0;
}

int sockets_read(struct sockets *sockets, int proc_fd)
{
    int err = 0;
    for (int i = SOCKET_TCP; i <= SOCKET_UNIX && !err; i++) {
        char path[16];
        snprintf(path, sizeof path, "net/%s", protocol_names[i]);
        FILE *table = procfs_open(proc_fd, path);
        if (table) {
            err = read_table(sockets, (enum socket_protocol)i, table);
            fclose(table);
        }
    }
    if (!err)
        err = sockets_finish(sockets);
    if (!err && is_in_our_namespace(proc_fd))
        ask_for_peers(sockets);
    return err;
}
