/* Machine code, which is followed to find frames. The input is where in it a frame is, and code. */
#include "input.h"
#include "unwind/code/calls.h"
#include "unwind/code/code_frame.h"
#include "unwind/code/prologue.h"
#include "unwind/signal_frame.h"

static void look_at_calls(struct input code)
{
    uint64_t target;
    uint8_t bytes[16] = {0};
    memcpy(bytes, code.at, code.bytes < sizeof bytes ? code.bytes : sizeof bytes);
    uint8_t *before = copy_of((struct input){bytes, CALL_BYTES_MAX}, 0);
    uint8_t *after = copy_of((struct input){bytes, THREAD_END_BYTES}, 0);
    uint8_t *signal_return = copy_of((struct input){bytes, SIGNAL_RETURN_BYTES}, 0);
    call_before(before, UINT64_MAX, &target);
    call_is_last(after);
    call_is_to_stub(after);
    signal_return_is_at(signal_return);
    free(before);
    free(after);
    free(signal_return);
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
    return 0;
}
