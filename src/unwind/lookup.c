#include "unwind/lookup.h"
#include "unwind/code/calls.h"
#include "unwind/code/rule_code.h"
#include "unwind/go_rule.h"
#include "unwind/signal_frame.h"
#include "elf/functions.h"
#include "elf/go/pclntab.h"

#include <errno.h>
#include <stdlib.h>

static bool begins_signal_return(struct module *module, uint64_t address)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    return module_read(module, address, code, sizeof code) && signal_return_is_at(code);
}

/* The stack pointer is the same at both of its instructions. */
static bool is_signal_return(struct module *module, uint64_t address)
{
    return begins_signal_return(module, address) ||
           begins_signal_return(module, address - signal_return_call_offset);
}

/* Returns 0 or -ENOMEM. */
static int make_rule(struct module *module, uint64_t address, struct cfi_entry *scratch,
                     struct rule *ret_rule)
{
    /* Go's own table says more of its code: what call frame information there is leaves out where
     * the frame pointer is saved. */
    const struct pclntab *go = pclntab_of(module);
    if (go && go_rule_make(go, address, ret_rule))
        return 0;
    int err = cfi_find(module, address, scratch);
    if (err == -ENOMEM)
        return err;
    *ret_rule = err ? (struct rule){.kind = RULE_NONE} : rule_make(scratch, address);
    /* glibc's entry for it begins one byte early, so that it also holds the address of "the call";
     * other libraries have none. */
    if ((err || scratch->is_signal_frame) &&
        (is_signal_return(module, address) || (!err && begins_signal_return(module, address + 1))))
        *ret_rule = (struct rule){.kind = RULE_SIGNAL_FRAME};
    if (ret_rule->kind == RULE_NONE)
        *ret_rule = rule_from_code(module, address);
    uint8_t code[RETURN_BYTES];
    ret_rule->is_at_return = ret_rule->kind != RULE_FIRST_FRAME &&
                             module_read(module, address, code, sizeof code) && return_is_at(code);
    return 0;
}

/* Returns 0 or -ENOMEM. */
static int find_function(struct module *module, uint64_t address, struct cfi_entry *scratch,
                         uint64_t *ret_start)
{
    struct pclntab_function function;
    struct function_range range;
    const struct pclntab *go = pclntab_of(module);
    if (go && pclntab_find(go, address, &function)) {
        *ret_start = function.start;
        return 0;
    }
    int err = cfi_find(module, address, scratch);
    if (err == -ENOMEM)
        return err;
    *ret_start = !err ? scratch->start : functions_find(module, address, &range) ? range.start : 0;
    return 0;
}

static void find_prologue(struct module *module, const struct lookup *lookup,
                          struct lookup_prologue *ret_prologue)
{
    uint8_t code[PROLOGUE_CODE_BYTES_MAX];
    uint64_t bytes = lookup->address - lookup->function;
    bytes = bytes < sizeof code ? bytes : sizeof code;
    *ret_prologue = (struct lookup_prologue){.count = 0};
    if (module_read(module, lookup->function, code, bytes))
        ret_prologue->count = (uint32_t)prologue_frame_bytes(code, bytes, ret_prologue->distances);
}

int module_look_up(struct module *module, const struct lookup *lookup, struct cfi_entry *scratch,
                   union lookup_answer *ret_answer)
{
    switch (lookup->kind) {
    case LOOKUP_RULE:
        return make_rule(module, lookup->address, scratch, &ret_answer->rule);
    case LOOKUP_FUNCTION:
        return find_function(module, lookup->address, scratch, &ret_answer->function);
    case LOOKUP_RETURNS:
        ret_answer->rule = rule_from_returns(module, lookup->address);
        return 0;
    default:
        find_prologue(module, lookup, &ret_answer->prologue);
        return 0;
    }
}

static int find(struct lookups *lookups, struct module *module, const struct lookup *lookup,
                union lookup_answer *ret_answer)
{
    struct own_lookups *own = (struct own_lookups *)lookups;
    if (!own->scratch)
        own->scratch = malloc(sizeof *own->scratch);
    return own->scratch ? module_look_up(module, lookup, own->scratch, ret_answer) : -ENOMEM;
}

static int read_code(struct lookups *lookups, const struct jit_source *source, off_t most,
                     struct jit_reading *reading)
{
    (void)lookups;
    return jit_source_read(source, most, reading);
}

void own_lookups_init(struct own_lookups *own)
{
    *own = (struct own_lookups){.lookups = {.find = find, .read_code = read_code}};
}

void own_lookups_free(struct own_lookups *own)
{
    free(own->scratch);
    own_lookups_init(own);
}
