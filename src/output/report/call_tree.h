/* Stacks as a tree of calls: a node is a place together with the way to it, as its label and its
 * caller's node. Its self time is what was spent at the place itself, its total time also what was
 * spent in all that it called. */
#ifndef FGPROF_OUTPUT_REPORT_CALL_TREE_H
#define FGPROF_OUTPUT_REPORT_CALL_TREE_H

#include "output/name.h"
#include "output/report/labels.h"

#define CALL_TREE_ROOT UINT32_MAX /* the caller of outermost functions */

struct call_node {
    uint32_t caller, label;
    uint64_t self_ns, total_ns;
};

struct call_tree {
    struct call_node *nodes; /* callers before those that they call */
    size_t count, capacity;
    struct index index;
    uint64_t total_ns;
};

/* Adds time that was spent at the end of the path `labels`, root first. Returns 0 or -ENOMEM. */
int call_tree_add(struct call_tree *tree, const uint32_t *labels, size_t depth, uint64_t time_ns,
                  uint32_t *ret_node);
void call_tree_free(struct call_tree *tree);

/* The labels on the way to the node, root first. The caller frees them. Returns 0 or -ENOMEM. */
int call_tree_path(const struct call_tree *tree, uint32_t node, uint32_t **ret_labels,
                   size_t *ret_depth);

/* Appends the way to the node, like "main > serve > ... > read", in CALL_TREE_PATH_COLUMNS columns
 * at the most. The functions that start every thread are left out; long names and long ways lose
 * their middle. */
#define CALL_TREE_PATH_COLUMNS 80
void call_tree_append_path(struct buffer *buffer, const struct call_tree *tree, uint32_t node,
                           const struct labels *labels);

#endif
