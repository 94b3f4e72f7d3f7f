#include "cli/push/spool_file.h"
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES_MAX 16384
#define BODY_BYTES_MAX (1u << 30)
#define FIRST_LINE "fgprof-c push 1"

/* Those that are sent, and no other, may stand in a file. */
static const char *const types[] = {
    BODY_CONNECT,
    BODY_PPROF,
    BODY_OTLP,
    BODY_FORM,
};

/* Prints the head, as snprintf(3) does. */
static int print_head(char *text, size_t text_bytes, const char *to, const struct body *body)
{
    return snprintf(text, text_bytes,
                    FIRST_LINE "\nto %s\ntype %s\ngzip %d\nquery %s\nbody %zu\n\n", to, body->type,
                    body->is_gzip, body->query ? body->query : "", body->length);
}

uint64_t spool_file_bytes(const char *to, const struct body *body)
{
    return (uint64_t)print_head(NULL, 0, to, body) + body->length;
}

static int write_to(int fd, const char *to, const struct body *body)
{
    char head[HEAD_BYTES_MAX + 1];
    int length = print_head(head, sizeof head, to, body);
    int err = length <= HEAD_BYTES_MAX ? write_all(fd, head, (size_t)length) : -EMSGSIZE;
    return err ? err : write_all(fd, body->bytes, body->length);
}

int spool_file_write(int directory_fd, const char *name, const char *to, const struct body *body)
{
    char beside[80];
    snprintf(beside, sizeof beside, ".%s", name);
    int fd = openat(directory_fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    S_IRUSR | S_IWUSR);
    if (fd < 0)
        return -errno;
    int err = write_to(fd, to, body);
    if (close(fd) && !err)
        err = -errno;
    if (!err && renameat(directory_fd, beside, directory_fd, name))
        err = -errno;
    if (err)
        unlinkat(directory_fd, beside, 0);
    return err;
}

/* The rest of the next line, if it begins with the word; NULL: it does not. */
static char *line_of(char **rest, const char *word)
{
    char *line = *rest, *end = line ? strchr(line, '\n') : NULL;
    size_t length = strlen(word);
    if (!end || strncmp(line, word, length) != 0)
        return NULL;
    *end = '\0';
    *rest = end + 1;
    return line + length;
}

static bool is_query(const char *text)
{
    for (; *text; text++) {
        if (*text <= 0x20 || *text >= 0x7f || *text == '#')
            return false;
    }
    return true;
}

struct head {
    char text[HEAD_BYTES_MAX + 1];
    const char *to, *type, *query;
    bool is_gzip;
    size_t length; /* of the head */
    size_t body_bytes;
};

static int parse(struct head *head, uint64_t file_bytes)
{
    char *rest = head->text, *end;
    char *first = line_of(&rest, FIRST_LINE), *to = line_of(&rest, "to "),
         *type = line_of(&rest, "type "), *gzip = line_of(&rest, "gzip "),
         *query = line_of(&rest, "query "), *body = line_of(&rest, "body "),
         *last = line_of(&rest, "");
    if (!first || !to || !type || !gzip || !query || !body || !last || *first || *last ||
        !is_query(query) || strspn(body, "0123456789") != strlen(body) || !*body)
        return -EBADMSG;
    errno = 0;
    unsigned long long bytes = strtoull(body, &end, 10);
    head->type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(type, types[i]) == 0)
            head->type = types[i];
    }
    head->length = (size_t)(rest - head->text);
    head->body_bytes = (size_t)bytes;
    head->to = to;
    head->query = query;
    head->is_gzip = strcmp(gzip, "1") == 0;
    return !errno && head->type && bytes <= BODY_BYTES_MAX && head->length + bytes == file_bytes
               ? 0
               : -EBADMSG;
}

/* Returns an open file, or a negative errno. */
static int open_head(int directory_fd, const char *name, struct head *head)
{
    struct stat status;
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int err = fstat(fd, &status) ? -errno : S_ISREG(status.st_mode) ? 0 : -EBADMSG;
    ssize_t got = err ? 0 : pread(fd, head->text, HEAD_BYTES_MAX, 0);
    if (!err)
        err = got < 0 ? -errno : 0;
    if (!err) {
        head->text[got] = '\0';
        err = parse(head, (uint64_t)status.st_size);
    }
    if (!err)
        return fd;
    close(fd);
    return err;
}

int spool_file_find(int directory_fd, const char *name, struct spool_file *ret_file)
{
    struct head *head = malloc(sizeof *head);
    if (!head)
        return -ENOMEM;
    int fd = open_head(directory_fd, name, head);
    if (fd >= 0) {
        snprintf(ret_file->to, sizeof ret_file->to, "%s", head->to);
        ret_file->bytes = head->length + head->body_bytes;
        close(fd);
    }
    free(head);
    return fd < 0 ? fd : 0;
}

static int read_body(int fd, const struct head *head, struct body *body)
{
    body->bytes = malloc(head->body_bytes + 1);
    body->query = *head->query ? strdup(head->query) : NULL;
    body->type = head->type;
    body->is_gzip = head->is_gzip;
    if (!body->bytes || (*head->query && !body->query))
        return -ENOMEM;
    while (body->length < head->body_bytes) {
        ssize_t got = pread(fd, body->bytes + body->length, head->body_bytes - body->length,
                            (off_t)(head->length + body->length));
        if (got <= 0)
            return got < 0 ? -errno : -EBADMSG;
        body->length += (size_t)got;
    }
    return 0;
}

int spool_file_read(int directory_fd, const char *name, struct body *ret_body)
{
    struct head *head = malloc(sizeof *head);
    *ret_body = (struct body){0};
    if (!head)
        return -ENOMEM;
    int fd = open_head(directory_fd, name, head);
    int err = fd < 0 ? fd : read_body(fd, head, ret_body);
    if (err)
        body_free(ret_body);
    if (fd >= 0)
        close(fd);
    free(head);
    return err;
}
