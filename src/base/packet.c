#include "base/packet.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

struct head {
    uint32_t kind, bytes;
};

union file_control { /* one descriptor (cmsg(3)) */
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

void packet_put_number(struct buffer *body, uint64_t number)
{
    buffer_write(body, &number, sizeof number);
}

void packet_put_cut_text(struct buffer *body, const char *text, size_t bytes_max)
{
    size_t bytes = text ? utf8_cut(text, strlen(text), bytes_max) : 0;
    packet_put_number(body, text ? bytes + 1 : 0);
    if (!text)
        return;
    buffer_write(body, text, bytes);
    buffer_write(body, "", 1);
}

void packet_put_text(struct buffer *body, const char *text)
{
    packet_put_cut_text(body, text, SIZE_MAX);
}

uint64_t packet_number(struct bytes *body)
{
    return bytes_unsigned(body, sizeof(uint64_t));
}

const char *packet_text(struct bytes *body)
{
    uint64_t bytes = packet_number(body);
    const char *text = (const char *)body->at;
    if (!bytes)
        return NULL;
    if (bytes > bytes_left(body) || strnlen(text, bytes) != bytes - 1) {
        body->failed = true;
        return NULL;
    }
    body->at += bytes;
    return text;
}

/* Numbers in memory are little-endian on both architectures. */
void packet_put_fields(struct buffer *body, const struct packet_field *fields, size_t count,
                       const void *from)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        memcpy(&number, (const char *)from + fields[i].offset, fields[i].bytes);
        packet_put_number(body, number);
    }
}

void packet_take_fields(struct bytes *body, const struct packet_field *fields, size_t count,
                        void *to)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = packet_number(body);
        body->failed = body->failed || number > fields[i].max;
        number = number > fields[i].max ? 0 : number;
        memcpy((char *)to + fields[i].offset, &number, fields[i].bytes);
    }
}

struct bytes packet_bytes(const struct packet *packet)
{
    const uint8_t *begin = (const uint8_t *)packet->body.bytes;
    return (struct bytes){.at = begin, .end = begin + packet->body.length};
}

static int error_of_socket(void)
{
    return errno == ECONNRESET ? -EPIPE : -errno;
}

/* The other end may stop to read (SO_SNDTIMEO). */
static int error_of_send(void)
{
    return errno == EAGAIN ? -ETIMEDOUT : error_of_socket();
}

static int send_all(int socket, const char *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(socket, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return error_of_send();
        if (sent > 0) {
            bytes += sent;
            length -= (size_t)sent;
        }
    }
    return 0;
}

int packet_send(int socket, unsigned kind, const struct buffer *body, int fd)
{
    struct head head = {kind, (uint32_t)body->length};
    struct iovec parts[] = {{&head, sizeof head}, {body->bytes, body->length}};
    union file_control control = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (body->error)
        return body->error;
    if (body->length > PACKET_BYTES_MAX)
        return -EMSGSIZE;
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < (ssize_t)sizeof head)
        return sent < 0 ? error_of_send() : -EPROTO;
    size_t done = (size_t)sent - sizeof head;
    return send_all(socket, body->bytes + done, body->length - done);
}

static int await(int socket, uint64_t until_ns)
{
    struct pollfd waited = {.fd = socket, .events = POLLIN};
    int ready;
    do {
        uint64_t now_ns = monotonic_ns();
        uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0;
        ready = poll(&waited, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    } while (ready < 0 && errno == EINTR);
    return ready < 0 ? -errno : ready ? 0 : -ETIMEDOUT;
}

/* Receives what there is, up to `length` bytes, with a file if one comes along. */
static ssize_t receive_now(int socket, int flags, void *bytes, size_t length, int *fd)
{
    struct iovec part = {bytes, length};
    union file_control control;
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_LEN(sizeof *fd), /* no room for a second one */
    };
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 ? error_of_socket() : -EPIPE;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof *fd)) {
        if (*fd >= 0)
            close(*fd);
        memcpy(fd, CMSG_DATA(header), sizeof *fd);
    }
    return got;
}

/* Most of it is there by the time that any is waited for. */
static int receive_all(int socket, uint64_t until_ns, void *buffer, size_t length, int *fd)
{
    char *bytes = buffer;
    while (length) {
        if (until_ns && monotonic_ns() >= until_ns)
            return -ETIMEDOUT; /* however much there still is */
        ssize_t got = receive_now(socket, until_ns ? MSG_DONTWAIT : 0, bytes, length, fd);
        if (got == -EAGAIN)
            got = await(socket, until_ns);
        if (got < 0)
            return (int)got;
        bytes += got;
        length -= (size_t)got;
    }
    return 0;
}

/* Receives what there is no memory for, so that the next packet can be received. */
static int discard(int socket, uint64_t until_ns, size_t length, int *fd)
{
    char bytes[512];
    int err = 0;
    while (length && !err) {
        size_t part = length < sizeof bytes ? length : sizeof bytes;
        err = receive_all(socket, until_ns, bytes, part, fd);
        length -= part;
    }
    return err ? err : -ENOMEM;
}

int packet_receive(int socket, uint64_t until_ns, struct packet *packet)
{
    struct head head;
    struct buffer *body = &packet->body;
    packet->fd = -1;
    body->length = 0;
    body->error = 0;
    int err = receive_all(socket, until_ns, &head, sizeof head, &packet->fd);
    if (!err && head.bytes > PACKET_BYTES_MAX)
        err = -EPROTO;
    if (!err && buffer_reserve(body, head.bytes))
        err = discard(socket, until_ns, head.bytes, &packet->fd);
    else if (!err)
        err = receive_all(socket, until_ns, body->bytes, head.bytes, &packet->fd);
    if (err && packet->fd >= 0) {
        close(packet->fd);
        packet->fd = -1;
    }
    if (err)
        return err;
    packet->kind = head.kind;
    body->length = head.bytes;
    return 0;
}
