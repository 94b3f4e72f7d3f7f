#include "reader/reader.h"
#include "reader/asked_files.h"
#include "reader/connection.h"
#include "reader/module_packet.h"
#include "reader/naming.h"
#include "symbol/debug_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WHY_BYTES 128

/* The last modules whose reader failed, up to this many, are not tried again. */
#define FAILED_MAX 256

struct failed_module {
    uint32_t serial; /* 0: none */
    const char *why;
};

struct reader {
    struct connection connection;
    struct failed_module failed[FAILED_MAX];
    size_t failures; /* how many in total */
    char why[WHY_BYTES];
    bool cannot_show; /* it failed to */
};

/* Makes sure that there is a reader, and begins the time of a question. */
static int start(struct reader *reader)
{
    bool is_new;
    return connection_begin(&reader->connection, &is_new);
}

int reader_new(unsigned limit_ms, struct reader **ret_reader)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    int err = connection_open(&reader->connection, &naming_role, limit_ms);
    if (err)
        reader_free(reader);
    else
        *ret_reader = reader;
    return err;
}

void reader_free(struct reader *reader)
{
    if (!reader)
        return;
    connection_free(&reader->connection);
    free(reader);
}

/* Waits for a packet of this kind. */
static int receive(struct reader *reader, const struct reader_question *question,
                   enum packet_kind kind)
{
    struct own_debug_files own;
    own_debug_files_init(&own, question->module, question->fetch);
    return asked_files_receive(&reader->connection, kind, &own.files);
}

/* ---- Questions ---- */

static int send_module(struct reader *reader, const struct module *module)
{
    return module_packet_send(reader->connection.socket, PACKET_OPEN, module->serial, module);
}

/* Returns 0, -ENOEXEC if the module can't be read, or why the reader has failed. */
static int await_opened(struct reader *reader, const struct reader_question *question)
{
    int err = receive(reader, question, PACKET_OPENED);
    if (err)
        return err;
    struct bytes body = packet_bytes(&reader->connection.packet);
    err = (int)packet_number(&body);
    const char *why = packet_text(&body);
    snprintf(reader->why, sizeof reader->why, "%s", why ? why : "");
    return body.failed ? -EPROTO : err == -ENOMEM ? -E2BIG : err;
}

static int send_addresses(struct reader *reader, const struct reader_question *question)
{
    struct buffer body = {0};
    packet_put_number(&body, question->names);
    packet_put_number(&body, question->count);
    buffer_write(&body, question->addresses, question->count * sizeof *question->addresses);
    int err = packet_send(reader->connection.socket, PACKET_NAME, &body, -1);
    buffer_free(&body);
    return err;
}

/* A text that the reader has cut. */
static const char *take_text(struct bytes *body)
{
    const char *text = packet_text(body);
    if (text && strlen(text) > READER_TEXT_MAX)
        body->failed = true;
    return text;
}

/* Reads the next symbol of a packet. Returns 0 or -EPROTO. */
static int take_symbol(struct bytes *body, struct symbol *ret_symbol, bool *ret_is_trampoline)
{
    uint64_t count = packet_number(body);
    *ret_symbol = (struct symbol){.function_offset = packet_number(body)};
    ret_symbol->has_debug_info = packet_number(body);
    *ret_is_trampoline = packet_number(body);
    if (count > SYMBOL_LINES_MAX)
        return -EPROTO;
    for (uint64_t i = 0; i < count; i++) {
        struct symbol_line *line = &ret_symbol->lines[i];
        line->name = take_text(body);
        line->shown = take_text(body);
        line->file = take_text(body);
        line->line = (uint32_t)packet_number(body);
        line->is_inlined = packet_number(body);
        if (!line->name || !line->shown)
            return -EPROTO;
    }
    ret_symbol->line_count = count;
    return body->failed ? -EPROTO : 0;
}

/* Returns why the reader has failed, or 0; then *ret_stop is what the last visit returned. */
static int receive_symbols(struct reader *reader, const struct reader_question *question,
                           reader_visit_fn *visit, void *context, int *ret_stop)
{
    struct symbol symbol;
    bool is_trampoline;
    for (size_t done = 0; done < question->count;) {
        int err = receive(reader, question, PACKET_SYMBOLS);
        struct bytes body = packet_bytes(&reader->connection.packet);
        uint64_t count = err ? 0 : packet_number(&body);
        if (!err && (!count || count > question->count - done))
            err = -EPROTO;
        for (; !err && count; count--, done++) {
            err = take_symbol(&body, &symbol, &is_trampoline);
            if (!err && !*ret_stop)
                *ret_stop = visit(context, question->addresses[done], &symbol, is_trampoline);
        }
        if (err)
            return err;
    }
    return 0;
}

static int ask(struct reader *reader, const struct reader_question *question,
               reader_visit_fn *visit, void *context, int *ret_stop)
{
    int err = start(reader);
    if (!err)
        err = send_module(reader, question->module);
    if (!err)
        err = send_addresses(reader, question);
    if (!err)
        err = await_opened(reader, question);
    return err ? err : receive_symbols(reader, question, visit, context, ret_stop);
}

static const struct failed_module *find_failed(const struct reader *reader,
                                               const struct module *module)
{
    for (size_t i = 0; i < FAILED_MAX; i++) {
        if (reader->failed[i].serial == module->serial)
            return &reader->failed[i];
    }
    return NULL;
}

/* The reader that failed is ended with the next start. */
static const char *note_failed(struct reader *reader, const struct module *module, int err)
{
    const char *why = connection_why(err);
    connection_drop(&reader->connection);
    reader->failed[reader->failures++ % FAILED_MAX] = (struct failed_module){module->serial, why};
    return why;
}

int reader_ask(struct reader *reader, const struct reader_question *question,
               reader_visit_fn *visit, void *context, const char **ret_why)
{
    const struct failed_module *failed = find_failed(reader, question->module);
    int stop = 0;
    if (failed) {
        *ret_why = failed->why;
        return -ENOEXEC;
    }
    int err = ask(reader, question, visit, context, &stop);
    *ret_why = reader->why;
    if (!err || err == -ENOEXEC || err == -ENOMEM)
        return err ? err : stop;
    *ret_why = note_failed(reader, question->module, err);
    return -ENOEXEC;
}

static int ask_for_data(struct reader *reader, const struct module *module, enum packet_kind kind,
                        uint64_t address)
{
    const struct reader_question question = {.module = module};
    struct buffer body = {0};
    packet_put_number(&body, address);
    int err = start(reader);
    if (!err)
        err = send_module(reader, module);
    if (!err)
        err = packet_send(reader->connection.socket, kind, &body, -1);
    buffer_free(&body);
    return err ? err : receive(reader, &question, PACKET_FOUND);
}

static int find_data(struct reader *reader, const struct module *module, enum packet_kind kind,
                     uint64_t address, char **ret_name, uint64_t *ret_offset)
{
    if (find_failed(reader, module))
        return -ENOENT;
    int err = ask_for_data(reader, module, kind, address);
    if (err) {
        note_failed(reader, module, err);
        return -ENOENT;
    }
    struct bytes body = packet_bytes(&reader->connection.packet);
    err = (int)packet_number(&body);
    const char *name = take_text(&body);
    *ret_offset = packet_number(&body);
    if (err || body.failed || !name)
        return -ENOENT;
    *ret_name = strdup(name);
    return *ret_name ? 0 : -ENOMEM;
}

int reader_find_variable(struct reader *reader, const struct module *module, uint64_t address,
                         char **ret_name, uint64_t *ret_offset)
{
    return find_data(reader, module, PACKET_VARIABLE, address, ret_name, ret_offset);
}

int reader_find_class(struct reader *reader, const struct module *module, uint64_t address,
                      char **ret_name)
{
    uint64_t offset;
    return find_data(reader, module, PACKET_CLASS, address, ret_name, &offset);
}

char *reader_show(struct reader *reader, const char *name, enum fgprof_names names)
{
    struct buffer body = {0};
    if (reader->cannot_show)
        return NULL;
    packet_put_number(&body, names);
    packet_put_text(&body, name);
    int err = start(reader);
    if (!err)
        err = packet_send(reader->connection.socket, PACKET_SHOW, &body, -1);
    buffer_free(&body);
    struct packet *packet = &reader->connection.packet;
    if (!err)
        err = packet_receive(reader->connection.socket, reader->connection.until_ns, packet);
    if (!err && packet->fd >= 0)
        close(packet->fd);
    if (!err && (packet->kind != PACKET_SHOWN || packet->fd >= 0))
        err = -EPROTO;
    if (err) {
        connection_drop(&reader->connection);
        reader->cannot_show = true;
        return NULL;
    }
    struct bytes answer = packet_bytes(packet);
    const char *shown = take_text(&answer);
    return shown && !answer.failed ? strdup(shown) : NULL;
}
