/* Machine code, which is followed to find frames. The input is a frame's position in the code, and
 * the code. */
#include "open_module.h"
#include "elf/stubs.h"
#include "unwind/code/calls.h"
#include "unwind/code/code_end.h"
#include "unwind/code/code_frame.h"
#include "unwind/code/code_return.h"
#include "unwind/code/prologue.h"
#include "unwind/signal_frame.h"

static void look_at_calls(struct input code)
{
    uint64_t target, slot;
    uint8_t bytes[16] = {0};
    memcpy(bytes, code.at, code.bytes < sizeof bytes ? code.bytes : sizeof bytes);
    uint8_t *before = copy_of((struct input){bytes, CALL_BYTES_MAX}, 0);
    uint8_t *after = copy_of((struct input){bytes, THREAD_END_BYTES}, 0);
    uint8_t *stub = copy_of((struct input){bytes, STUB_BYTES}, 0);
    uint8_t *signal_return = copy_of((struct input){bytes, SIGNAL_RETURN_BYTES}, 0);
    call_before(before, UINT64_MAX, &target);
    call_is_last(after);
    stub_slot(stub, STUB_BYTES, UINT64_MAX, &slot);
    signal_return_is_at(signal_return);
    free(before);
    free(after);
    free(stub);
    free(signal_return);
}

/* The code is the only segment of a module, at address 0. */
static void follow_in_module(struct input code, uint64_t at)
{
    struct modules modules = {0};
    struct module *module = put_module(&modules, code);
    struct code_return found;
    module->segments = calloc(1, sizeof *module->segments);
    must(module->segments != NULL);
    module->segments[0] =
        (struct segment){.file_bytes = code.bytes, .memory_bytes = code.bytes, .executable = true};
    module->segment_count = 1;
    bool is_found = code_return_find(module, at, at & 1, &found);
    must(!is_found || (at < code.bytes && found.sp.kind != CODE_VALUE_UNKNOWN &&
                       found.sp.kind != CODE_VALUE_FAR && found.sp.register_number < 16 &&
                       found.frame_pointer.register_number < 16));
    must(code_end_of_function(module, at, code.bytes) <= code.bytes || at > code.bytes);
    modules_free(&modules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    uint64_t candidates[PROLOGUE_CANDIDATES_MAX];
    size_t at = take_number(&input, 2);
    if (input.bytes)
        look_at_calls(input);
    uint8_t *code = copy_of(input, 0);
    struct code_frame frame = code_frame_at(code, input.bytes, at);
    must(frame.kind == CODE_FRAME_UNKNOWN || at < input.bytes);
    must(prologue_frame_bytes(code, input.bytes, candidates) <= PROLOGUE_CANDIDATES_MAX);
    free(code);
    follow_in_module(input, at);
    return 0;
}
