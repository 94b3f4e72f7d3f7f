/* The labels of a program's threads: where they are, and what they say. */
#ifndef FGPROF_WORKER_LABELS_H
#define FGPROF_WORKER_LABELS_H

#include "label/process_context.h"
#include "sampler/channel.h"
#include "worker/maps.h"
#include "worker/results.h"

/* Zeroed at first. */
struct program_labels {
    struct throttle reading; /* of the process's context */
    struct process_context context;
    struct throttle searching;  /* of the modules, for the variable, */
    size_t mapping_count;       /* when the space had so many mappings */
    struct context_place place; /* where the variable is; CONTEXT_NOWHERE: not known */
    struct context_place told;  /* as the sampling thread knows it */
};

/* Finds where the program's threads have their contexts, and tells the sampling thread. Costs
 * nothing if the process publishes no context: without that, its threads' are not to be read (OTEP
 * 4947). Returns 0 or
 * -ENOMEM. */
int program_labels_update(struct program_labels *labels, const struct program_maps *maps,
                          const struct observation *observation, struct channel *channel);

/* Sets *ret_set_plus_1 to the labels of the observation, and counts what became of its context.
 * Returns 0 or -ENOMEM. */
int program_labels_take(struct program_labels *labels, struct results *results,
                        const struct observation *observation, uint32_t *ret_set_plus_1);

void program_labels_free(struct program_labels *labels);

#endif
