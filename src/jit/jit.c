#include "jit/jit.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int jit_new(struct jit **ret_jit)
{
    struct jit *jit = calloc(1, sizeof *jit);
    if (!jit)
        return -ENOMEM;
    if (jit_code_init(&jit->code)) {
        jit_free(jit);
        return -ENOMEM;
    }
    *ret_jit = jit;
    return 0;
}

void jit_free(struct jit *jit)
{
    if (!jit)
        return;
    jit_code_free(&jit->code);
    free(jit->uses);
    index_free(&jit->use_index);
    free(jit);
}

size_t jit_bytes(const struct jit *jit)
{
    const struct jit_code *code = &jit->code;
    return sizeof *jit + jit->use_capacity * sizeof *jit->uses +
           code->symbol_capacity * sizeof *code->symbols +
           code->line_capacity * sizeof *code->lines +
           (code->ranges.count + code->pending.count) * sizeof *code->ranges.items +
           strings_bytes(&code->strings) +
           (jit->use_index.slot_count + code->by_id.slot_count) * sizeof(struct index_slot);
}

#define USE_KEY_BYTES offsetof(struct jit_use, symbol)

int jit_note(struct jit *jit, uint32_t space, uint64_t address)
{
    const struct jit_use use = {address, space, JIT_NO_SYMBOL, false};
    uint32_t number;
    return INDEX_INTERN(&jit->use_index, USE_KEY_BYTES, &use, &jit->uses, &jit->use_count,
                        &jit->use_capacity, &number);
}

static uint32_t find_use(const struct jit *jit, uint32_t space, uint64_t address)
{
    const struct jit_use sought = {.address = address, .space = space};
    return INDEX_FIND(&jit->use_index, USE_KEY_BYTES, &sought, jit->uses);
}

void jit_need(struct jit *jit, uint32_t space, uint64_t address)
{
    uint32_t number = find_use(jit, space, address);
    if (number != INDEX_NONE)
        jit->uses[number].is_needed = true;
}

static void keep_needed_uses(struct jit *jit)
{
    size_t kept = 0;
    for (size_t i = 0; i < jit->use_count; i++) {
        if (jit->uses[i].is_needed)
            jit->uses[kept++] = jit->uses[i];
    }
    jit->use_count = kept;
    array_trim(&jit->uses, &jit->use_capacity, kept);
    INDEX_AGAIN(&jit->use_index, USE_KEY_BYTES, jit->uses, kept);
    for (size_t i = 0; i < kept; i++)
        jit->uses[i].is_needed = false;
}

int jit_keep_needed(struct jit *jit)
{
    struct renumber symbols;
    keep_needed_uses(jit);
    int err = renumber_init(&symbols, jit->code.symbol_count);
    if (err)
        return err;
    for (size_t i = 0; i < jit->use_count; i++)
        renumber_keep(&symbols, jit->uses[i].symbol);
    err = jit_code_keep(&jit->code, &symbols);
    for (size_t i = 0; i < jit->use_count && !err; i++)
        jit->uses[i].symbol = renumber_of(&symbols, jit->uses[i].symbol);
    renumber_free(&symbols);
    return err;
}

/* A function announced again at the same address is the same one, unless it has lines, which may
 * differ. */
static bool is_same(const struct jit_code *code, uint32_t left_number, uint32_t right_number)
{
    const struct jit_symbol *left = &code->symbols[left_number];
    const struct jit_symbol *right = &code->symbols[right_number];
    return left->start == right->start && left->name == right->name && !left->line_count &&
           !right->line_count;
}

static bool is_contradicted(const struct jit *jit)
{
    const struct jit_code *code = &jit->code;
    for (size_t i = 0; i < jit->use_count; i++) {
        const struct jit_use *use = &jit->uses[i];
        if (use->symbol != JIT_NO_SYMBOL)
            continue;
        uint32_t next = jit_code_find_pending(code, use->address);
        uint32_t now = next == JIT_NO_SYMBOL ? next : jit_code_find(code, use->address);
        if (now != JIT_NO_SYMBOL && !is_same(code, now, next))
            return true;
    }
    return false;
}

/* The symbol of a settled address, or the one that it would be settled with now. */
static uint32_t symbol_of(const struct jit *jit, const struct jit_use *use)
{
    return use->symbol == JIT_NO_SYMBOL ? jit_code_find(&jit->code, use->address) : use->symbol;
}

void jit_settle(struct jit *jit)
{
    for (size_t i = 0; i < jit->use_count; i++)
        jit->uses[i].symbol = symbol_of(jit, &jit->uses[i]);
}

int jit_take_in(struct jit *jit, bool *ret_is_replaced)
{
    *ret_is_replaced = false;
    if (jit->code.applied_count == jit->code.symbol_count)
        return 0;
    int err = jit_code_prepare(&jit->code);
    if (err)
        return err;
    if (is_contradicted(jit)) {
        jit_settle(jit);
        *ret_is_replaced = true;
    }
    return jit_code_apply(&jit->code);
}

const struct jit_symbol *jit_find(const struct jit *jit, uint32_t space, uint64_t address)
{
    uint32_t number = find_use(jit, space, address);
    if (number == INDEX_NONE || jit->uses[number].symbol == JIT_NO_SYMBOL)
        return NULL;
    return &jit->code.symbols[jit->uses[number].symbol];
}

static int copy_to(const struct jit *jit, struct renumber *symbols, struct jit *copy)
{
    for (size_t i = 0; i < jit->use_count; i++)
        renumber_keep(symbols, symbol_of(jit, &jit->uses[i]));
    renumber_assign(symbols);
    int err = jit_code_copy(&copy->code, &jit->code, symbols);
    for (size_t i = 0; i < jit->use_count && !err; i++) {
        const struct jit_use *use = &jit->uses[i];
        err = jit_note(copy, use->space, use->address);
        if (!err)
            copy->uses[i].symbol = renumber_of(symbols, symbol_of(jit, use));
    }
    return err;
}

int jit_copy(const struct jit *jit, struct jit **ret_copy)
{
    struct jit *copy = NULL;
    struct renumber symbols;
    int err = renumber_init(&symbols, jit->code.symbol_count);
    if (!err)
        err = jit_new(&copy);
    if (!err)
        err = copy_to(jit, &symbols, copy);
    renumber_free(&symbols);
    if (err)
        jit_free(copy);
    else
        *ret_copy = copy;
    return err;
}
