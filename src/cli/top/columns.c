#include "cli/top/columns.h"
#include "cli/top/text.h"

#include <curses.h>

struct top_layout top_lay_out(const struct top_column *table, size_t count)
{
    struct top_layout layout = {.table = table, .count = count};
    int left = COLS - 1, x = 0;
    for (size_t i = 0; i < count; i++) {
        if (COLS >= table[i].shown_from && table[i].columns)
            left -= table[i].columns + 1;
    }
    for (size_t i = 0; i < count; i++) {
        int columns = table[i].columns ? table[i].columns : left;
        if (COLS < table[i].shown_from || columns <= 0 || x + columns >= COLS)
            continue;
        layout.at[i] = x;
        layout.columns[i] = columns;
        x += columns + 1;
    }
    return layout;
}

bool go_to_cell(const struct top_layout *layout, int y, size_t column)
{
    return layout->columns[column] && move(y, layout->at[column]) == OK;
}

void put_titles(const struct top_layout *layout, int y, size_t sorted)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct top_column *column = &layout->table[i];
        attr_t look = i == sorted ? A_BOLD | A_REVERSE : A_BOLD;
        if (!go_to_cell(layout, y, i))
            continue;
        attron(look);
        put_format(column->is_number ? "%*s" : "%-*s", layout->columns[i], column->title);
        attroff(look);
    }
}

void put_cell(const struct top_layout *layout, int y, size_t column, const char *text)
{
    if (go_to_cell(layout, y, column))
        put_text(text, layout->columns[column]);
}

void put_number(const struct top_layout *layout, int y, size_t column, int digits, double number)
{
    if (go_to_cell(layout, y, column))
        put_format("%*.*f", layout->columns[column], digits, number);
}
