/* Jitdumps: the input is a file. */
#include "input.h"
#include "jit/code.h"
#include "jit/jitdump.h"

static void take_in(struct jit_code *code, struct jitdump_record *record)
{
    struct jitdump_line line;
    switch (record->kind) {
    case JITDUMP_LOAD:
        must(record->start + record->size >= record->start && record->name_bytes > 0);
        if (jit_code_add(code, record->start, record->size, record->name, record->name_bytes, 0) ==
                0 &&
            code->symbol_count)
            must(jit_code_identify(code, record->id) == 0);
        break;
    case JITDUMP_MOVE:
        jit_code_move(code, record->id, record->start);
        break;
    case JITDUMP_LINES:
        while (jitdump_next_line(record, &line))
            must(memchr(line.file, '\0', line.file_bytes) == NULL);
        break;
    case JITDUMP_OTHER:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    struct jitdump dump = {0};
    struct jitdump_record record;
    struct jit_code code;
    uint64_t used;
    must(jit_code_init(&code) == 0);
    uint8_t *copy = copy_of(input, 0);
    for (size_t at = 0;; at += used) {
        if (jitdump_next(&dump, copy + at, bytes - at, bytes - at, &record, &used) !=
            JITDUMP_RECORD)
            break;
        must(used > 0 && used <= bytes - at);
        take_in(&code, &record);
    }
    free(copy);
    must(jit_code_apply(&code) == 0);
    for (size_t i = 0; i < code.symbol_count; i++)
        jit_code_find(&code, code.symbols[i].start);
    jit_code_free(&code);
    return 0;
}
