/* A profile's tables by columns, for what keeps all of a profile: files of its own (kept/write.c,
 * kept/read.c).
 *
 * A column is one field of all rows of a table. Its number is never another column's, so that a
 * program knows which of a file's columns it knows. What is added to a profile's rows is added
 * here, as optional: files written before have 0 for it. */
#ifndef FGPROF_KEPT_COLUMNS_H
#define FGPROF_KEPT_COLUMNS_H

#include "profile/profile.h"

/* What a file begins with, before its version in 4 bytes. */
#define KEPT_MAGIC "fgprof-c"
#define KEPT_MAGIC_BYTES 8
#define KEPT_HEAD_BYTES (KEPT_MAGIC_BYTES + 4) /* with the version */

enum profile_table {
    TABLE_RECORDING, /* of one row: the profile itself */
    TABLE_STRINGS,   /* without columns */
    TABLE_FUNCTIONS,
    TABLE_LINES,
    TABLE_MAPPINGS,
    TABLE_LOCATIONS,
    TABLE_STACK_LOCATIONS,
    TABLE_STACKS,
    TABLE_SAMPLES,
    TABLE_UNREADABLE,
    TABLE_PROCESSES,
    TABLE_TIMELINES,
    TABLE_RUNS,
    TABLE_COUNT
};

enum column_kind {
    COLUMN_NUMBER, /* any that fits */
    COLUMN_BOOL,
    COLUMN_STATE,       /* enum thread_state */
    COLUMN_ROW,         /* the number of a row in `of` */
    COLUMN_ROW_OR_NONE, /* or UINT32_MAX */
    COLUMN_ROW_PLUS_1,  /* or 0 */
};

struct profile_column {
    unsigned number;
    enum profile_table table;
    size_t offset;  /* in a row */
    unsigned bytes; /* 1 to 8 */
    enum column_kind kind;
    enum profile_table of;
    bool is_optional; /* was not there from the beginning */
};

/* The numbers of what is no column: the strings, and the command line that it was recorded by. The
 * latter is optional. */
#define COLUMN_STRINGS 1
#define COLUMN_RECORDED_BY 88

#define COLUMN_NUMBER_MAX 127

size_t profile_column_count(void);
const struct profile_column *profile_column(size_t i);

size_t profile_rows(const struct fgprof_profile *profile, enum profile_table table);
/* Of an empty table: makes rows of zeros. Returns 0 or -ENOMEM. */
int profile_make_rows(struct fgprof_profile *profile, enum profile_table table, size_t rows);

uint64_t profile_cell(const struct fgprof_profile *profile, const struct profile_column *column,
                      size_t row);
/* Returns whether the value is one that the column may have, as the tables are now; else nothing
 * has changed. */
bool profile_set_cell(struct fgprof_profile *profile, const struct profile_column *column,
                      size_t row, uint64_t value);

#endif
