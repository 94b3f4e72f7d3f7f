#include "reader/lookup_server.h"
#include "elf/elf_file.h"
#include "reader/asked_files.h"
#include "reader/lookup_packet.h"
#include "reader/module_packet.h"
#include "symbol/module_query.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What all files that are mapped in a large browser need together is less than a tenth of this. */
#define MEMORY_BYTES_MAX ((uint64_t)2 << 30)

struct module_slot {
    struct module *module; /* NULL: none */
    int error;             /* why it can't be read */
    struct module_names names;
};

struct lookup_server {
    int socket;
    struct asked_files asked;
    struct module_slot slots[LOOKUP_MODULES_MAX];
    struct cfi_entry scratch;
    struct jit_reading reading;
    union query_answer found;
    struct buffer answer;
};

static void close_slot(struct module_slot *slot)
{
    module_names_free(&slot->names);
    module_free(slot->module);
    *slot = (struct module_slot){.error = -ENOENT};
}

static int load(struct lookup_server *server, const struct packet *packet)
{
    struct bytes body = packet_bytes(packet);
    uint64_t number = packet_number(&body);
    if (number >= LOOKUP_MODULES_MAX)
        return -EPROTO;
    struct module_slot *slot = &server->slots[number];
    close_slot(slot);
    slot->error = module_packet_take(&body, packet->fd, &slot->module);
    if (!slot->error && !slot->module->is_readable)
        slot->error = slot->module->error ? slot->module->error : -ENOENT;
    return 0;
}

static int look_up(struct lookup_server *server, const struct packet *packet)
{
    struct bytes body = packet_bytes(packet);
    struct buffer *answer = &server->answer;
    union lookup_answer found = {0};
    struct lookup lookup;
    uint64_t number;
    if (!lookup_packet_take_question(&body, &number, &lookup) || number >= LOOKUP_MODULES_MAX)
        return -EPROTO;
    struct module_slot *slot = &server->slots[number];
    int err = !slot->module ? -ENOENT : slot->error;
    if (!err)
        err = module_look_up(slot->module, &lookup, &server->scratch, &found);
    answer->length = 0;
    packet_put_number(answer, (uint64_t)(int64_t)err);
    if (!err)
        lookup_packet_put_answer(answer, lookup.kind, &found);
    return packet_send(server->socket, PACKET_LOOKED_UP, answer, -1);
}

static int answer_query(struct lookup_server *server, const struct packet *packet)
{
    struct bytes body = packet_bytes(packet);
    struct buffer *answer = &server->answer;
    struct query query;
    uint64_t number;
    if (!lookup_packet_take_query(&body, &number, &query) || number >= LOOKUP_MODULES_MAX)
        return -EPROTO;
    struct module_slot *slot = &server->slots[number];
    int err = !slot->module ? -ENODEV : slot->error;
    if (!err)
        err =
            module_query(&slot->names, slot->module, &server->asked.files, &query, &server->found);
    answer->length = 0;
    packet_put_number(answer, (uint64_t)(int64_t)err);
    if (!err)
        lookup_packet_put_found(answer, query.kind, &server->found);
    return packet_send(server->socket, PACKET_ANSWERED, answer, -1);
}

/* Looks up the symbols that are asked for with the headers. */
static void put_symbols(struct lookup_server *server, struct module_slot *slot, struct bytes *body)
{
    struct query query;
    uint64_t number;
    while (bytes_left(body) && lookup_packet_take_query(body, &number, &query)) {
        bool is_there =
            !module_query(&slot->names, slot->module, &server->asked.files, &query, &server->found);
        packet_put_number(&server->answer, is_there);
        lookup_packet_put_found(&server->answer, query.kind, &server->found);
    }
}

static int read_headers(struct lookup_server *server, const struct packet *packet)
{
    struct bytes body = packet_bytes(packet);
    struct buffer *answer = &server->answer;
    uint64_t number = packet_number(&body);
    if (body.failed || number >= LOOKUP_MODULES_MAX)
        return -EPROTO;
    struct module_slot *slot = &server->slots[number];
    int err = !slot->module ? -ENODEV : slot->error;
    answer->length = 0;
    packet_put_number(answer, (uint64_t)(int64_t)err);
    if (!err) {
        module_packet_put_headers(answer, slot->module);
        put_symbols(server, slot, &body);
    }
    return packet_send(server->socket, PACKET_ANSWERED, answer, -1);
}

/* The file is closed by the caller. */
static int read_code(struct lookup_server *server, const struct packet *packet)
{
    struct bytes body = packet_bytes(packet);
    struct buffer *answer = &server->answer;
    struct jit_source source = {.is_open = true, .fd = packet->fd};
    bool ok = lookup_packet_take_source(&body, &source);
    uint64_t most = packet_number(&body);
    if (!ok || body.failed || packet->fd < 0 || most > INT32_MAX)
        return -EPROTO;
    int err = jit_source_read(&source, (off_t)most, &server->reading);
    answer->length = 0;
    packet_put_number(answer, (uint64_t)(int64_t)err);
    if (!err)
        lookup_packet_put_reading(answer, &server->reading);
    return packet_send(server->socket, PACKET_CODE_READ, answer, -1);
}

static void serve(int socket)
{
    struct lookup_server *server = calloc(1, sizeof *server);
    struct packet packet = {0};
    if (!server)
        return;
    server->socket = socket;
    asked_files_init(&server->asked, socket);
    int err = 0;
    while (!err && packet_receive(socket, 0, &packet) == 0) {
        if (packet.kind == PACKET_LOAD) {
            err = load(server, &packet);
            continue;
        }
        err = packet.kind == PACKET_LOOK_UP     ? look_up(server, &packet)
              : packet.kind == PACKET_QUERY     ? answer_query(server, &packet)
              : packet.kind == PACKET_HEADERS   ? read_headers(server, &packet)
              : packet.kind == PACKET_READ_CODE ? read_code(server, &packet)
                                                : -EPROTO;
        if (packet.fd >= 0)
            close(packet.fd);
    }
    for (size_t i = 0; i < LOOKUP_MODULES_MAX; i++)
        close_slot(&server->slots[i]);
    buffer_free(&server->answer);
    buffer_free(&server->reading.announced);
    buffer_free(&packet.body);
    free(server);
}

const struct helper_role lookup_role = {READER_NAME, serve, MEMORY_BYTES_MAX, SANDBOX_READS};
