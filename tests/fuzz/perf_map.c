/* Perf maps: arbitrary text in two pieces, and the entries are applied in between. The input is the
 * length of the first piece, and the text. */
#include "input.h"
#include "jit/code.h"
#include "jit/perf_map.h"

static void take_in(void *context, const struct perf_map_entry *entry)
{
    must(entry->size > 0 && entry->start + entry->size > entry->start && entry->name_bytes > 0);
    must(!jit_code_add(context, entry->start, entry->size, entry->name, entry->name_bytes, 0));
}

static void check_ranges(const struct jit_code *code)
{
    for (size_t i = 0; i < code->ranges.count; i++) {
        const struct jit_range *range = &code->ranges.items[i];
        must(range->start < range->end && (i == 0 || range[-1].end <= range->start));
        must(jit_code_find(code, range->start) == range->symbol);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    struct perf_map map = {0};
    struct jit_code code;
    size_t first = take_number(&input, 2), done = 0;
    const size_t ends[] = {first < input.bytes ? first : input.bytes, input.bytes};
    must(jit_code_init(&code) == 0);
    for (size_t i = 0; i < 2; i++) {
        char *piece = copy_of((struct input){input.at + done, ends[i] - done}, 0);
        size_t used = perf_map_read(&map, piece, ends[i] - done, take_in, &code);
        must(used <= ends[i] - done);
        free(piece);
        done += used;
        must(jit_code_apply(&code) == 0);
        check_ranges(&code);
    }
    jit_code_free(&code);
    return 0;
}
