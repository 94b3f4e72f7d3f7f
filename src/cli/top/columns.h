/* The columns of a table of `top`: which of them the window has room for, and where. */
#ifndef FGPROF_CLI_TOP_COLUMNS_H
#define FGPROF_CLI_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#define TOP_COLUMNS_MAX 8

struct top_column {
    const char *title;
    int columns;    /* 0: what the others leave */
    int shown_from; /* so wide must the window be */
    bool is_number; /* to the right of its column */
};

struct top_layout {
    const struct top_column *table;
    size_t count;
    int at[TOP_COLUMNS_MAX], columns[TOP_COLUMNS_MAX]; /* 0 columns: it is not shown */
};

struct top_layout top_lay_out(const struct top_column *table, size_t count);

/* `sorted`: the number of the column that the rows are sorted by. */
void put_titles(const struct top_layout *layout, int y, size_t sorted);

/* Goes to the cell. Returns whether it is shown. */
bool go_to_cell(const struct top_layout *layout, int y, size_t column);
void put_cell(const struct top_layout *layout, int y, size_t column, const char *text);
void put_number(const struct top_layout *layout, int y, size_t column, int digits, double number);

#endif
