/* The symbols of a module that name code, from .symtab, .dynsym and .gnu_debugdata together. */
#ifndef FGPROF_SYMBOL_SYMBOL_TABLE_H
#define FGPROF_SYMBOL_SYMBOL_TABLE_H

#include "elf/object.h"

struct symbol_row {
    uint64_t start, end;
    uint64_t reach; /* the largest end up to here */
    uint32_t name;  /* in its strings */
    uint8_t strings;
    uint8_t info; /* st_info: binding and type */
    bool has_size;
};

#define SYMBOL_STRINGS_MAX 8

struct symbol_table {
    struct symbol_row *rows; /* by start */
    size_t count, capacity;
    struct section strings[SYMBOL_STRINGS_MAX];
    size_t strings_count;
    struct object objects[SYMBOL_STRINGS_MAX];
    size_t object_count;
    char *found; /* the last name that was returned */
};

/* Takes over `object` in any case, and adds its symbols. Returns 0 or -ENOMEM. */
int symbol_table_add(struct symbol_table *table, struct object *object);
/* Sorts the added symbols. */
void symbol_table_finish(struct symbol_table *table);
void symbol_table_free(struct symbol_table *table);

struct symbol_found {
    const char *name; /* NULL: there is none; valid until the next look-up */
    uint64_t start, end;
    bool has_size;    /* false: `end` is only where the function must have ended */
    bool is_exported; /* other modules may call the function by that name */
};

/* Finds the function around `address`. If an address has several names, the one that users know is
 * taken: see symbol_table.c. */
void symbol_table_find(struct symbol_table *table, uint64_t address,
                       struct symbol_found *ret_found);

#endif
