/* The rules made so far, by module and address. They serve every process that has mapped the
 * module, wherever it lies there. */
#ifndef FGPROF_UNWIND_RULE_TABLES_H
#define FGPROF_UNWIND_RULE_TABLES_H

#include "unwind/rule.h"
#include "elf/go/pclntab.h"

struct rule_slot {
    uint64_t address_plus_1; /* 0: free */
    struct rule rule;
};

/* The rules of one module: open addressing with linear probing. */
struct rule_table {
    struct cfi_index index;
    struct pclntab go;
    bool has_go, has_looked_for_go;
    struct rule_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used;
};

struct rule_tables {
    struct rule_table *items; /* by the module's number */
    size_t count, capacity;
    struct rule_table *generated; /* for generated code, by the space's number */
    size_t generated_count, generated_capacity;
    struct cfi_entry *scratch;
};

/* Returns the rule of an address of `module`, made at first use; valid until the next call. NULL if
 * memory is short. */
const struct rule *rule_tables_find(struct rule_tables *tables, struct module *module,
                                    uint64_t address);

/* The rule of an address of generated code in the space with this number; NULL if it was not
 * learnt. Valid until the next one is learnt. */
const struct rule *rule_tables_find_generated(const struct rule_tables *tables, uint32_t space,
                                              uint64_t address);

/* Learns the rule of `address` from the machine code of its function, which begins at `function`,
 * as far as the code could be read. That the code does not tell is learnt too. Returns 0 or
 * -ENOMEM. */
int rule_tables_learn_generated(struct rule_tables *tables, uint32_t space, uint64_t address,
                                uint64_t function, const uint8_t *code, size_t code_bytes);

/* Forgets the rules of the space, because more is now known of where functions begin. */
void rule_tables_forget_generated(struct rule_tables *tables, uint32_t space);

/* Forgets the rules of the module, which is about to be closed. */
void rule_tables_forget_module(struct rule_tables *tables, const struct module *module);

/* The start of the function that holds `address`, from Go's function table, call frame information,
 * or else the symbol table; 0 if none of them has it. */
uint64_t rule_tables_function(struct rule_tables *tables, struct module *module, uint64_t address);

void rule_tables_free(struct rule_tables *tables);

#endif
