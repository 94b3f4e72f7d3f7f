#include "profile/call_tree.h"
#include "base/array.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int labels_init(struct labels *labels, const struct fgprof_profile *profile)
{
    *labels = (struct labels){
        .of_frame = calloc(frame_numbers(profile) + 1, sizeof *labels->of_frame),
    };
    if (!labels->of_frame || strings_init(&labels->texts) ||
        array_reserve(&labels->roles, &labels->role_capacity, 1))
        return -ENOMEM;
    labels->roles[0] = 0; /* of "" */
    return 0;
}

void labels_free(struct labels *labels)
{
    strings_free(&labels->texts);
    free(labels->roles);
    free(labels->of_frame);
}

int label_add(struct labels *labels, const char *text, uint32_t *ret_label)
{
    size_t known = labels->texts.count;
    if (array_reserve(&labels->roles, &labels->role_capacity, known + 1) ||
        strings_intern(&labels->texts, text, ret_label))
        return -ENOMEM;
    if (labels->texts.count > known)
        labels->roles[*ret_label] = (unsigned char)place_roles(text);
    return 0;
}

/* Adds the text as a label, and frees it. */
static int add_text(struct labels *labels, struct buffer *text, uint32_t *ret_label)
{
    int err = text->error;
    if (!err)
        err = label_add(labels, text->bytes ? text->bytes : "", ret_label);
    buffer_free(text);
    return err;
}

/* Marks the kernel's functions and generated ones as folded stacks do. */
static int label_of_frame(struct labels *labels, const struct fgprof_profile *profile,
                          const struct profile_frame *frame, uint32_t *ret_label)
{
    const struct profile_location *location = frame->location;
    uint32_t *known = &labels->of_frame[frame_number(profile, frame)];
    if (!*known) {
        struct buffer text = {0};
        if (frame->line) {
            uint32_t name = profile->functions[frame->line->function].name;
            buffer_puts(&text, strings_get(&profile->strings, name));
            buffer_puts(&text, location->is_kernel             ? "_[k]"
                               : location->jit_function_plus_1 ? "_[j]"
                                                               : "");
        } else {
            frame_append_unnamed(&text, profile, location, false);
        }
        int err = add_text(labels, &text, ret_label);
        if (err)
            return err;
        *known = *ret_label + 1;
    }
    *ret_label = *known - 1;
    return 0;
}

static int append(struct labelled_stack *labelled, uint32_t label)
{
    return array_append(&labelled->labels, &labelled->depth, &labelled->capacity, label);
}

static bool is_wrapper(const struct labels *labels, uint32_t label)
{
    return label_has_role(labels, label, LABEL_WRAPPER) &&
           !label_has_role(labels, label, LABEL_LOCK);
}

int labels_of_stack(struct labels *labels, const struct fgprof_profile *profile,
                    const struct profile_stack *stack, struct labelled_stack *labelled)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    uint32_t label;
    int err = 0;
    bool is_in_library = false, was_left_out = false, is_started = false;
    labelled->depth = 0;
    while (!err && frame_next_from_root(profile, stack, &walk, &frame)) {
        bool was_in_library = is_in_library;
        labelled->depth -= was_left_out;
        is_in_library =
            place_is_in_library(profile, frame.location, PLACE_C_LIBRARY | PLACE_GO_RUNTIME);
        if (is_in_library && !was_in_library)
            labelled->program_depth = labelled->depth + 1;
        err = label_of_frame(labels, profile, &frame, &label);
        if (!err)
            err = append(labelled, label);
        /* It stays only if it is the leaf. */
        was_left_out =
            !err &&
            (is_wrapper(labels, label) ||
             (!is_started && place_is_in_library(profile, frame.location, PLACE_CXX_LIBRARY)));
        is_started = is_started || !(was_left_out || is_in_library);
    }
    if (!err && !stack->depth)
        err = label_add(labels, "[unknown]", &label) ? -ENOMEM : append(labelled, label);
    if (!is_in_library)
        labelled->program_depth = labelled->depth;
    return err;
}

#define SEPARATOR " > "
#define SEPARATOR_COLUMNS 3
#define OMISSION SEPARATOR "..."
#define OMISSION_COLUMNS 6
#define NAME_COLUMNS 34 /* of one function's name: two and what is between them always fit */

static int get_node(struct call_tree *tree, uint32_t caller, uint32_t label, uint32_t *ret_node)
{
    const struct call_node node = {.caller = caller, .label = label};
    return INDEX_INTERN(&tree->index, offsetof(struct call_node, self_ns), &node, &tree->nodes,
                        &tree->count, &tree->capacity, ret_node);
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

size_t call_path_start(const struct labels *labels, const uint32_t *path, size_t depth)
{
    size_t first = 0;
    while (first + 1 < depth && label_has_role(labels, path[first], LABEL_START))
        first++;
    return first;
}

void call_path_append(struct buffer *buffer, const struct labels *labels, const uint32_t *path,
                      size_t depth, size_t kept)
{
    size_t last = all_fit(labels, path, depth) ? depth : last_that_fit(labels, path, depth);
    for (size_t i = 0; i < depth; i++) {
        bool is_left_out = i && i < depth - last && i != kept;
        if (is_left_out && (i == 1 || i - 1 == kept))
            buffer_puts(buffer, OMISSION);
        if (is_left_out)
            continue;
        buffer_puts(buffer, i ? SEPARATOR : "");
        name_append_short(buffer, label_text(labels, path[i]),
                          i == kept ? CALL_TREE_PATH_COLUMNS : NAME_COLUMNS);
    }
}

void call_tree_append_path(struct buffer *buffer, const struct call_tree *tree, uint32_t node,
                           const struct labels *labels)
{
    uint32_t *path;
    size_t depth;
    if (call_tree_path(tree, node, &path, &depth)) {
        buffer->error = -ENOMEM;
        return;
    }
    size_t first = call_path_start(labels, path, depth);
    call_path_append(buffer, labels, path + first, depth - first, CALL_PATH_NONE_KEPT);
    free(path);
}
