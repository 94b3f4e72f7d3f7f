#include "jit/perf_map.h"

#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes a number and the blanks after it off the line. */
static bool take_hex(const char **line, const char *end, uint64_t *ret_number)
{
    const char *at = *line;
    uint64_t number = 0;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    const char *digits = at;
    for (; at < end && hex_digit(*at) >= 0; at++) {
        if (number >> 60)
            return false;
        number = number << 4 | (uint64_t)hex_digit(*at);
    }
    if (at == digits || at == end || !is_blank(*at))
        return false;
    while (at < end && is_blank(*at))
        at++;
    *line = at;
    *ret_number = number;
    return true;
}

bool perf_map_parse_line(const char *line, size_t bytes, struct perf_map_entry *ret_entry)
{
    struct perf_map_entry entry;
    const char *end = line + bytes;
    if (bytes && end[-1] == '\r')
        end--;
    if (!take_hex(&line, end, &entry.start) || !take_hex(&line, end, &entry.size) || line == end)
        return false;
    if (!entry.size || entry.size > UINT64_MAX - entry.start)
        return false;
    entry.name = line;
    entry.name_bytes = (size_t)(end - line);
    *ret_entry = entry;
    return true;
}

/* A line that does not end within the limit is cut there, and its rest is skipped. */
static size_t line_bytes(const char *line, size_t bytes, bool *ret_is_cut)
{
    size_t most = bytes < PERF_MAP_LINE_MAX ? bytes : PERF_MAP_LINE_MAX;
    const char *end = memchr(line, '\n', most);
    *ret_is_cut = !end;
    return end ? (size_t)(end - line) : most;
}

size_t perf_map_read(struct perf_map *map, const char *text, size_t bytes, perf_map_visit_fn *visit,
                     void *context)
{
    size_t at = 0;
    while (at < bytes) {
        struct perf_map_entry entry;
        bool is_cut;
        if (map->is_in_long_line) {
            const char *end = memchr(text + at, '\n', bytes - at);
            map->is_in_long_line = !end;
            at = end ? (size_t)(end - text) + 1 : bytes;
            continue;
        }
        size_t length = line_bytes(text + at, bytes - at, &is_cut);
        if (is_cut && length < PERF_MAP_LINE_MAX)
            break;
        if (perf_map_parse_line(text + at, length, &entry))
            visit(context, &entry);
        map->is_in_long_line = is_cut;
        at += length + !is_cut;
    }
    return at;
}
