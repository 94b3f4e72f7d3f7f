#include "cli/serve/http_packet.h"

#include <errno.h>
#include <stdio.h>

int question_send(int socket, const struct question *question, int client_fd)
{
    const struct parameters *parameters = &question->parameters;
    struct buffer body = {0};
    packet_put_number(&body, question->method);
    packet_put_text(&body, question->path);
    packet_put_text(&body, question->host);
    packet_put_text(&body, question->authorization);
    packet_put_text(&body, question->site);
    packet_put_text(&body, question->mode);
    packet_put_text(&body, question->destination);
    packet_put_number(&body, parameters->count);
    for (size_t i = 0; i < parameters->count; i++) {
        packet_put_text(&body, parameters->items[i].name);
        packet_put_text(&body, parameters->items[i].value);
    }
    int err = packet_send(socket, HTTP_QUESTION, &body, client_fd);
    buffer_free(&body);
    return err;
}

static bool read_parameters(struct bytes *body, struct parameters *ret_parameters)
{
    uint64_t count = packet_number(body);
    if (count > PARAMETERS_MAX)
        return false;
    ret_parameters->count = count;
    for (uint64_t i = 0; i < count; i++) {
        struct parameter *item = &ret_parameters->items[i];
        item->name = packet_text(body);
        item->value = packet_text(body);
        if (!item->name)
            return false;
    }
    return true;
}

int question_read(const struct packet *packet, struct question *ret_question)
{
    struct bytes body = packet_bytes(packet);
    uint64_t method = packet_number(&body);
    *ret_question = (struct question){
        .method = method < METHOD_OTHER ? (enum request_method)method : METHOD_OTHER,
        .path = packet_text(&body),
    };
    ret_question->host = packet_text(&body);
    ret_question->authorization = packet_text(&body);
    ret_question->site = packet_text(&body);
    ret_question->mode = packet_text(&body);
    ret_question->destination = packet_text(&body);
    bool is_whole = packet->kind == HTTP_QUESTION && ret_question->path &&
                    read_parameters(&body, &ret_question->parameters);
    return is_whole && !body.failed ? 0 : -EPROTO;
}

int answer_send(int socket, const struct answer *answer)
{
    struct buffer body = {0};
    packet_put_number(&body, answer->status);
    packet_put_text(&body, answer->type);
    packet_put_text(&body, answer->disposition);
    packet_put_number(&body, answer->is_failure);
    int err = packet_send(socket, HTTP_ANSWER, &body, answer->body_fd);
    buffer_free(&body);
    return err;
}

int answer_read(const struct packet *packet, struct answer *ret_answer)
{
    struct bytes body = packet_bytes(packet);
    unsigned status = (unsigned)packet_number(&body);
    *ret_answer = (struct answer){
        .status = status,
        .type = packet_text(&body),
        .body_fd = packet->fd,
    };
    const char *disposition = packet_text(&body);
    ret_answer->is_failure = packet_number(&body);
    if (packet->kind != HTTP_ANSWER || packet->fd < 0 || !ret_answer->type || !disposition ||
        body.failed)
        return -EPROTO;
    snprintf(ret_answer->disposition, sizeof ret_answer->disposition, "%s", disposition);
    return 0;
}
