/* An abbreviation table of .debug_abbrev: the shapes of a unit's entries (DWARF 5, 7.5.3). */
#ifndef FGPROF_SYMBOL_DWARF_ABBREVS_H
#define FGPROF_SYMBOL_DWARF_ABBREVS_H

#include "elf/section.h"

struct abbrev_attribute {
    uint16_t name; /* DW_AT_* */
    uint16_t form; /* DW_FORM_* */
    int64_t implicit;
};

struct abbrev {
    uint64_t code;
    uint32_t first_attribute, attribute_count;
    uint16_t tag; /* DW_TAG_* */
    bool has_children;
    bool has_fixed_bytes; /* set with fixed_bytes by code that knows the sizes of forms */
    uint32_t fixed_bytes; /* of all attributes of an entry */
};

struct abbrevs {
    struct abbrev *items; /* by code */
    size_t count, capacity;
    struct abbrev_attribute *attributes;
    size_t attribute_count, attribute_capacity;
};

/* Reads the table at `at`. Returns 0, -ENOMEM or -ENOEXEC. */
int abbrevs_read(struct abbrevs *abbrevs, struct section *section, uint64_t at);
void abbrevs_free(struct abbrevs *abbrevs);

const struct abbrev *abbrevs_find(const struct abbrevs *abbrevs, uint64_t code);

#endif
