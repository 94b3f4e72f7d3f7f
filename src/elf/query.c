#include "elf/query.h"

#include <errno.h>

int query_ask(struct queries *queries, struct module *module, const struct query *query,
              union query_answer *ret_answer)
{
    bool can_ask = queries && queries->ask && module->is_readable;
    int err = can_ask ? queries->ask(queries, module, query, ret_answer) : -ENOENT;
    return err == -ENOEXEC ? -ENOENT : err;
}

int query_symbol(struct queries *queries, struct module *module, const char *name,
                 unsigned char type, struct module_part *ret_symbol)
{
    const struct query symbol = {.kind = QUERY_SYMBOL, .name = name, .type = type};
    union query_answer answer;
    int err = query_ask(queries, module, &symbol, &answer);
    if (!err)
        *ret_symbol = answer.part;
    return err;
}
