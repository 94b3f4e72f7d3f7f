/* A profile's tables by columns, for recordings (write.c, read.c). A column is one field of all
 * rows of a table. Its number is never reused, so that a program can tell which of a file's columns
 * it knows. New fields of rows are added here as optional columns: they are 0 for older files. */
#ifndef FGPROF_RECORDING_COLUMNS_H
#define FGPROF_RECORDING_COLUMNS_H

#include "profile/profile.h"

/* A file begins with this and its version in 4 bytes. */
#define RECORDING_MAGIC "fgprof-c"
#define RECORDING_MAGIC_BYTES 8
#define RECORDING_HEAD_BYTES (RECORDING_MAGIC_BYTES + 4) /* including the version */

/* Profiles of time keep the first version, which old programs read. They would misread profiles of
 * objects, so those have a version that old programs refuse. */
#define RECORDING_VERSION_TIME 1
#define RECORDING_VERSION_OBJECTS 2
_Static_assert(RECORDING_VERSION_OBJECTS == FGPROF_RECORDING_VERSION, "the latest");

enum profile_table {
    TABLE_RECORDING, /* one row: the profile itself */
    TABLE_STRINGS,   /* it has no columns */
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
    TABLE_TICK_RUNS,
    TABLE_WAITS,
    TABLE_DEADLOCKS,
    TABLE_PARALLELISM,
    TABLE_LABELS,
    TABLE_LABEL_SETS,
    TABLE_BIRTHS,
    TABLE_COUNT
};

enum column_kind {
    COLUMN_NUMBER, /* any number that fits */
    COLUMN_BOOL,
    COLUMN_STATE,       /* enum thread_state */
    COLUMN_KIND,        /* enum fgprof_kind, of those that are kept */
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
};

/* The numbers of sections that are not columns: the strings, and three texts, which are optional:
 * the command line that recorded the profile, the machine's name, and why it was written. */
#define COLUMN_STRINGS 1
#define COLUMN_RECORDED_BY 88
#define COLUMN_HOST 125
#define COLUMN_REASON 126

/* Columns with greater numbers were added later, so recordings of older versions lack them. */
#define COLUMN_REQUIRED_MAX 87
#define COLUMN_NUMBER_MAX 255

size_t profile_column_count(void);
const struct profile_column *profile_column(size_t i);
bool profile_column_is_optional(const struct profile_column *column);

size_t profile_rows(const struct fgprof_profile *profile, enum profile_table table);
size_t profile_row_bytes(enum profile_table table);
/* Makes rows of zeros in an empty table. Returns 0 or -ENOMEM. */
int profile_make_rows(struct fgprof_profile *profile, enum profile_table table, size_t rows);

uint64_t profile_cell(const struct fgprof_profile *profile, const struct profile_column *column,
                      size_t row);
/* Returns whether the column may have this value, given the tables so far; if not, nothing has
 * changed. */
bool profile_set_cell(struct fgprof_profile *profile, const struct profile_column *column,
                      size_t row, uint64_t value);

#endif
