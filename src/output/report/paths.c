#include "output/report/paths.h"

#include <stdlib.h>
#include <string.h>

static size_t common_depth(const uint32_t *one, size_t one_depth, const uint32_t *other,
                           size_t other_depth)
{
    size_t depth = 0;
    while (depth < one_depth && depth < other_depth && one[depth] == other[depth])
        depth++;
    return depth;
}

static void leave_out_common(struct row_paths *paths)
{
    size_t common = paths->count > 1 ? SIZE_MAX : 0;
    for (size_t i = 0; i < paths->count && common; i++) {
        size_t depth = common_depth(paths->rows[0].path, paths->rows[0].depth, paths->rows[i].path,
                                    paths->rows[i].depth);
        common = depth < common ? depth : common;
    }
    paths->common = common ? common - 1 : 0;
    for (size_t i = 0; i < paths->count; i++) {
        paths->rows[i].path += paths->common;
        paths->rows[i].depth -= paths->common;
    }
}

static void write_row(struct row_paths *paths, size_t row)
{
    struct buffer *text = &paths->rows[row].text;
    text->length = 0;
    call_path_append(text, paths->labels, paths->rows[row].path, paths->rows[row].depth,
                     paths->rows[row].kept);
    paths->error = text->error ? text->error : paths->error;
}

/* Rows of one path differ in another column. */
static bool are_alike(const struct row_paths *paths, size_t one, size_t other)
{
    size_t depth = paths->rows[one].depth;
    return strcmp(paths->rows[one].text.bytes, paths->rows[other].text.bytes) == 0 &&
           (depth != paths->rows[other].depth ||
            common_depth(paths->rows[one].path, depth, paths->rows[other].path, depth) < depth);
}

/* Long paths lose their middle, which may be where two of them differ. */
static void tell_apart(struct row_paths *paths, size_t one, size_t other)
{
    if (!are_alike(paths, one, other))
        return;
    size_t differs = common_depth(paths->rows[one].path, paths->rows[one].depth,
                                  paths->rows[other].path, paths->rows[other].depth);
    paths->rows[other].kept = differs;
    write_row(paths, other);
    if (paths->rows[one].kept != CALL_PATH_NONE_KEPT)
        return;
    paths->rows[one].kept = differs;
    write_row(paths, one);
}

/* Of a function that calls itself, only the depth differs. */
static void add_depths(struct row_paths *paths)
{
    for (size_t i = 1; i < paths->count; i++) {
        bool is_alike = false;
        for (size_t j = 0; j < i; j++)
            is_alike |= are_alike(paths, i, j);
        if (is_alike)
            buffer_print(&paths->rows[i].text, " (%zu deep)", paths->rows[i].depth);
        paths->error = paths->rows[i].text.error ? paths->rows[i].text.error : paths->error;
    }
}

void row_paths_make(struct row_paths *paths, const struct call_tree *tree,
                    const struct labels *labels, const uint32_t *nodes, size_t count)
{
    *paths = (struct row_paths){.labels = labels};
    for (size_t i = 0; i < count; i++) {
        paths->error = call_tree_path(tree, nodes[i], &paths->rows[i].all, &paths->rows[i].depth);
        if (paths->error)
            return;
        size_t first = call_path_start(labels, paths->rows[i].all, paths->rows[i].depth);
        paths->rows[i].path = paths->rows[i].all + first;
        paths->rows[i].depth -= first;
        paths->rows[i].kept = CALL_PATH_NONE_KEPT;
        paths->count++;
    }
    leave_out_common(paths);
    for (size_t i = 0; i < count && !paths->error; i++) {
        write_row(paths, i);
        for (size_t j = 0; j < i && !paths->error; j++)
            tell_apart(paths, j, i);
    }
    if (!paths->error)
        add_depths(paths);
}

void row_paths_free(struct row_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        free(paths->rows[i].all);
        buffer_free(&paths->rows[i].text);
    }
}

void row_paths_append_title(struct buffer *buffer, const struct row_paths *paths)
{
    buffer_puts(buffer, "PATH");
    if (paths->common) {
        buffer_puts(buffer, ", below ");
        call_path_append(buffer, paths->labels, paths->rows[0].path - paths->common, paths->common,
                         CALL_PATH_NONE_KEPT);
    }
    buffer_puts(buffer, "\n");
}
