#include "reader/lookup_reader.h"
#include "base/array.h"
#include "base/clock.h"
#include "reader/connection.h"
#include "reader/lookup_packet.h"
#include "reader/lookup_server.h"
#include "reader/module_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A question that takes more than this part of its time is slow, and all slow ones of a module have
 * the time of so many questions: a file may be made so that each takes nearly too long. */
#define SLOW_PART 10
#define SLOW_QUESTIONS_MAX 5
/* How long no other process is started after one could not be. */
#define REST_NS 1000000000u

/* A module that the process has open. */
struct open_module {
    uint32_t serial; /* 0: none */
    uint64_t used;   /* when, by a counter */
};

struct module_state {
    uint32_t serial; /* the module's: its number may be another one's later */
    bool has_failed;
    uint64_t slow_ns; /* what its slow questions took */
};

struct lookup_reader {
    struct lookups lookups;
    struct connection connection;
    struct open_module open[LOOKUP_MODULES_MAX];
    uint64_t used;
    uint64_t rests_until_ns;     /* no process could be started */
    struct module_state *states; /* by the module's number */
    size_t count, capacity;
    struct buffer question;
};

/* Returns 0, or -EAGAIN if there is no process. */
static int begin(struct lookup_reader *reader)
{
    struct connection *connection = &reader->connection;
    bool is_new;
    if (connection->socket < 0 && monotonic_ns() < reader->rests_until_ns)
        return -EAGAIN;
    if (connection_begin(connection, &is_new)) {
        reader->rests_until_ns = monotonic_ns() + REST_NS;
        return -EAGAIN;
    }
    if (is_new)
        memset(reader->open, 0, sizeof reader->open);
    return 0;
}

/* The module's place, or that of the one that was not used for longest. */
static size_t place_of(const struct lookup_reader *reader, uint32_t serial)
{
    size_t oldest = 0;
    for (size_t i = 0; i < LOOKUP_MODULES_MAX; i++) {
        if (reader->open[i].serial == serial)
            return i;
        if (reader->open[i].used < reader->open[oldest].used)
            oldest = i;
    }
    return oldest;
}

/* Gives the process the module if it has it no longer. */
static int load(struct lookup_reader *reader, const struct module *module, size_t place)
{
    struct open_module *open = &reader->open[place];
    open->used = ++reader->used;
    if (open->serial == module->serial)
        return 0;
    open->serial = module->serial;
    return module_packet_send(reader->connection.socket, PACKET_LOAD, place, module);
}

static int send_question(struct lookup_reader *reader, size_t place, const struct lookup *lookup)
{
    reader->question.length = 0;
    lookup_packet_put_question(&reader->question, place, lookup);
    return packet_send(reader->connection.socket, PACKET_LOOK_UP, &reader->question, -1);
}

/* Receives an answer of this kind: 0, why there is none, or the error in it. *ret_body: what comes
 * after that. */
static int receive(struct lookup_reader *reader, enum packet_kind kind, struct bytes *ret_body)
{
    struct connection *connection = &reader->connection;
    struct packet *packet = &connection->packet;
    int err = packet_receive(connection->socket, connection->until_ns, packet);
    if (err)
        return err;
    if (packet->fd >= 0)
        close(packet->fd);
    *ret_body = packet_bytes(packet);
    err = (int)packet_number(ret_body);
    if (packet->kind != kind || ret_body->failed || err > 0)
        return -EPROTO;
    return err == -ENOMEM ? -E2BIG : err == -EMFILE || err == -ENFILE ? -EAGAIN : err ? -EIO : 0;
}

static int receive_answer(struct lookup_reader *reader, size_t place, const struct lookup *lookup,
                          union lookup_answer *ret_answer)
{
    struct bytes body;
    int err = receive(reader, PACKET_LOOKED_UP, &body);
    if (!err)
        return lookup_packet_take_answer(&body, lookup, ret_answer) ? 0 : -EPROTO;
    reader->open[place].serial = 0;
    return err;
}

/* Returns 0, -EAGAIN, or why the question failed. */
static int ask(struct lookup_reader *reader, const struct module *module,
               const struct lookup *lookup, union lookup_answer *ret_answer)
{
    int err = begin(reader);
    if (err)
        return err;
    size_t place = place_of(reader, module->serial);
    err = load(reader, module, place);
    if (!err)
        err = send_question(reader, place, lookup);
    return err ? err : receive_answer(reader, place, lookup, ret_answer);
}

static struct module_state *state_of(struct lookup_reader *reader, const struct module *module)
{
    if (array_reserve(&reader->states, &reader->capacity, module->number + 1u))
        return NULL;
    while (reader->count <= module->number)
        reader->states[reader->count++] = (struct module_state){0};
    struct module_state *state = &reader->states[module->number];
    if (state->serial != module->serial)
        *state = (struct module_state){.serial = module->serial};
    return state;
}

/* Whether the module's questions have taken more time than all of them may. */
static bool is_too_slow(const struct lookup_reader *reader, struct module_state *state,
                        uint64_t took_ns)
{
    uint64_t limit_ns = reader->connection.limit_ms * (uint64_t)1000000;
    if (took_ns > limit_ns / SLOW_PART)
        state->slow_ns += took_ns;
    return state->slow_ns > SLOW_QUESTIONS_MAX * limit_ns;
}

static int find(struct lookups *lookups, struct module *module, const struct lookup *lookup,
                union lookup_answer *ret_answer)
{
    struct lookup_reader *reader = (struct lookup_reader *)lookups;
    struct module_state *state = state_of(reader, module);
    uint64_t begin_ns = monotonic_ns();
    if (!state)
        return -ENOMEM;
    if (state->has_failed)
        return -ENOEXEC;
    int err = ask(reader, module, lookup, ret_answer);
    /* Something else may have ended the process, or other modules have used up its memory: that a
     * module is to blame shows in a new one. */
    if (err == -EPIPE || err == -E2BIG) {
        connection_drop(&reader->connection);
        err = ask(reader, module, lookup, ret_answer);
    }
    if (!err && is_too_slow(reader, state, monotonic_ns() - begin_ns))
        err = -ETIMEDOUT;
    if (!err || err == -ENOMEM) {
        module->unread = NULL;
        return err;
    }
    if (err == -EAGAIN) {
        module->unread = "no process could be started to read it";
        return err;
    }
    connection_drop(&reader->connection);
    state->has_failed = true;
    module->unread = connection_why(err);
    return -ENOEXEC;
}

static int ask_for_code(struct lookup_reader *reader, const struct jit_source *source, off_t most,
                        struct jit_reading *reading)
{
    struct bytes body;
    int err = begin(reader);
    if (err)
        return err;
    reader->question.length = 0;
    lookup_packet_put_source(&reader->question, source);
    packet_put_number(&reader->question, (uint64_t)most);
    err = packet_send(reader->connection.socket, PACKET_READ_CODE, &reader->question, source->fd);
    if (!err)
        err = receive(reader, PACKET_CODE_READ, &body);
    if (!err && !lookup_packet_take_reading(&body, source, reading))
        err = reading->announced.error ? reading->announced.error : -EPROTO;
    return err;
}

static int read_code(struct lookups *lookups, const struct jit_source *source, off_t most,
                     struct jit_reading *reading)
{
    struct lookup_reader *reader = (struct lookup_reader *)lookups;
    int err = ask_for_code(reader, source, most, reading);
    /* As above. */
    if (err == -EPIPE || err == -E2BIG) {
        connection_drop(&reader->connection);
        err = ask_for_code(reader, source, most, reading);
    }
    if (!err || err == -ENOMEM || err == -EAGAIN)
        return err;
    connection_drop(&reader->connection);
    return -ENOEXEC;
}

int lookup_reader_new(unsigned limit_ms, struct lookup_reader **ret_reader)
{
    struct lookup_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    reader->lookups = (struct lookups){find, read_code};
    connection_open(&reader->connection, &lookup_role, limit_ms);
    *ret_reader = reader;
    return 0;
}

void lookup_reader_free(struct lookup_reader *reader)
{
    if (!reader)
        return;
    connection_free(&reader->connection);
    buffer_free(&reader->question);
    free(reader->states);
    free(reader);
}

struct lookups *lookup_reader_lookups(struct lookup_reader *reader)
{
    return &reader->lookups;
}
