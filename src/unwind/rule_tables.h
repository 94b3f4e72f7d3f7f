/* What was looked up so far, by module and address. It serves every process that has mapped the
 * module, wherever it lies there. */
#ifndef FGPROF_UNWIND_RULE_TABLES_H
#define FGPROF_UNWIND_RULE_TABLES_H

#include "unwind/lookup.h"

/* A table with this many answers, about 120 MB, is emptied: they can be looked up again. */
#define RULE_TABLE_MAX ((size_t)1 << 20)

struct rule_slot {
    uint64_t address_plus_1; /* 0: free */
    union lookup_answer answer;
};

/* What of one kind was looked up in one module: open addressing with linear probing. */
struct rule_table {
    struct rule_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used;
};

struct module_rules {
    struct rule_table tables[LOOKUP_KINDS];
};

struct rule_tables {
    struct lookups *lookups;    /* looks up unknown rules; NULL: this process does, */
    struct own_lookups own;     /* by this */
    struct module_rules *items; /* by the module's number */
    size_t count, capacity;
    struct rule_table *generated; /* for generated code, by the space's number */
    size_t generated_count, generated_capacity;
};

/* What looks up unknown rules. */
struct lookups *rule_tables_lookups(struct rule_tables *tables);

/* Returns the rule of an address of `module`, looked up at first use; valid until the next call.
 * RULE_UNREAD if the module can't be read. NULL if memory is short. */
const struct rule *rule_tables_find(struct rule_tables *tables, struct module *module,
                                    uint64_t address);

/* The rule of an address of generated code in the space with this number; NULL if it was not
 * learnt. Valid until the next one is learnt. */
const struct rule *rule_tables_find_generated(const struct rule_tables *tables, uint32_t space,
                                              uint64_t address);

/* Learns the rule of `address` from the machine code of its function, which begins at `function`,
 * as far as the code could be read. It also learns that the code does not show it. Until a function
 * has set up its frame pointer, or if it never does, the frame pointer would lead to its caller's
 * caller. Returns 0 or -ENOMEM. */
int rule_tables_learn_generated(struct rule_tables *tables, uint32_t space, uint64_t address,
                                uint64_t function, const uint8_t *code, size_t code_bytes);

/* Forgets the rules of the space, because more is now known of where functions begin, its code has
 * been replaced, or its program has left it. */
void rule_tables_forget_generated(struct rule_tables *tables, uint32_t space);

/* Forgets the rules of the module, which is about to be closed. */
void rule_tables_forget_module(struct rule_tables *tables, const struct module *module);

/* See LOOKUP_FUNCTION, LOOKUP_RETURNS and LOOKUP_PROLOGUE. If the module can't be read or memory is
 * short, 0, a rule that is not RULE_CALLER, or no distances. */
uint64_t rule_tables_function(struct rule_tables *tables, struct module *module, uint64_t address);
struct rule rule_tables_returns(struct rule_tables *tables, struct module *module,
                                uint64_t address);
struct lookup_prologue rule_tables_prologue(struct rule_tables *tables, struct module *module,
                                            uint64_t function, uint64_t address);

size_t rule_tables_bytes(const struct rule_tables *tables);
void rule_tables_free(struct rule_tables *tables);

#endif
