#include "unwind/rule_tables.h"
#include "unwind/code/calls.h"
#include "unwind/code/rule_code.h"
#include "unwind/go_rule.h"
#include "unwind/signal_frame.h"
#include "base/array.h"
#include "elf/functions.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_FIRST 64

static size_t slot_of(const struct rule_table *table, uint64_t address)
{
    /* Fibonacci hashing: the upper bits of the product depend on all of the address. */
    return (size_t)((address * 0x9e3779b97f4a7c15u) >> 32) & (table->slot_count - 1);
}

/* The slot with this address, or the free one where it belongs. */
static struct rule_slot *find_slot(const struct rule_table *table, uint64_t address)
{
    size_t at = slot_of(table, address);
    while (table->slots[at].address_plus_1 && table->slots[at].address_plus_1 != address + 1)
        at = (at + 1) & (table->slot_count - 1);
    return &table->slots[at];
}

static int grow(struct rule_table *table)
{
    struct rule_table grown = *table;
    grown.slot_count = table->slot_count ? table->slot_count * 2 : SLOTS_FIRST;
    grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct rule_slot *slot = &table->slots[i];
        if (slot->address_plus_1)
            *find_slot(&grown, slot->address_plus_1 - 1) = *slot;
    }
    free(table->slots);
    *table = grown;
    return 0;
}

/* The table of the module, made if need be. NULL if memory is short. */
static struct rule_table *table_of(struct rule_tables *tables, const struct module *module)
{
    if (module->number >= tables->count) {
        if (array_reserve(&tables->items, &tables->capacity, module->number + 1u))
            return NULL;
        while (tables->count <= module->number)
            tables->items[tables->count++] = (struct rule_table){0};
    }
    if (!tables->scratch)
        tables->scratch = malloc(sizeof *tables->scratch);
    return tables->scratch ? &tables->items[module->number] : NULL;
}

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

static const struct pclntab *go_table(struct rule_table *table, struct module *module)
{
    if (!table->has_looked_for_go)
        table->has_go = pclntab_open(&table->go, module);
    table->has_looked_for_go = true;
    return table->has_go ? &table->go : NULL;
}

/* Returns 0 or -ENOMEM. */
static int make(struct rule_tables *tables, struct rule_table *table, struct module *module,
                uint64_t address, struct rule *ret_rule)
{
    /* Go's own table says more of its code: what call frame information there is leaves out where
     * the frame pointer is saved. */
    const struct pclntab *go = go_table(table, module);
    if (go && go_rule_make(go, address, ret_rule))
        return 0;
    int err = cfi_index_find(&table->index, module, address, tables->scratch);
    if (err == -ENOMEM)
        return err;
    *ret_rule = err ? (struct rule){.kind = RULE_NONE} : rule_make(tables->scratch, address);
    /* glibc's entry for it begins one byte early, so that it also holds the address of "the call";
     * other libraries have none. */
    if (ret_rule->kind == RULE_SIGNAL_FRAME && !is_signal_return(module, address) &&
        !begins_signal_return(module, address + 1))
        ret_rule->kind = RULE_COMPLEX;
    if (ret_rule->kind == RULE_NONE && is_signal_return(module, address))
        ret_rule->kind = RULE_SIGNAL_FRAME;
    if (ret_rule->kind == RULE_NONE)
        *ret_rule = rule_from_code(module, address);
    uint8_t code[RETURN_BYTES];
    ret_rule->is_at_return = ret_rule->kind != RULE_FIRST_FRAME &&
                             module_read(module, address, code, sizeof code) && return_is_at(code);
    return 0;
}

static const struct rule *find(const struct rule_table *table, uint64_t address)
{
    const struct rule_slot *slot = table->slot_count ? find_slot(table, address) : NULL;
    return slot && slot->address_plus_1 ? &slot->rule : NULL;
}

/* Adds the rule of an address that has none. NULL if memory is short. */
static const struct rule *add(struct rule_table *table, uint64_t address, const struct rule *rule)
{
    if ((table->used + 1) * 2 > table->slot_count && grow(table))
        return NULL;
    struct rule_slot *slot = find_slot(table, address);
    *slot = (struct rule_slot){address + 1, *rule};
    table->used++;
    return &slot->rule;
}

const struct rule *rule_tables_find(struct rule_tables *tables, struct module *module,
                                    uint64_t address)
{
    /* No code can be at the last of all addresses, and its slot would look like a free one. */
    static const struct rule none = {.kind = RULE_NONE};
    if (address == UINT64_MAX)
        return &none;
    struct rule_table *table =
        module->number < tables->count ? &tables->items[module->number] : table_of(tables, module);
    if (!table)
        return NULL;
    const struct rule *known = find(table, address);
    if (known)
        return known;
    struct rule rule;
    return make(tables, table, module, address, &rule) ? NULL : add(table, address, &rule);
}

const struct rule *rule_tables_find_generated(const struct rule_tables *tables, uint32_t space,
                                              uint64_t address)
{
    return space < tables->generated_count ? find(&tables->generated[space], address) : NULL;
}

int rule_tables_learn_generated(struct rule_tables *tables, uint32_t space, uint64_t address,
                                uint64_t function, const uint8_t *code, size_t code_bytes)
{
    if (rule_tables_find_generated(tables, space, address) || address == UINT64_MAX)
        return 0;
    if (array_reserve(&tables->generated, &tables->generated_capacity, space + 1u))
        return -ENOMEM;
    while (tables->generated_count <= space)
        tables->generated[tables->generated_count++] = (struct rule_table){0};
    struct rule rule = {.kind = RULE_NONE};
    if (address - function < code_bytes)
        rule = rule_from_bytes(code, code_bytes, address - function);
    return add(&tables->generated[space], address, &rule) ? 0 : -ENOMEM;
}

uint64_t rule_tables_function(struct rule_tables *tables, struct module *module, uint64_t address)
{
    struct rule_table *table = table_of(tables, module);
    struct pclntab_function function;
    struct function_range range;
    const struct pclntab *go = table ? go_table(table, module) : NULL;
    if (go && pclntab_find(go, address, &function))
        return function.start;
    if (table && cfi_index_find(&table->index, module, address, tables->scratch) == 0)
        return tables->scratch->start;
    return functions_find(module, address, &range) ? range.start : 0;
}

static void clear(struct rule_table *table)
{
    cfi_index_free(&table->index);
    free(table->slots);
    *table = (struct rule_table){0};
}

void rule_tables_forget_generated(struct rule_tables *tables, uint32_t space)
{
    if (space < tables->generated_count)
        clear(&tables->generated[space]);
}

void rule_tables_forget_module(struct rule_tables *tables, const struct module *module)
{
    if (module->number < tables->count)
        clear(&tables->items[module->number]);
}

void rule_tables_free(struct rule_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        clear(&tables->items[i]);
    free(tables->items);
    for (size_t i = 0; i < tables->generated_count; i++)
        clear(&tables->generated[i]);
    free(tables->generated);
    free(tables->scratch);
    *tables = (struct rule_tables){0};
}
