#include "proc/maps.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel writes a line feed in a path as \012 (seq_file_path in fs/proc/task_mmu.c). */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        if (strncmp(from, "\\012", 4) == 0) {
            *to = '\n';
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Takes a number, and the character behind it. */
static bool take_number(char **text, int base, char separator, uint64_t *ret_number)
{
    char *end;
    *ret_number = strtoull(*text, &end, base);
    bool is_whole = end > *text && *end == separator;
    *text = end + is_whole;
    return is_whole;
}

/* Not by sscanf(3): it takes three times as long, which matters where many programs start. */
bool maps_parse_line(char *line, struct maps_entry *ret_entry)
{
    static const char deleted[] = " (deleted)";
    struct maps_entry entry = {0};
    if (!take_number(&line, 16, '-', &entry.start) || !take_number(&line, 16, ' ', &entry.end) ||
        entry.end <= entry.start || strcspn(line, " ") != 4 || line[4] != ' ')
        return false;
    const char *permissions = line;
    uint64_t dev_major, dev_minor;
    line += 5;
    if (!take_number(&line, 16, ' ', &entry.offset) || !take_number(&line, 16, ':', &dev_major) ||
        !take_number(&line, 16, ' ', &dev_minor))
        return false;
    entry.dev_major = (unsigned)dev_major;
    entry.dev_minor = (unsigned)dev_minor;
    char *path;
    entry.inode = strtoull(line, &path, 10);
    if (path == line)
        return false;
    path += strspn(path, " ");
    entry.readable = permissions[0] == 'r';
    entry.writable = permissions[1] == 'w';
    entry.executable = permissions[2] == 'x';
    size_t length = strlen(path);
    if (entry.inode && length > sizeof deleted - 1 &&
        strcmp(path + length - (sizeof deleted - 1), deleted) == 0) {
        path[length - (sizeof deleted - 1)] = '\0';
        entry.deleted = true;
    }
    unescape(path);
    entry.path = path;
    *ret_entry = entry;
    return true;
}

/* Hands the whole lines of `text` to `visit`. *ret_used is the number of bytes in them. */
static int visit_lines(char *text, size_t length, maps_visit_fn *visit, void *context,
                       size_t *ret_used)
{
    char *line = text, *end;
    int result = 0;
    while (!result && (end = memchr(line, '\n', length - (size_t)(line - text)))) {
        struct maps_entry entry;
        *end = '\0';
        if (maps_parse_line(line, &entry))
            result = visit(context, &entry);
        line = end + 1;
    }
    *ret_used = (size_t)(line - text);
    return result;
}

bool maps_entry_is_at(const struct maps_entry *entry, const char *path)
{
    size_t length = strlen(entry->path);
    return strncmp(path, entry->path, length) == 0 &&
           strcmp(path + length, entry->deleted ? " (deleted)" : "") == 0;
}

int maps_read(int fd, maps_visit_fn *visit, void *context)
{
    char *text = NULL;
    size_t capacity = 0, length = 0, used;
    int result = 0;
    off_t offset = 0;
    for (;;) {
        if (array_reserve(&text, &capacity, length + 16384)) {
            result = -ENOMEM;
            break;
        }
        ssize_t got = pread(fd, text + length, capacity - length, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            result = -errno;
        if (got <= 0)
            break;
        offset += got;
        length += (size_t)got;
        result = visit_lines(text, length, visit, context, &used);
        if (result)
            break;
        length -= used;
        memmove(text, text + used, length);
    }
    free(text);
    return result;
}
