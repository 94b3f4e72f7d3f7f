/* Finds and reads the labels of a program's threads. */
#ifndef FGPROF_WORKER_LABELS_H
#define FGPROF_WORKER_LABELS_H

#include "elf/query.h"
#include "label/process_context.h"
#include "sampler/channel.h"
#include "worker/means.h"
#include "worker/program_maps.h"
#include "worker/results.h"

/* The thread's span by the label of an observation. */
struct span_sight {
    bool is_known;     /* false: the labels could not be read, and the span continues */
    uint64_t identity; /* of the value and the ids; 0: no span */
};

/* Zeroed at first. */
struct program_labels {
    struct throttle reading; /* of the process's context */
    struct process_context context;
    struct throttle searching;  /* of the modules, for the variable, */
    size_t mapping_count;       /* the number of mappings of the space then */
    struct context_place place; /* where the variable is; CONTEXT_NOWHERE: not known */
    struct context_place told;  /* as the sampling thread knows it */
};

/* Finds where the program's threads have their contexts, and sends that to the sampling thread.
 * Costs nothing if the process publishes no context: then those of its threads must not be read
 * (OTEP 4947). Returns 0 or -ENOMEM. */
int program_labels_update(struct program_labels *labels, const struct means *means,
                          const struct program_maps *maps, const struct observation *observation);

/* Sets *ret_set_plus_1 to the labels of the observation, and *ret_sight to what they say about the
 * span of the label means->spans.key, if that is not NULL; and counts how reading its context went.
 * Returns 0 or -ENOMEM. */
int program_labels_take(struct program_labels *labels, const struct means *means,
                        const struct observation *observation, uint32_t *ret_set_plus_1,
                        struct span_sight *ret_sight);

/* Sets *ret_set_plus_1 to the set of these labels, each a key and a value, both terminated by NUL;
 * and counts how many were accepted. Returns 0 or -ENOMEM. */
int labels_take_texts(struct results *results, const char *texts, size_t bytes,
                      uint32_t *ret_set_plus_1);

void program_labels_free(struct program_labels *labels);

#endif
