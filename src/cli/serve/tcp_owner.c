#include "cli/serve/tcp_owner.h"
#include "cli/serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_BYTES 8192
#define ANSWER_WAIT_S 1
#define LINE_BYTES 512

struct found {
    struct tcp_ends ends;
    unsigned state;
    uint64_t inode; /* 0: no process holds it */
    uid_t uid;
};

/* A client that has sent its last byte may have shut down its side, but still reads. A socket that
 * nobody holds, because it was closed or not yet accepted, belongs to root, whoever had it
 * (net/ipv4/inet_diag.c, inet_twsk_diag_fill, and net/core/sock.c, sock_i_uid). */
static bool is_owned(const struct found *found, const struct tcp_ends *ends)
{
    bool is_connected = found->state == TCP_ESTABLISHED || found->state == TCP_FIN_WAIT1 ||
                        found->state == TCP_FIN_WAIT2;
    return is_connected && found->inode && found->ends.local_port == ends->local_port &&
           found->ends.remote_port == ends->remote_port &&
           IN6_ARE_ADDR_EQUAL(&found->ends.local, &ends->local) &&
           IN6_ARE_ADDR_EQUAL(&found->ends.remote, &ends->remote);
}

static int take(const struct found *found, const struct tcp_ends *ends, uid_t *ret_uid)
{
    if (!is_owned(found, ends))
        return -ENOENT;
    *ret_uid = found->uid;
    return 0;
}

/* ---- By sock_diag(7) ---- */

static void put_address(__be32 words[4], const struct in6_addr *address, bool is_v4)
{
    if (is_v4)
        memcpy(words, &address->s6_addr[12], 4);
    else
        memcpy(words, address, sizeof *address);
}

static struct in6_addr get_address(const __be32 words[4], unsigned family)
{
    struct in_addr v4 = {words[0]};
    struct in6_addr v6;
    memcpy(&v6, words, sizeof v6);
    return family == AF_INET ? address_of_v4(v4) : v6;
}

/* Without NLM_F_DUMP this asks about one socket, by all of `id`, which needs no privilege. A lookup
 * by IPv4 also finds IPv6 sockets with mapped addresses. */
static int send_question(int fd, const struct tcp_ends *ends)
{
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&ends->local);
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = is_v4 ? AF_INET : AF_INET6,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = UINT32_MAX,
                    .id = {.idiag_sport = htons(ends->local_port),
                           .idiag_dport = htons(ends->remote_port),
                           .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    put_address(question.request.id.idiag_src, &ends->local, is_v4);
    put_address(question.request.id.idiag_dst, &ends->remote, is_v4);
    return send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question ? 0 : -errno;
}

int tcp_owner_in_answer(const void *answer, size_t bytes, const struct tcp_ends *ends,
                        uid_t *ret_uid)
{
    struct nlmsghdr header;
    struct nlmsgerr failure;
    struct inet_diag_msg socket;
    const char *body = (const char *)answer + NLMSG_HDRLEN;
    if (bytes < NLMSG_HDRLEN)
        return -EBADMSG;
    memcpy(&header, answer, sizeof header);
    if (header.nlmsg_len > bytes)
        return -EBADMSG;
    if (header.nlmsg_type == NLMSG_ERROR && header.nlmsg_len >= NLMSG_LENGTH(sizeof failure)) {
        memcpy(&failure, body, sizeof failure);
        return failure.error < 0 ? failure.error : -EBADMSG;
    }
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len < NLMSG_LENGTH(sizeof socket))
        return -EBADMSG;
    memcpy(&socket, body, sizeof socket);
    const struct found found = {
        .ends = {.local = get_address(socket.id.idiag_src, socket.idiag_family),
                 .remote = get_address(socket.id.idiag_dst, socket.idiag_family),
                 .local_port = ntohs(socket.id.idiag_sport),
                 .remote_port = ntohs(socket.id.idiag_dport)},
        .state = socket.idiag_state,
        .inode = socket.idiag_inode,
        .uid = socket.idiag_uid,
    };
    return take(&found, ends, ret_uid);
}

int tcp_owner_ask_kernel(const struct tcp_ends *ends, uid_t *ret_uid)
{
    const struct timeval wait = {.tv_sec = ANSWER_WAIT_S};
    char answer[ANSWER_BYTES];
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    int err = send_question(fd, ends);
    ssize_t got = err ? 0 : recv(fd, answer, sizeof answer, 0);
    if (got < 0)
        err = -errno;
    close(fd);
    return err ? err : tcp_owner_in_answer(answer, (size_t)got, ends, ret_uid);
}

/* ---- By /proc/net/tcp and tcp6 ---- */

/* "0100007F" or four such words: each in the order of this machine's bytes. */
static bool parse_address(const char *digits, struct in6_addr *ret_address)
{
    uint32_t words[4];
    size_t length = strlen(digits);
    if (length == 8 && sscanf(digits, "%8x", &words[0]) == 1) {
        *ret_address = address_of_v4((struct in_addr){words[0]});
        return true;
    }
    if (length != 32 ||
        sscanf(digits, "%8x%8x%8x%8x", &words[0], &words[1], &words[2], &words[3]) != 4)
        return false;
    memcpy(ret_address, words, sizeof words);
    return true;
}

/* "   0: 0100007F:A2C4 0100007F:17AC 01 00000000:00000000 00:00000000 00000000  1000        0 52211
 * ..." (Documentation/networking/proc_net_tcp.rst): a number, the ends, the state, queues, a timer,
 * retransmits, the user, probes and the inode. */
int tcp_owner_in_line(const char *line, const struct tcp_ends *ends, uid_t *ret_uid)
{
    char local[33], remote[33];
    unsigned local_port, remote_port, uid;
    unsigned long inode;
    struct found found;
    if (sscanf(line, " %*u: %32[0-9A-F]:%4x %32[0-9A-F]:%4x %2x %*x:%*x %*x:%*x %*x %u %*u %lu",
               local, &local_port, remote, &remote_port, &found.state, &uid, &inode) != 7 ||
        !parse_address(local, &found.ends.local) || !parse_address(remote, &found.ends.remote))
        return -EBADMSG;
    found.ends.local_port = (in_port_t)local_port;
    found.ends.remote_port = (in_port_t)remote_port;
    found.inode = inode;
    found.uid = uid;
    return take(&found, ends, ret_uid);
}

static int read_table(const char *path, const struct tcp_ends *ends, uid_t *ret_uid)
{
    char line[LINE_BYTES];
    int err = -ENOENT;
    FILE *table = fopen(path, "re");
    if (!table)
        return -errno;
    while (err && fgets(line, sizeof line, table))
        err = tcp_owner_in_line(line, ends, ret_uid);
    fclose(table);
    return err ? -ENOENT : 0;
}

/* A socket of IPv6 that is connected by IPv4 is in the table of IPv6. */
int tcp_owner_read_tables(const struct tcp_ends *ends, uid_t *ret_uid)
{
    int err = -ENOENT;
    if (IN6_IS_ADDR_V4MAPPED(&ends->local))
        err = read_table("/proc/net/tcp", ends, ret_uid);
    return err ? read_table("/proc/net/tcp6", ends, ret_uid) : 0;
}

int tcp_owner_find(const struct tcp_ends *ends, uid_t *ret_uid)
{
    int err = tcp_owner_ask_kernel(ends, ret_uid);
    return err ? tcp_owner_read_tables(ends, ret_uid) : 0;
}
