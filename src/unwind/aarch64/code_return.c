/* Not written yet. */
#include "unwind/code/code_return.h"

bool code_return_find(struct module *module, uint64_t address, bool is_after_call,
                      struct code_return *ret_return)
{
    (void)module, (void)address, (void)is_after_call, (void)ret_return;
    return false;
}
