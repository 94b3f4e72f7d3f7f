#include "cli/push/post_packet.h"
#include "base/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POST, POST_ANSWER };

/* ---- Requests ---- */

static int send_with_file(int socket, const struct post *post, int fd)
{
    struct buffer body = {0};
    packet_put_text(&body, post->url);
    packet_put_text(&body, post->type);
    packet_put_number(&body, post->is_gzip);
    packet_put_number(&body, post->is_connect);
    packet_put_text(&body, post->ca_file);
    buffer_write(&body, post->credentials, sizeof *post->credentials);
    int err = packet_send(socket, POST, &body, fd);
    if (body.length)
        explicit_bzero(body.bytes, body.length);
    buffer_free(&body);
    return err;
}

int post_send(int socket, const struct post *post)
{
    int fd = memfd_create("request", MFD_CLOEXEC);
    int err = fd < 0 ? -errno : write_all(fd, post->body, post->body_bytes);
    if (!err)
        err = send_with_file(socket, post, fd);
    if (fd >= 0)
        close(fd);
    return err;
}

int post_read(const struct packet *packet, struct post *ret_post)
{
    struct bytes body = packet_bytes(packet);
    *ret_post = (struct post){.url = packet_text(&body)};
    ret_post->type = packet_text(&body);
    ret_post->is_gzip = packet_number(&body);
    ret_post->is_connect = packet_number(&body);
    ret_post->ca_file = packet_text(&body);
    ret_post->credentials = (const struct credentials *)body.at;
    bool is_whole = packet->kind == POST && packet->fd >= 0 && ret_post->url && ret_post->type &&
                    !body.failed && bytes_left(&body) == sizeof *ret_post->credentials;
    return is_whole ? 0 : -EPROTO;
}

/* ---- Answers ---- */

int post_answer_send(int socket, const struct post_answer *answer)
{
    struct buffer body = {0};
    buffer_write(&body, answer, sizeof *answer);
    int err = packet_send(socket, POST_ANSWER, &body, -1);
    buffer_free(&body);
    return err;
}

int post_answer_read(const struct packet *packet, struct post_answer *ret_answer)
{
    if (packet->kind != POST_ANSWER || packet->body.length != sizeof *ret_answer)
        return -EPROTO;
    memcpy(ret_answer, packet->body.bytes, sizeof *ret_answer);
    ret_answer->why[sizeof ret_answer->why - 1] = '\0';
    return ret_answer->body_bytes > sizeof ret_answer->body ||
                   ret_answer->retry_after_ns > RETRY_AFTER_MAX_S * (uint64_t)1000000000u
               ? -EPROTO
               : 0;
}
