#include "reader/naming.h"
#include "elf/elf_file.h"
#include "reader/asked_files.h"
#include "reader/module_packet.h"
#include "symbol/names/demangle.h"
#include "symbol/symbols.h"
#include "symbol/variables.h"
#include "unwind/signal_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Several times what naming a program of 1.5 GB of debug information takes. */
#define MEMORY_BYTES_MAX ((uint64_t)16 << 30)

/* Symbols are sent when they have this many bytes. */
#define SYMBOLS_BYTES 65536u

/* Names to show are kept until there are this many: programs may come and go for long. */
#define SHOWN_MAX 200000

struct open_module {
    struct module *module;   /* NULL: none */
    struct symbols *symbols; /* NULL: not read yet, or they can't be */
    int error;               /* why they can't be read, */
    const char *why;         /* and in words; NULL: not known yet */
    uint64_t used;           /* when, by a counter */
};

struct naming {
    int socket;
    struct asked_files asked;
    struct open_module modules[OPEN_MODULES_MAX];
    struct open_module *current;
    uint64_t used;
    struct shown_names shown;
    struct buffer answer;
};

static void close_module(struct open_module *opened)
{
    symbols_close(opened->symbols);
    module_free(opened->module);
    *opened = (struct open_module){0};
}

/* The module's place, or that of the one that was not used for longest. */
static struct open_module *place_of(struct naming *naming, uint32_t serial)
{
    struct open_module *oldest = &naming->modules[0];
    for (size_t i = 0; i < OPEN_MODULES_MAX; i++) {
        struct open_module *opened = &naming->modules[i];
        if (opened->module && opened->module->serial == serial)
            return opened;
        if (opened->used < oldest->used)
            oldest = opened;
    }
    close_module(oldest);
    return oldest;
}

static void open_module(struct naming *naming, const struct packet *packet)
{
    struct bytes body = packet_bytes(packet);
    uint32_t serial = (uint32_t)packet_number(&body);
    struct open_module *opened = place_of(naming, serial);
    opened->used = ++naming->used;
    naming->current = opened;
    if (opened->module) {
        if (packet->fd >= 0)
            close(packet->fd);
        return;
    }
    int err = module_packet_take(&body, packet->fd, &opened->module);
    /* symbols_open says why an ELF file can't be used. */
    opened->error = err == -ENOEXEC ? 0 : err;
    if (opened->module)
        opened->module->serial = serial;
}

static int open_symbols(struct naming *naming)
{
    struct open_module *opened = naming->current;
    if (!opened->symbols && !opened->error)
        opened->error =
            symbols_open(opened->module, &naming->asked.files, &opened->symbols, &opened->why);
    naming->answer.length = 0;
    packet_put_number(&naming->answer, (uint64_t)(int64_t)opened->error);
    packet_put_text(&naming->answer, opened->why);
    return packet_send(naming->socket, PACKET_OPENED, &naming->answer, -1);
}

/* Whether signal handlers return to this address of the module. Most builds of libc have no symbol
 * for it. Nothing calls it: if it is in a stack, the kernel called the handler. */
static bool trampoline_is_at(struct module *module, uint64_t address)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    return module_read(module, address, code, sizeof code) && signal_return_is_at(code);
}

static void put_cut(struct buffer *answer, const char *text)
{
    packet_put_cut_text(answer, text, READER_TEXT_MAX);
}

static void put_symbol(struct naming *naming, uint64_t address, enum fgprof_names names)
{
    struct open_module *opened = naming->current;
    struct buffer *answer = &naming->answer;
    struct symbol symbol;
    symbols_find(opened->symbols, address, &symbol);
    packet_put_number(answer, symbol.line_count);
    packet_put_number(answer, symbol.function_offset);
    packet_put_number(answer, symbol.has_debug_info);
    packet_put_number(answer, trampoline_is_at(opened->module, address));
    for (size_t i = 0; i < symbol.line_count; i++) {
        const struct symbol_line *line = &symbol.lines[i];
        put_cut(answer, line->name);
        put_cut(answer, shown_name(&naming->shown, line->name, names));
        put_cut(answer, line->file);
        packet_put_number(answer, line->line);
        packet_put_number(answer, line->is_inlined);
    }
}

static int send_symbols(struct naming *naming, uint64_t count)
{
    memcpy(naming->answer.bytes, &count, sizeof count);
    return packet_send(naming->socket, PACKET_SYMBOLS, &naming->answer, -1);
}

static int name_addresses(struct naming *naming, struct bytes body)
{
    enum fgprof_names names = (enum fgprof_names)packet_number(&body);
    uint64_t left = packet_number(&body);
    int err = open_symbols(naming);
    if (!naming->current->symbols)
        return err;
    if (naming->shown.count > SHOWN_MAX)
        shown_names_free(&naming->shown);
    while (left && !err) {
        uint64_t count = 0;
        naming->answer.length = 0;
        packet_put_number(&naming->answer, 0);
        for (; left && naming->answer.length < SYMBOLS_BYTES; left--, count++)
            put_symbol(naming, packet_number(&body), names);
        err = naming->answer.error ? naming->answer.error : send_symbols(naming, count);
    }
    return err;
}

static int find_data(struct naming *naming, enum packet_kind kind, struct bytes body)
{
    const struct module *module = naming->current->module;
    uint64_t address = packet_number(&body), offset = 0;
    char *name = NULL;
    int err = naming->current->error || !module->is_readable ? -ENOENT
              : kind == PACKET_CLASS                         ? class_find(module, address, &name)
                                     : variable_find(module, address, &name, &offset);
    naming->answer.length = 0;
    packet_put_number(&naming->answer, (uint64_t)(int64_t)err);
    put_cut(&naming->answer, err ? NULL : name);
    packet_put_number(&naming->answer, offset);
    if (!err)
        free(name);
    return packet_send(naming->socket, PACKET_FOUND, &naming->answer, -1);
}

static int show_name(struct naming *naming, struct bytes body)
{
    enum fgprof_names names = (enum fgprof_names)packet_number(&body);
    const char *name = packet_text(&body);
    char *shown = name ? demangle(name, names) : NULL;
    naming->answer.length = 0;
    put_cut(&naming->answer, shown);
    free(shown);
    return packet_send(naming->socket, PACKET_SHOWN, &naming->answer, -1);
}

static int answer(struct naming *naming, const struct packet *packet)
{
    if (packet->kind == PACKET_SHOW)
        return show_name(naming, packet_bytes(packet));
    if (packet->kind == PACKET_OPEN) {
        open_module(naming, packet);
        return 0;
    }
    if (!naming->current)
        return -EPROTO;
    return packet->kind == PACKET_NAME ? name_addresses(naming, packet_bytes(packet))
                                       : find_data(naming, packet->kind, packet_bytes(packet));
}

static void serve(int socket)
{
    struct naming naming = {.socket = socket};
    struct packet packet = {0};
    int err = 0;
    asked_files_init(&naming.asked, socket);
    while (!err && packet_receive(socket, 0, &packet) == 0)
        err = answer(&naming, &packet);
    for (size_t i = 0; i < OPEN_MODULES_MAX; i++)
        close_module(&naming.modules[i]);
    shown_names_free(&naming.shown);
    buffer_free(&naming.answer);
    buffer_free(&packet.body);
}

const struct helper_role naming_role = {READER_NAME, serve, MEMORY_BYTES_MAX, SANDBOX_READS};
