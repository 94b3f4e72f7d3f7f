/* The line table of a unit: which line of which file each instruction comes from (DWARF 5, 6.2). */
#ifndef FGPROF_SYMBOL_DWARF_LINES_H
#define FGPROF_SYMBOL_DWARF_LINES_H

#include "symbol/dwarf/info.h"

struct line_row {
    uint64_t address;
    uint32_t file, line;
};

/* Rows with ascending addresses and no gap. */
struct line_sequence {
    uint64_t start, end;
    size_t first_row, row_count;
};

struct line_file {
    struct value name;
    uint64_t directory;
    char *path; /* built at first use */
};

struct lines {
    struct unit unit; /* with the version and offset size of the table */
    struct slice table;
    char *compilation_directory;
    struct value *directories; /* from DWARF 5 numbered from 0, before that from 1 */
    size_t directory_count, directory_capacity;
    struct line_file *files;
    size_t file_count, file_capacity;
    struct line_row *rows;
    size_t row_count, row_capacity;
    struct line_sequence *sequences; /* by start */
    size_t sequence_count, sequence_capacity;
};

/* Reads the table that the root entry refers to, replacing what was there. Returns 0, -ENOMEM, or
 * -ENOEXEC if there is none: then it is empty. Of a damaged table, what could be read is kept. */
int lines_read(struct lines *lines, const struct unit *unit, const struct die *root);
void lines_clear(struct lines *lines);
void lines_free(struct lines *lines);

/* The row for `address`; NULL: there is none. */
const struct line_row *lines_find(const struct lines *lines, uint64_t address);

/* The path of a file by its number in the table; NULL: not known. Valid until the next table. */
const char *lines_file(struct lines *lines, uint64_t number);

#endif
