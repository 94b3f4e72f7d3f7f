/* The debug information of one file: its sections, its units, and the entries (DIEs) in them.
 *
 * An entry is the number of an abbreviation followed by the values of its attributes (DWARF 5,
 * chapter 7.5). Damaged parts are treated as absent. */
#ifndef FGPROF_SYMBOL_DWARF_INFO_H
#define FGPROF_SYMBOL_DWARF_INFO_H

#include "elf/section.h"
#include "base/bytes.h"
#include "elf/object.h"

/* An abbreviation table of .debug_abbrev: the shapes of a unit's entries (DWARF 5, 7.5.3). */
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

const struct abbrev *abbrevs_find(const struct abbrevs *abbrevs, uint64_t code);

enum debug_section {
    DEBUG_INFO,
    DEBUG_ABBREV,
    DEBUG_STR,
    DEBUG_LINE_STR,
    DEBUG_STR_OFFSETS,
    DEBUG_ADDR,
    DEBUG_LINE,
    DEBUG_RANGES,
    DEBUG_RNGLISTS,
    DEBUG_SECTION_COUNT,
};

#define ABBREVS_KEPT 256

struct debug_info {
    struct object object;
    struct section sections[DEBUG_SECTION_COUNT];
    uint64_t *units; /* where in .debug_info each begins, ascending */
    size_t unit_count, unit_capacity;
    struct debug_info *supplement; /* what dwz moved out of several files; NULL: none */
    /* Hashed by a few bits of the key: many units may refer to many tables. */
    struct kept_abbrevs {
        uint64_t at; /* in .debug_abbrev */
        unsigned address_bytes, offset_bytes, version;
        bool is_read;
        struct abbrevs abbrevs;
    } kept[ABBREVS_KEPT];
};

struct unit {
    struct debug_info *info;
    uint64_t at, end;   /* in .debug_info */
    uint64_t first_die; /* likewise */
    uint64_t abbrev_at;
    uint64_t dwo_id;
    unsigned version, type; /* DW_UT_* */
    unsigned address_bytes, offset_bytes;
    const struct abbrevs *abbrevs; /* valid until another unit's are read */
    /* Where the unit's parts of other sections begin. */
    uint64_t str_offsets_base, addr_base, rnglists_base;
    uint64_t ranges_base; /* for what was split from this unit, before DWARF 5 */
    uint64_t low_pc;
    struct debug_info *addresses; /* the file with .debug_addr, .debug_ranges and .debug_line: for a
                                     split unit, the one that it was split from */
};

struct value { /* of an attribute; form 0: absent */
    uint16_t form;
    uint64_t number;
    const uint8_t *text; /* of DW_FORM_string, in the entry's bytes */
};

/* The attributes of an entry that are used here. */
struct die {
    struct value name, linkage_name, origin, specification;
    struct value low_pc, high_pc, ranges;
    struct value call_file, call_line;
    struct value stmt_list, comp_dir, dwo_name, dwo_id;
    struct value str_offsets_base, addr_base, rnglists_base, ranges_base;
};

/* Takes over `object`, even on error. `is_split`: uses the sections of a .dwo. Returns 0, -ENOMEM,
 * or -ENOEXEC if there is no .debug_info. */
int debug_info_open(struct debug_info **ret_info, struct object *object, bool is_split);
void debug_info_close(struct debug_info *info);

/* Finds where all units begin, for unit_read_around. Returns 0 or -ENOMEM. */
int debug_info_list_units(struct debug_info *info);

/* Reads the header of the unit that begins at `at`. Returns 0, -ENOMEM or -ENOEXEC. */
int unit_read(struct debug_info *info, uint64_t at, struct unit *ret_unit);
/* Reads the header and root of the unit in which `at` lies. */
int unit_read_around(struct debug_info *info, uint64_t at, struct unit *ret_unit);

/* Sets unit->abbrevs, which are valid until another unit's are needed. Returns 0, -ENOMEM or
 * -ENOEXEC. */
int unit_need_abbrevs(struct unit *unit);

/* Reads the root entry, and what it says about the unit. */
int unit_read_root(struct unit *unit, struct die *ret_root);

/* Reads the attributes of an entry after its number. */
bool die_read_attributes(const struct unit *unit, struct bytes *bytes, const struct abbrev *abbrev,
                         struct die *ret_die);
/* Skips the attributes. */
bool die_skip(const struct unit *unit, struct bytes *bytes, const struct abbrev *abbrev);
/* Finds how many bytes the attributes take, if that is fixed. */
void abbrev_measure(const struct unit *unit, const struct abbrevs *abbrevs, struct abbrev *abbrev);
/* Reads the entry at `at`, anywhere in the unit. Inline strings are valid until the next entry is
 * read. */
bool die_read_at(struct unit *unit, uint64_t at, struct die *ret_die);

/* Reads one value of `form`; returns false if the form is not known. */
bool value_read(const struct unit *unit, struct bytes *bytes, unsigned form, int64_t implicit,
                struct value *ret_value);

/* How many bytes a value takes; -1: that varies, or the form is not known. */
int form_bytes(const struct unit *unit, unsigned form);

/* Row `number` of the unit's part of .debug_addr. */
bool unit_address(const struct unit *unit, uint64_t number, uint64_t *ret_address);

/* Each returns false if the value is absent or of another kind. */
bool value_address(const struct unit *unit, const struct value *value, uint64_t *ret_address);
bool value_reference(const struct unit *unit, const struct value *value,
                     struct debug_info **ret_info, uint64_t *ret_at);
/* Returns NULL in those cases; else valid until the next string is read. */
const char *value_string(const struct unit *unit, const struct value *value);

#endif
