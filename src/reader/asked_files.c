#include "reader/asked_files.h"
#include "base/clock.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- In the reader ---- */

/* Returns a descriptor or a negative errno, and the text that came with it, or NULL. */
static int ask_for_file(int socket, enum packet_kind kind, struct buffer *question, char **ret_path)
{
    struct packet packet = {0};
    int err = packet_send(socket, kind, question, -1);
    buffer_free(question);
    if (!err)
        err = packet_receive(socket, 0, &packet);
    if (!err) {
        struct bytes body = packet_bytes(&packet);
        err = (int)packet_number(&body);
        const char *path = packet_text(&body);
        *ret_path = path ? strdup(path) : NULL;
        if (!err)
            err = packet.fd < 0 ? -EPROTO : packet.fd;
    }
    buffer_free(&packet.body);
    return err;
}

static int ask_by_path(struct debug_files *files, const char *path)
{
    struct buffer question = {0};
    char *none = NULL;
    packet_put_text(&question, path);
    int fd = ask_for_file(((struct asked_files *)files)->socket, PACKET_WANTED, &question, &none);
    free(none);
    return fd;
}

static int ask_by_build_id(struct debug_files *files, const unsigned char *build_id, size_t bytes,
                           char **ret_path)
{
    struct buffer question = {0};
    packet_put_number(&question, bytes);
    buffer_write(&question, build_id, bytes);
    return ask_for_file(((struct asked_files *)files)->socket, PACKET_FETCHED, &question, ret_path);
}

void asked_files_init(struct asked_files *asked, int socket)
{
    *asked = (struct asked_files){{ask_by_path, ask_by_build_id}, socket};
}

/* ---- At the other end ---- */

/* The reader may ask for any file, because the paths of split debug information come from the
 * target's files. It gets only ELF files, so that it can't read anything else on this machine. */
static int refuse_others(int fd)
{
    char magic[SELFMAG];
    if (fd < 0)
        return fd;
    if (pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, ELFMAG, SELFMAG) == 0)
        return fd;
    close(fd);
    return -ENOEXEC;
}

static int send_file(struct connection *connection, int fd, const char *path)
{
    struct buffer answer = {0};
    fd = refuse_others(fd);
    packet_put_number(&answer, (uint64_t)(int64_t)(fd < 0 ? fd : 0));
    packet_put_text(&answer, path);
    int err = packet_send(connection->socket, PACKET_FILE, &answer, fd);
    buffer_free(&answer);
    if (fd >= 0)
        close(fd);
    return err;
}

static int open_wanted(struct connection *connection, struct debug_files *files)
{
    struct bytes body = packet_bytes(&connection->packet);
    const char *path = packet_text(&body);
    return path ? send_file(connection, files->open(files, path), NULL) : -EPROTO;
}

static int fetch_wanted(struct connection *connection, struct debug_files *files)
{
    struct bytes body = packet_bytes(&connection->packet);
    uint64_t bytes = packet_number(&body);
    char *path = NULL;
    if (bytes > BUILD_ID_BYTES_MAX || bytes > bytes_left(&body))
        return -EPROTO;
    uint64_t begin_ns = monotonic_ns();
    int fd = files->fetch(files, body.at, bytes, &path);
    connection->until_ns += monotonic_ns() - begin_ns; /* a server's time is not the reader's */
    int err = send_file(connection, fd, path);
    free(path);
    return err;
}

int asked_files_receive(struct connection *connection, enum packet_kind kind,
                        struct debug_files *files)
{
    struct packet *packet = &connection->packet;
    for (;;) {
        int err = packet_receive(connection->socket, connection->until_ns, packet);
        if (!err && packet->fd >= 0)
            close(packet->fd);
        if (err || packet->kind == kind)
            return err;
        err = !files                           ? -EPROTO
              : packet->kind == PACKET_WANTED  ? open_wanted(connection, files)
              : packet->kind == PACKET_FETCHED ? fetch_wanted(connection, files)
                                               : -EPROTO;
        if (err)
            return err;
    }
}
