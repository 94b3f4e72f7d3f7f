/* A call tree. A node is a function together with the path to it: its label and its caller's node.
 * Its self time was spent in the function itself; its total time includes the functions that it
 * called. */
#ifndef FGPROF_PROFILE_CALL_TREE_H
#define FGPROF_PROFILE_CALL_TREE_H

#include "profile/frame.h"
#include "profile/place.h"

/* Labels number the names of a profile's frames. Frames with the same name have the same label,
 * whatever their addresses. */

struct labels {
    struct strings texts;
    unsigned char *roles; /* of each text: a sum of enum label_role */
    size_t role_capacity;
    uint32_t *of_frame; /* by frame_number(): its label + 1; 0: not known yet */
};

/* A stack by its labels, root first. */
struct labelled_stack {
    uint32_t *labels;
    size_t depth, capacity;
    /* The number of labels down to the program's call into the C library; `depth` if the leaf is
     * not in that library. */
    size_t program_depth;
};

/* Returns 0 or -ENOMEM; free it in either case. */
int labels_init(struct labels *labels, const struct fgprof_profile *profile);
void labels_free(struct labels *labels);

/* Finds or adds the label for a text. Returns 0 or -ENOMEM. */
int label_add(struct labels *labels, const char *text, uint32_t *ret_label);

static inline const char *label_text(const struct labels *labels, uint32_t label)
{
    return strings_get(&labels->texts, label);
}

static inline bool label_has_role(const struct labels *labels, uint32_t label, unsigned roles)
{
    return labels->roles[label] & roles;
}

/* Fills `labelled`, which starts zeroed and may be reused. Omits wrappers, and functions of the C++
 * library before the program's first function, unless they are the leaf. Returns 0 or -ENOMEM. */
int labels_of_stack(struct labels *labels, const struct fgprof_profile *profile,
                    const struct profile_stack *stack, struct labelled_stack *labelled);

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

/* Adds time spent at the end of the path `labels`, root first. Returns 0 or -ENOMEM. */
int call_tree_add(struct call_tree *tree, const uint32_t *labels, size_t depth, uint64_t time_ns,
                  uint32_t *ret_node);
void call_tree_free(struct call_tree *tree);

/* The labels on the path to the node, root first. The caller frees them. Returns 0 or -ENOMEM. */
int call_tree_path(const struct call_tree *tree, uint32_t node, uint32_t **ret_labels,
                   size_t *ret_depth);

/* How many functions of the path start every thread: they come first, and are not shown. */
size_t call_path_start(const struct labels *labels, const uint32_t *path, size_t depth);

/* Appends a path, root first, as call_tree_append_path does. Number `kept` is shown in any case. */
#define CALL_PATH_NONE_KEPT SIZE_MAX
void call_path_append(struct buffer *buffer, const struct labels *labels, const uint32_t *path,
                      size_t depth, size_t kept);

/* Appends the path to the node, such as "main > serve > ... > read", in at most
 * CALL_TREE_PATH_COLUMNS columns. Functions that start every thread are omitted; long names and
 * long paths are shortened in the middle. */
#define CALL_TREE_PATH_COLUMNS 80
void call_tree_append_path(struct buffer *buffer, const struct call_tree *tree, uint32_t node,
                           const struct labels *labels);

#endif
