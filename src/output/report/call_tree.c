#include "output/report/call_tree.h"
#include "base/array.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATOR " > "
#define SEPARATOR_COLUMNS 3
#define OMISSION SEPARATOR "..."
#define OMISSION_COLUMNS 6
#define NAME_COLUMNS 34 /* of one function's name: two and what is between them always fit */

struct node_key {
    uint32_t caller, label;
};

static bool is_same_node(const void *owner, uint32_t item, const void *key)
{
    const struct call_tree *tree = owner;
    const struct node_key *sought = key;
    return tree->nodes[item].caller == sought->caller && tree->nodes[item].label == sought->label;
}

/* Finds the node, or adds it. */
static int get_node(struct call_tree *tree, uint32_t caller, uint32_t label, uint32_t *ret_node)
{
    struct node_key key = {caller, label};
    uint64_t hash = hash_bytes(&key, sizeof key, 0);
    *ret_node = index_find(&tree->index, hash, is_same_node, tree, &key);
    if (*ret_node != INDEX_NONE)
        return 0;
    if (array_reserve(&tree->nodes, &tree->capacity, tree->count + 1) ||
        index_add(&tree->index, hash, (uint32_t)tree->count))
        return -ENOMEM;
    *ret_node = (uint32_t)tree->count;
    tree->nodes[tree->count++] = (struct call_node){.caller = caller, .label = label};
    return 0;
}

int call_tree_add(struct call_tree *tree, const uint32_t *labels, size_t depth, uint64_t time_ns,
                  uint32_t *ret_node)
{
    uint32_t node = CALL_TREE_ROOT;
    for (size_t i = 0; i < depth; i++) {
        int err = get_node(tree, node, labels[i], &node);
        if (err)
            return err;
        tree->nodes[node].total_ns += time_ns;
    }
    tree->nodes[node].self_ns += time_ns;
    tree->total_ns += time_ns;
    *ret_node = node;
    return 0;
}

void call_tree_free(struct call_tree *tree)
{
    free(tree->nodes);
    index_free(&tree->index);
}

int call_tree_path(const struct call_tree *tree, uint32_t node, uint32_t **ret_labels,
                   size_t *ret_depth)
{
    size_t depth = 0;
    for (uint32_t at = node; at != CALL_TREE_ROOT; at = tree->nodes[at].caller)
        depth++;
    uint32_t *labels = calloc(depth + 1, sizeof *labels);
    if (!labels)
        return -ENOMEM;
    size_t i = depth;
    for (uint32_t at = node; at != CALL_TREE_ROOT; at = tree->nodes[at].caller)
        labels[--i] = tree->nodes[at].label;
    *ret_labels = labels;
    *ret_depth = depth;
    return 0;
}

static void append_label(struct buffer *buffer, const struct labels *labels, uint32_t label)
{
    name_append_short(buffer, label_text(labels, label), NAME_COLUMNS);
}

/* How many columns the label takes. */
static size_t columns_of(const struct labels *labels, uint32_t label)
{
    struct buffer text = {0};
    append_label(&text, labels, label);
    size_t columns = utf8_columns(text.bytes, text.length);
    buffer_free(&text);
    return columns;
}

/* How many labels at the end of the path are shown, if not all are. The last always is. */
static size_t last_that_fit(const struct labels *labels, const uint32_t *path, size_t depth)
{
    size_t shown = 1;
    size_t used = columns_of(labels, path[0]) + SEPARATOR_COLUMNS + OMISSION_COLUMNS +
                  columns_of(labels, path[depth - 1]);
    for (; shown + 2 < depth; shown++) {
        used += columns_of(labels, path[depth - 1 - shown]) + SEPARATOR_COLUMNS;
        if (used > CALL_TREE_PATH_COLUMNS)
            break;
    }
    return shown;
}

static bool all_fit(const struct labels *labels, const uint32_t *path, size_t depth)
{
    size_t used = 0;
    for (size_t i = 0; i < depth && used <= CALL_TREE_PATH_COLUMNS; i++)
        used += columns_of(labels, path[i]) + (i ? SEPARATOR_COLUMNS : 0);
    return used <= CALL_TREE_PATH_COLUMNS;
}

void call_tree_append_path(struct buffer *buffer, const struct call_tree *tree, uint32_t node,
                           const struct labels *labels)
{
    uint32_t *path;
    size_t depth, first = 0;
    if (call_tree_path(tree, node, &path, &depth)) {
        buffer->error = -ENOMEM;
        return;
    }
    while (first + 1 < depth && label_has_role(labels, path[first], LABEL_START))
        first++;
    size_t left = depth - first;
    size_t last =
        all_fit(labels, path + first, left) ? left : last_that_fit(labels, path + first, left);
    for (size_t i = first; i < depth; i++) {
        if (i > first && i < depth - last) {
            if (i == first + 1)
                buffer_puts(buffer, OMISSION);
            continue;
        }
        buffer_puts(buffer, i > first ? SEPARATOR : "");
        append_label(buffer, labels, path[i]);
    }
    free(path);
}
