/* What the process that reads perf maps and jitdumps may send: arbitrary bytes, which are then
 * applied. */
#include "input.h"
#include "jit/announce.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct jit_code code;
    char *copy = copy_of((struct input){data, bytes}, 0);
    const uint8_t *begin = (const uint8_t *)copy;
    must(jit_code_init(&code) == 0);
    int err = announced_take((struct bytes){begin, begin + bytes, false}, &code);
    must(err == 0 || err == -EPROTO);
    must(jit_code_prepare(&code) == 0 && jit_code_apply(&code) == 0);
    for (size_t i = 0; i < code.ranges.count; i++) {
        const struct jit_range *range = &code.ranges.items[i];
        must(range->start < range->end && (i == 0 || range[-1].end <= range->start));
        must(range->symbol < code.symbol_count);
        jit_code_line(&code, &code.symbols[range->symbol], range->start);
    }
    jit_code_free(&code);
    free(copy);
    return 0;
}
