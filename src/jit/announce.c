#include "jit/announce.h"

#include <errno.h>

enum announcement { ANNOUNCE_SYMBOL, ANNOUNCE_LINE, ANNOUNCE_ID, ANNOUNCE_MOVE };

#define SAME_FILE UINT32_MAX
/* One more than is kept, so that it can be cut between characters. */
#define TEXT_BYTES_MAX (JIT_NAME_MAX + 1)

static void put(struct buffer *to, uint64_t number, size_t bytes)
{
    buffer_write(to, &number, bytes);
}

static void put_text(struct buffer *to, const char *text, size_t bytes)
{
    bytes = bytes < TEXT_BYTES_MAX ? bytes : TEXT_BYTES_MAX;
    put(to, bytes, sizeof(uint32_t));
    buffer_write(to, text, bytes);
}

void announce_symbol(struct buffer *to, uint64_t start, uint64_t size, const char *name,
                     size_t name_bytes, uint32_t line_count)
{
    put(to, ANNOUNCE_SYMBOL, 1);
    put(to, start, sizeof start);
    put(to, size, sizeof size);
    put(to, line_count, sizeof line_count);
    put_text(to, name, name_bytes);
}

void announce_line(struct buffer *to, uint32_t offset, const char *file, size_t file_bytes,
                   uint32_t line)
{
    put(to, ANNOUNCE_LINE, 1);
    put(to, offset, sizeof offset);
    put(to, line, sizeof line);
    if (file)
        put_text(to, file, file_bytes);
    else
        put(to, SAME_FILE, sizeof(uint32_t));
}

void announce_id(struct buffer *to, uint64_t id)
{
    put(to, ANNOUNCE_ID, 1);
    put(to, id, sizeof id);
}

void announce_move(struct buffer *to, uint64_t id, uint64_t start)
{
    put(to, ANNOUNCE_MOVE, 1);
    put(to, id, sizeof id);
    put(to, start, sizeof start);
}

static uint32_t take_32(struct bytes *from)
{
    return (uint32_t)bytes_unsigned(from, sizeof(uint32_t));
}

static uint64_t take_64(struct bytes *from)
{
    return bytes_unsigned(from, sizeof(uint64_t));
}

struct text {
    const char *at;
    uint32_t bytes;
};

static struct text take_text(struct bytes *from, uint32_t bytes)
{
    const struct text text = {(const char *)from->at, bytes};
    if (bytes > TEXT_BYTES_MAX)
        from->failed = true;
    bytes_skip(from, bytes);
    return text;
}

static int take_symbol(struct bytes *from, struct jit_code *code)
{
    uint64_t start = take_64(from), size = take_64(from);
    uint32_t line_count = take_32(from);
    const struct text name = take_text(from, take_32(from));
    if (from->failed || size > UINT64_MAX - start || line_count > code->line_count)
        return -EPROTO;
    return jit_code_add(code, start, size, name.at, name.bytes, line_count);
}

/* `file`: of the line before. */
static int take_line(struct bytes *from, struct jit_code *code, struct text *file)
{
    uint32_t offset = take_32(from), line = take_32(from), bytes = take_32(from);
    if (bytes != SAME_FILE)
        *file = take_text(from, bytes);
    if (from->failed || !file->at)
        return -EPROTO;
    return jit_code_add_line(code, offset, file->at, file->bytes, line);
}

int announced_take(struct bytes announced, struct jit_code *code)
{
    struct text file = {0};
    int err = 0;
    while (!err && bytes_left(&announced)) {
        uint64_t id;
        switch ((enum announcement)bytes_unsigned(&announced, 1)) {
        case ANNOUNCE_SYMBOL:
            err = take_symbol(&announced, code);
            break;
        case ANNOUNCE_LINE:
            err = take_line(&announced, code, &file);
            break;
        case ANNOUNCE_ID:
            id = take_64(&announced);
            err = announced.failed ? -EPROTO : jit_code_identify(code, id);
            break;
        case ANNOUNCE_MOVE:
            id = take_64(&announced);
            uint64_t start = take_64(&announced);
            err = announced.failed ? -EPROTO : jit_code_move(code, id, start);
            break;
        default:
            err = -EPROTO;
        }
    }
    return err;
}
