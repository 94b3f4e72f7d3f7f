#include "reader/lookup_reader.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/index.h"
#include "reader/asked_files.h"
#include "reader/connection.h"
#include "reader/lookup_packet.h"
#include "reader/lookup_server.h"
#include "reader/module_packet.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

/* A question that takes more than this part of its time limit is slow. All slow questions about a
 * module together may take SLOW_QUESTIONS_MAX time limits: a file may be made so that each question
 * takes nearly too long. */
#define SLOW_PART 10
#define SLOW_QUESTIONS_MAX 5
#define TRIES_MORE 2
/* How long no other process is started after one could not be. */
#define REST_NS 1000000000u

/* A module that the process has open. */
struct open_module {
    uint32_t serial; /* 0: none */
    uint64_t used;   /* when, by a counter */
};

/* A symbol that was asked for: each process that has mapped the module asks for the same few. */
struct known_symbol {
    uint64_t hash; /* of name and type */
    int error;     /* 0, or -ENOENT: the module has none */
    struct module_part part;
};
#define KNOWN_SYMBOLS_MAX 64

struct module_state {
    uint32_t serial; /* the module's: its number may later be another module's */
    bool has_failed;
    uint64_t slow_ns; /* what its slow questions took */
    struct known_symbol *symbols;
    size_t symbol_count, symbol_capacity;
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

static struct module_state *state_of(struct lookup_reader *reader, const struct module *module)
{
    if (array_reserve(&reader->states, &reader->capacity, module->number + 1u))
        return NULL;
    while (reader->count <= module->number)
        reader->states[reader->count++] = (struct module_state){0};
    struct module_state *state = &reader->states[module->number];
    if (state->serial != module->serial) {
        free(state->symbols);
        *state = (struct module_state){.serial = module->serial};
    }
    return state;
}

static const struct known_symbol *find_known(const struct module_state *state, uint64_t hash)
{
    for (size_t i = 0; i < state->symbol_count; i++) {
        if (state->symbols[i].hash == hash)
            return &state->symbols[i];
    }
    return NULL;
}

/* If memory is short, it is asked again. */
static void remember(struct module_state *state, const struct known_symbol *symbol)
{
    if (state->symbol_count < KNOWN_SYMBOLS_MAX &&
        !array_reserve(&state->symbols, &state->symbol_capacity, state->symbol_count + 1))
        state->symbols[state->symbol_count++] = *symbol;
}

static uint64_t hash_of(const struct query *symbol)
{
    return hash_bytes(symbol->name, strlen(symbol->name), symbol->type);
}

/* Every module is asked for this sooner or later. Asked along with the headers, it takes no time of
 * its own, during which this thread would wait for the process. */
static const struct query sought = {.kind = QUERY_SYMBOL, .name = "_PyRuntime", .type = STT_OBJECT};

static bool take_headers(struct lookup_reader *reader, struct bytes *body, struct module *module)
{
    struct known_symbol symbol = {.hash = hash_of(&sought)};
    struct module_state *state = state_of(reader, module);
    union query_answer answer;
    if (!module_packet_take_headers(body, module))
        return false;
    symbol.error = packet_number(body) ? 0 : -ENOENT;
    if (!lookup_packet_take_found(body, sought.kind, &answer))
        return false;
    symbol.part = answer.part;
    if (state)
        remember(state, &symbol);
    return true;
}

/* What a module is asked, and where the answer goes: the first two, the next two, or the last. */
struct question {
    const struct lookup *lookup;
    union lookup_answer *looked_up;
    const struct query *query;
    union query_answer *found;
    struct module *headers;
};

static int send_question(struct lookup_reader *reader, size_t place,
                         const struct question *question)
{
    struct buffer *body = &reader->question;
    body->length = 0;
    enum packet_kind kind = question->lookup  ? PACKET_LOOK_UP
                            : question->query ? PACKET_QUERY
                                              : PACKET_HEADERS;
    if (question->lookup)
        lookup_packet_put_question(body, place, question->lookup);
    if (question->query)
        lookup_packet_put_query(body, place, question->query);
    if (question->headers) {
        packet_put_number(body, place);
        lookup_packet_put_query(body, place, &sought);
    }
    return packet_send(reader->connection.socket, kind, body, -1);
}

/* Receives an answer of this kind: returns 0, why there is none, or the error in it. *ret_body:
 * what comes after that. `files` as in asked_files_receive. */
static int receive(struct lookup_reader *reader, enum packet_kind kind, struct debug_files *files,
                   struct bytes *ret_body)
{
    struct connection *connection = &reader->connection;
    int err = asked_files_receive(connection, kind, files);
    if (err)
        return err;
    *ret_body = packet_bytes(&connection->packet);
    err = (int)packet_number(ret_body);
    if (ret_body->failed || err > 0)
        return -EPROTO;
    if ((err == -ENOENT || err == -ENOEXEC) && kind == PACKET_ANSWERED)
        return err;
    return err == -ENOMEM ? -E2BIG : err == -EMFILE || err == -ENFILE ? -EAGAIN : err ? -EIO : 0;
}

static int receive_answer(struct lookup_reader *reader, const struct module *module, size_t place,
                          const struct question *question)
{
    struct own_debug_files own;
    struct bytes body;
    own_debug_files_init(&own, module, NULL);
    int err = receive(reader, question->lookup ? PACKET_LOOKED_UP : PACKET_ANSWERED,
                      question->lookup ? NULL : &own.files, &body);
    if (err && err != -ENOENT)
        reader->open[place].serial = 0;
    if (err)
        return err;
    bool ok =
        question->lookup  ? lookup_packet_take_answer(&body, question->lookup, question->looked_up)
        : question->query ? lookup_packet_take_found(&body, question->query->kind, question->found)
                          : take_headers(reader, &body, question->headers);
    return ok ? 0 : -EPROTO;
}

/* Returns 0; -ENOENT or -ENOEXEC, which is an answer; -EAGAIN; or why the question failed. */
static int ask(struct lookup_reader *reader, const struct module *module,
               const struct question *question)
{
    int err = begin(reader);
    if (err)
        return err;
    size_t place = place_of(reader, module->serial);
    err = load(reader, module, place);
    if (!err)
        err = send_question(reader, place, question);
    return err ? err : receive_answer(reader, module, place, question);
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

static bool is_answer(int err)
{
    return !err || err == -ENOENT || err == -ENOEXEC;
}

/* Returns 0; -ENOENT or -ENOEXEC, which are answers; -EAGAIN; -ENOMEM; or -EIO if the module can't
 * be read, now or later. */
static int ask_of(struct lookup_reader *reader, struct module *module,
                  const struct question *question)
{
    struct module_state *state = state_of(reader, module);
    uint64_t begin_ns = monotonic_ns();
    if (!state)
        return -ENOMEM;
    if (state->has_failed)
        return -EIO;
    int err = ask(reader, module, question);
    /* Something else may have ended the process, or other modules have used up its memory. Only if
     * new processes fail too is the module to blame. */
    for (unsigned i = 0; i < TRIES_MORE && (err == -EPIPE || err == -E2BIG); i++) {
        connection_drop(&reader->connection);
        err = ask(reader, module, question);
    }
    if (is_answer(err) && is_too_slow(reader, state, monotonic_ns() - begin_ns))
        err = -ETIMEDOUT;
    if (is_answer(err) || err == -ENOMEM) {
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
    return -EIO;
}

static int find(struct lookups *lookups, struct module *module, const struct lookup *lookup,
                union lookup_answer *ret_answer)
{
    const struct question question = {.lookup = lookup, .looked_up = ret_answer};
    int err = ask_of((struct lookup_reader *)lookups, module, &question);
    return err == -EIO ? -ENOEXEC : err;
}

static int find_by_query(struct lookup_reader *reader, struct module *module,
                         const struct query *query, union query_answer *ret_answer)
{
    const struct question question = {.query = query, .found = ret_answer};
    int err = ask_of(reader, module, &question);
    return err == -EIO ? -ENOEXEC : err;
}

static int find_symbol(struct lookup_reader *reader, struct module *module,
                       const struct query *query, union query_answer *ret_answer)
{
    struct known_symbol symbol = {.hash = hash_of(query)};
    struct module_state *state = state_of(reader, module);
    const struct known_symbol *known = state ? find_known(state, symbol.hash) : NULL;
    if (!state)
        return -ENOMEM;
    if (known) {
        ret_answer->part = known->part;
        return known->error;
    }
    symbol.error = find_by_query(reader, module, query, ret_answer);
    if (!symbol.error)
        symbol.part = ret_answer->part;
    if (!symbol.error || symbol.error == -ENOENT)
        remember(state, &symbol);
    return symbol.error;
}

/* The queries are the first of the lookups, and these of the reader. */
static int answer_query(struct queries *queries, struct module *module, const struct query *query,
                        union query_answer *ret_answer)
{
    struct lookup_reader *reader = (struct lookup_reader *)queries;
    return query->kind == QUERY_SYMBOL ? find_symbol(reader, module, query, ret_answer)
                                       : find_by_query(reader, module, query, ret_answer);
}

static int read_headers(struct queries *queries, struct module *module)
{
    const struct question question = {.headers = module};
    return ask_of((struct lookup_reader *)queries, module, &question);
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
        err = receive(reader, PACKET_CODE_READ, NULL, &body);
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
    reader->lookups = (struct lookups){{read_headers, answer_query}, find, read_code};
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
    for (size_t i = 0; i < reader->count; i++)
        free(reader->states[i].symbols);
    free(reader->states);
    free(reader);
}

struct lookups *lookup_reader_lookups(struct lookup_reader *reader)
{
    return &reader->lookups;
}
