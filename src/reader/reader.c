#include "reader/reader.h"
#include "reader/asked_files.h"
#include "reader/connection.h"
#include "reader/module_packet.h"
#include "reader/naming.h"
#include "symbol/debug_file.h"
#include "symbol/names/demangle.h"

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

/* Shown names are kept up to this size: programs that generate code may come and go for long. */
#define SHOWN_BYTES_MAX (16u << 20)
/* After as many names that made the reader crash, or one that took as long as a question may, no
 * others are tried. */
#define SHOW_FAILURES_MAX 16

struct reader {
    struct connection connection;
    struct failed_module failed[FAILED_MAX];
    size_t failures; /* how many in total */
    char why[WHY_BYTES];
    struct shown_names shown;    /* the names that were asked for with reader_show */
    enum fgprof_names shown_how; /* and how they are shown */
    size_t shown_bytes;          /* of what they are shown as */
    unsigned show_failures;
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
    shown_names_free(&reader->shown);
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
    int err = send_module(reader, question->module);
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
    if (start(reader)) { /* which is no module's fault */
        *ret_why = "no process to read it could be started";
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
    int err = send_module(reader, module);
    if (!err)
        err = packet_send(reader->connection.socket, kind, &body, -1);
    buffer_free(&body);
    return err ? err : receive(reader, &question, PACKET_FOUND);
}

static int find_data(struct reader *reader, const struct module *module, enum packet_kind kind,
                     uint64_t address, char **ret_name, uint64_t *ret_offset)
{
    if (find_failed(reader, module) || start(reader))
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

/* ---- Names that a process gives ---- */

/* *ret_shown: NULL is the name itself. Returns 0, -ENOMEM, or why the reader has failed. */
static int ask_to_show(struct reader *reader, const char *name, enum fgprof_names names,
                       char **ret_shown)
{
    struct packet *packet = &reader->connection.packet;
    struct buffer body = {0};
    packet_put_number(&body, names);
    packet_put_text(&body, name);
    int err = packet_send(reader->connection.socket, PACKET_SHOW, &body, -1);
    buffer_free(&body);
    if (!err)
        err = packet_receive(reader->connection.socket, reader->connection.until_ns, packet);
    if (!err && packet->fd >= 0)
        close(packet->fd);
    if (!err && (packet->kind != PACKET_SHOWN || packet->fd >= 0))
        err = -EPROTO;
    if (err)
        return err;
    struct bytes answer = packet_bytes(packet);
    const char *shown = take_text(&answer);
    if (answer.failed)
        return -EPROTO;
    *ret_shown = shown ? strdup(shown) : NULL;
    return shown && !*ret_shown ? -ENOMEM : 0;
}

static void forget_shown(struct reader *reader, enum fgprof_names names)
{
    shown_names_free(&reader->shown);
    reader->shown_how = names;
    reader->shown_bytes = 0;
    reader->show_failures = 0;
}

/* Takes over `shown`. Returns it, or NULL if there is no memory to keep it. */
static const char *keep_shown(struct reader *reader, const char *name, char *shown)
{
    struct shown_names *known = &reader->shown;
    uint32_t number;
    if (array_reserve(&known->shown, &known->capacity, known->count + 1) ||
        strings_intern(&known->symbols, name, &number)) {
        free(shown);
        return NULL;
    }
    reader->shown_bytes += shown ? strlen(shown) + 1 : 0;
    known->shown[known->count++] = shown;
    return shown;
}

const char *reader_show(struct reader *reader, const char *name, enum fgprof_names names)
{
    const struct shown_names *known = &reader->shown;
    uint32_t number;
    char *shown = NULL;
    if (!demangle_may_change(name, names))
        return NULL;
    if (reader->shown_how != names ||
        strings_bytes(&known->symbols) + reader->shown_bytes > SHOWN_BYTES_MAX)
        forget_shown(reader, names);
    if (strings_find(&known->symbols, name, &number))
        return known->shown[number];
    if (reader->show_failures >= SHOW_FAILURES_MAX || start(reader))
        return NULL;
    int err = ask_to_show(reader, name, names, &shown);
    if (err)
        connection_drop(&reader->connection);
    if (err == -ENOMEM)
        return NULL;
    /* A name that made the reader fail is not tried again. */
    reader->show_failures += err == -ETIMEDOUT ? SHOW_FAILURES_MAX : err != 0;
    return keep_shown(reader, name, shown);
}
