#include "symbol/debug_data.h"

#include <lzma.h>
#include <stdlib.h>

#define DECOMPRESSED_BYTES_MAX ((size_t)256 << 20)
#define LZMA_MEMORY_MAX ((uint64_t)128 << 20)

static unsigned char *decompress(const struct slice *slice, size_t *ret_bytes)
{
    for (size_t capacity = slice->count * 8 + 4096; capacity <= DECOMPRESSED_BYTES_MAX;
         capacity *= 4) {
        uint64_t memory_max = LZMA_MEMORY_MAX;
        size_t in_at = 0, out_at = 0;
        unsigned char *out = malloc(capacity);
        if (!out)
            return NULL;
        lzma_ret result = lzma_stream_buffer_decode(&memory_max, 0, NULL, slice->bytes, &in_at,
                                                    slice->count, out, &out_at, capacity);
        if (result == LZMA_OK) {
            *ret_bytes = out_at;
            return out;
        }
        free(out);
        if (result != LZMA_BUF_ERROR)
            break;
    }
    return NULL;
}

bool debug_data_open(struct object *object, struct object *ret_inner)
{
    struct section section;
    struct slice slice = {0};
    size_t bytes;
    if (!object_section(object, ".gnu_debugdata", &section) ||
        slice_read(&slice, &section, 0, section.bytes)) {
        slice_free(&slice);
        return false;
    }
    unsigned char *memory = decompress(&slice, &bytes);
    slice_free(&slice);
    if (!memory || object_open_memory(ret_inner, memory, bytes)) {
        free(memory);
        return false;
    }
    ret_inner->memory = memory;
    return true;
}
