/* The columns of a table of `top`: which ones fit into the window, and where they are. */
#ifndef FGPROF_CLI_TOP_COLUMNS_H
#define FGPROF_CLI_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#define TOP_COLUMNS_MAX 8

struct top_column {
    const char *title;
    int columns;    /* its width; 0: the width that the others leave */
    int shown_from; /* shown in windows of at least this width */
    bool is_number; /* aligned to the right */
};

struct top_layout {
    const struct top_column *table;
    size_t count;
    int at[TOP_COLUMNS_MAX], columns[TOP_COLUMNS_MAX]; /* 0 columns: not shown */
};

struct top_layout top_lay_out(const struct top_column *table, size_t count);

/* `sorted`: the column that the rows are sorted by. */
void put_titles(const struct top_layout *layout, int y, size_t sorted);

/* Moves the cursor to the cell. Returns whether the cell is shown. */
bool go_to_cell(const struct top_layout *layout, int y, size_t column);
void put_cell(const struct top_layout *layout, int y, size_t column, const char *text);
void put_number(const struct top_layout *layout, int y, size_t column, int digits, double number);

#endif
