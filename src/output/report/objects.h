/* The contents of a report of objects: sums by stack and by function. objects.c makes it,
 * objects_text.c and objects_json.c write it. */
#ifndef FGPROF_OUTPUT_REPORT_OBJECTS_H
#define FGPROF_OUTPUT_REPORT_OBJECTS_H

#include "profile/call_tree.h"
#include "profile/objects.h"
#include "profile/view.h"
#include "base/sink.h"

#define OBJECTS_ROWS_MAX 10

#define OBJECT_MEASURES (BYTES_IN_USE + 1)

/* The sums of a stack or a function. */
struct object_sums {
    double own[OBJECT_MEASURES];   /* by enum object_measure, of all objects: an estimate */
    double total[OBJECT_MEASURES]; /* of a function, with what it calls */
    uint32_t thread_name;          /* of a thread that was made, the first that is known */
    bool has_other_names;
};

/* The rows with the most of a measure, or with the least. */
struct object_rows {
    struct object_row {
        uint32_t at; /* the number of a node of the tree, or of a label */
        double value;
    } rows[OBJECTS_ROWS_MAX];
    size_t count, left_out;
};

struct objects_report {
    const struct fgprof_profile *profile;
    const struct profile_view *view;
    struct labels labels;
    struct call_tree tree;
    struct object_sums *stacks; /* by node */
    size_t stack_count, stack_capacity;
    struct object_sums *functions; /* by label */
    size_t function_count, function_capacity;
    struct object_sums all;
    /* Sampled objects, not scaled; those with a cut stack; those with an unnamed frame. */
    uint64_t seen, seen_cut, seen_unnamed; /* not of a difference */
};

/* The stacks with the most, or if `is_least`, those below 0, the least first. */
struct object_rows objects_top_stacks(const struct objects_report *report,
                                      enum object_measure measure, bool is_least);
/* The functions with the most of their own, without those that start threads. */
struct object_rows objects_top_functions(const struct objects_report *report,
                                         enum object_measure measure);

/* Makes the report of a profile of objects, and fills the sink with it. */
void report_objects(const struct fgprof_profile *profile, const struct profile_view *view,
                    bool is_json, struct sink *sink);

/* Write the report. */
void report_objects_text(const struct objects_report *report, struct sink *sink);
void report_objects_json(const struct objects_report *report, struct sink *sink);

#endif
