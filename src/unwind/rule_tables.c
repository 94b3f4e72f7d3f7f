#include "unwind/rule_tables.h"
#include "unwind/code/rule_code.h"
#include "base/array.h"

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

static const union lookup_answer *find(const struct rule_table *table, uint64_t address)
{
    const struct rule_slot *slot = table->slot_count ? find_slot(table, address) : NULL;
    return slot && slot->address_plus_1 ? &slot->answer : NULL;
}

static void clear(struct rule_table *table)
{
    free(table->slots);
    *table = (struct rule_table){0};
}

/* Adds the answer for an address that has none. NULL if memory is short. */
static const union lookup_answer *add(struct rule_table *table, uint64_t address,
                                      const union lookup_answer *answer)
{
    if (table->used == RULE_TABLE_MAX)
        clear(table);
    if ((table->used + 1) * 2 > table->slot_count && grow(table))
        return NULL;
    struct rule_slot *slot = find_slot(table, address);
    *slot = (struct rule_slot){address + 1, *answer};
    table->used++;
    return &slot->answer;
}

/* What is said of a module that can't be read. */
static const union lookup_answer *unread(enum lookup_kind kind)
{
    static const union lookup_answer rule = {.rule = {.kind = RULE_UNREAD}}, none;
    return kind == LOOKUP_RULE || kind == LOOKUP_RETURNS ? &rule : &none;
}

struct lookups *rule_tables_lookups(struct rule_tables *tables)
{
    if (!tables->lookups && !tables->own.lookups.find)
        own_lookups_init(&tables->own);
    return tables->lookups ? tables->lookups : &tables->own.lookups;
}

/* Looks up a rule that is not known. NULL if memory is short. */
static const union lookup_answer *ask(struct rule_tables *tables, struct module *module,
                                      const struct lookup *lookup)
{
    union lookup_answer answer = {0};
    if (array_extend(&tables->items, &tables->count, &tables->capacity, module->number + 1u))
        return NULL;
    struct lookups *lookups = rule_tables_lookups(tables);
    int err = lookups->find(lookups, module, lookup, &answer);
    if (err == -EAGAIN)
        return unread(lookup->kind);
    if (err == -ENOMEM)
        return NULL;
    return add(&tables->items[module->number].tables[lookup->kind], lookup->address,
               err ? unread(lookup->kind) : &answer);
}

static const union lookup_answer *look_up(struct rule_tables *tables, struct module *module,
                                          const struct lookup *lookup)
{
    const union lookup_answer *known = NULL;
    if (module->number < tables->count)
        known = find(&tables->items[module->number].tables[lookup->kind], lookup->address);
    return known ? known : ask(tables, module, lookup);
}

const struct rule *rule_tables_find(struct rule_tables *tables, struct module *module,
                                    uint64_t address)
{
    /* No code can be at the last of all addresses, and its slot would look like a free one. */
    static const struct rule none = {.kind = RULE_NONE};
    const struct lookup lookup = {LOOKUP_RULE, address, 0};
    if (address == UINT64_MAX)
        return &none;
    const union lookup_answer *answer = look_up(tables, module, &lookup);
    return answer ? &answer->rule : NULL;
}

uint64_t rule_tables_function(struct rule_tables *tables, struct module *module, uint64_t address)
{
    const struct lookup lookup = {LOOKUP_FUNCTION, address, 0};
    const union lookup_answer *answer =
        address == UINT64_MAX ? NULL : look_up(tables, module, &lookup);
    return answer ? answer->function : 0;
}

struct rule rule_tables_returns(struct rule_tables *tables, struct module *module, uint64_t address)
{
    const struct lookup lookup = {LOOKUP_RETURNS, address, 0};
    const union lookup_answer *answer =
        address == UINT64_MAX ? NULL : look_up(tables, module, &lookup);
    return answer ? answer->rule : (struct rule){.kind = RULE_NONE};
}

struct lookup_prologue rule_tables_prologue(struct rule_tables *tables, struct module *module,
                                            uint64_t function, uint64_t address)
{
    const struct lookup lookup = {LOOKUP_PROLOGUE, address, function};
    const union lookup_answer *answer =
        address == UINT64_MAX ? NULL : look_up(tables, module, &lookup);
    return answer ? answer->prologue : (struct lookup_prologue){.count = 0};
}

const struct rule *rule_tables_find_generated(const struct rule_tables *tables, uint32_t space,
                                              uint64_t address)
{
    const union lookup_answer *answer =
        space < tables->generated_count ? find(&tables->generated[space], address) : NULL;
    return answer ? &answer->rule : NULL;
}

int rule_tables_learn_generated(struct rule_tables *tables, uint32_t space, uint64_t address,
                                uint64_t function, const uint8_t *code, size_t code_bytes)
{
    if (rule_tables_find_generated(tables, space, address) || address == UINT64_MAX)
        return 0;
    if (array_extend(&tables->generated, &tables->generated_count, &tables->generated_capacity,
                     space + 1u))
        return -ENOMEM;
    union lookup_answer answer = {.rule = {.kind = RULE_NONE}};
    if (address - function < code_bytes)
        answer.rule = rule_from_bytes(code, code_bytes, address - function);
    return add(&tables->generated[space], address, &answer) ? 0 : -ENOMEM;
}

static void clear_all(struct module_rules *rules)
{
    for (size_t kind = 0; kind < LOOKUP_KINDS; kind++)
        clear(&rules->tables[kind]);
}

void rule_tables_forget_generated(struct rule_tables *tables, uint32_t space)
{
    if (space < tables->generated_count)
        clear(&tables->generated[space]);
}

void rule_tables_forget_module(struct rule_tables *tables, const struct module *module)
{
    if (module->number < tables->count)
        clear_all(&tables->items[module->number]);
}

size_t rule_tables_bytes(const struct rule_tables *tables)
{
    size_t slots = 0;
    for (size_t i = 0; i < tables->count; i++) {
        for (size_t kind = 0; kind < LOOKUP_KINDS; kind++)
            slots += tables->items[i].tables[kind].slot_count;
    }
    for (size_t i = 0; i < tables->generated_count; i++)
        slots += tables->generated[i].slot_count;
    return slots * sizeof(struct rule_slot) + tables->capacity * sizeof *tables->items +
           tables->generated_capacity * sizeof *tables->generated;
}

void rule_tables_free(struct rule_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        clear_all(&tables->items[i]);
    free(tables->items);
    for (size_t i = 0; i < tables->generated_count; i++)
        clear(&tables->generated[i]);
    free(tables->generated);
    own_lookups_free(&tables->own);
    *tables = (struct rule_tables){0};
}
