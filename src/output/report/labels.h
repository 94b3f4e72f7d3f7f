/* The frames of a profile's stacks by name. Frames that are called the same are the same here,
 * whatever their addresses: a label is the number of a name. */
#ifndef FGPROF_OUTPUT_REPORT_LABELS_H
#define FGPROF_OUTPUT_REPORT_LABELS_H

#include "profile/profile.h"

/* What a function is for. */
enum label_role {
    LABEL_START = 1,   /* starts a thread or a program, and is on all its stacks */
    LABEL_LOCK = 2,    /* waits for a lock */
    LABEL_WRAPPER = 4, /* between a lock's user and the function that waits */
};

struct labels {
    struct strings texts;
    unsigned char *roles; /* of each text: a sum of enum label_role */
    size_t role_capacity;
    uint32_t *of_line, *of_location; /* each + 1; 0: not known yet. Of a location without lines. */
};

/* A stack by its labels, root first. */
struct labelled_stack {
    uint32_t *labels;
    size_t depth, capacity;
    /* The number of the outermost of those frames at the leaf that are in the C library: what the
     * program called. `depth` if the leaf is in none. */
    size_t library_call;
};

/* Returns 0 or -ENOMEM; it may be freed in either case. */
int labels_init(struct labels *labels, const struct fgprof_profile *profile);
void labels_free(struct labels *labels);

/* Finds the label for a text of ours, or adds it. Returns 0 or -ENOMEM. */
int label_add(struct labels *labels, const char *text, uint32_t *ret_label);

static inline const char *label_text(const struct labels *labels, uint32_t label)
{
    return strings_get(&labels->texts, label);
}

static inline bool label_has_role(const struct labels *labels, uint32_t label, unsigned roles)
{
    return labels->roles[label] & roles;
}

/* Fills `labelled`, which is made of zeros at first and may be used again. Returns 0 or -ENOMEM. */
int labels_of_stack(struct labels *labels, const struct fgprof_profile *profile,
                    const struct profile_stack *stack, struct labelled_stack *labelled);

#endif
