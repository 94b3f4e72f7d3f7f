/* The paths of a table's rows: without the functions that all of them share, except the last of
 * these, and with the functions that tell two rows apart. */
#ifndef FGPROF_OUTPUT_REPORT_PATHS_H
#define FGPROF_OUTPUT_REPORT_PATHS_H

#include "profile/call_tree.h"
#include "base/name.h"

#define ROW_PATHS_MAX 10

struct row_paths {
    const struct labels *labels;
    struct {
        uint32_t *all, *path; /* the latter is shown, and a part of the former */
        size_t depth, kept;
        struct buffer text;
    } rows[ROW_PATHS_MAX];
    size_t count;
    size_t common; /* how many functions at the root are left out */
    int error;
};

/* Free it in either case; it refers to `labels`. */
void row_paths_make(struct row_paths *paths, const struct call_tree *tree,
                    const struct labels *labels, const uint32_t *nodes, size_t count);
void row_paths_free(struct row_paths *paths);

/* Appends "PATH, below main > serve" and ends the line. */
void row_paths_append_title(struct buffer *buffer, const struct row_paths *paths);

#endif
