#include "unwind/code/last_call.h"
#include "base/text.h"
#include "unwind/code/calls.h"
#include "elf/functions.h"
#include "elf/stubs.h"

/* The maximum distance from a program's entry to the call in it. The entry has no caller. */
#define ENTRY_BYTES 64

/* Declared noreturn in the headers of glibc or musl, or in the Itanium C++ ABI. */
static const char *const never_return[] = {
    "_Exit",         "_Unwind_Resume", "_ZSt9terminatev",
    "__assert_fail", "__chk_fail",     "__cxa_rethrow",
    "__cxa_throw",   "__longjmp_chk",  "__stack_chk_fail",
    "_exit",         "_longjmp",       "abort",
    "err",           "errx",           "exit",
    "longjmp",       "pthread_exit",   "quick_exit",
    "siglongjmp",
};

static bool never_returns(struct module *module, uint64_t function)
{
    const struct stub *stub = stubs_find(module, function);
    return stub && stub->name && text_is_any(stub->name, never_return, COUNT_OF(never_return));
}

bool call_is_known_last(struct module *module, uint64_t after_call)
{
    uint8_t before[CALL_BYTES_MAX], after[THREAD_END_BYTES];
    struct function_range function;
    uint64_t target;
    return (module_read(module, after_call, after, sizeof after) && call_is_last(after)) ||
           after_call - module->entry_address < ENTRY_BYTES ||
           (functions_find(module, after_call, &function) && function.start == after_call) ||
           (module_read(module, after_call - sizeof before, before, sizeof before) &&
            call_before(before, after_call, &target) == CALL_DIRECT &&
            never_returns(module, target));
}
