#include "profile/trampoline.h"
#include "unwind/signal_frame.h"

bool trampoline_is_at(struct module *module, uint64_t address)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    return module_read(module, address, code, sizeof code) && signal_return_is_at(code);
}

int trampoline_name(struct fgprof_profile *profile, uint32_t location, const char *symbol)
{
    struct profile_line line = {0};
    /* pprof removes what is in <> from a name that equals its symbol. */
    int err = profile_add_function(profile, "<signal handler called>", symbol, "", &line.function);
    return err ? err : profile_set_lines(profile, location, &line, 1);
}
