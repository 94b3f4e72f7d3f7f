/* Parts of functions that lie elsewhere. */
#ifndef FGPROF_UNWIND_MOVED_PART_H
#define FGPROF_UNWIND_MOVED_PART_H

#include "elf/module.h"
#include "unwind/rule_tables.h"

/* Finds the part of a function of the module that the compiler moved, as it does with what seldom
 * runs (name.cold). Such a part has an entry of its own in the unwind tables. Returns the module's
 * own address of where it begins; 0: there is none. */
uint64_t moved_part_find(struct rule_tables *tables, struct module *module,
                         const struct module_part *function);

/* Finds the function that such a part belongs to. Returns the module's own address of it; 0: it is
 * not known, or what is there is no moved part. */
uint64_t moved_part_function(struct rule_tables *tables, struct module *module,
                             const struct function_range *part);

#endif
