/* What the worker knows of each program, by number. */
#ifndef FGPROF_WORKER_PROGRAMS_H
#define FGPROF_WORKER_PROGRAMS_H

#include "worker/generated_code.h"
#include "worker/goroutines.h"
#include "worker/labels.h"
#include "worker/program_maps.h"
#include "worker/python.h"
#include "worker/python_tasks.h"
#include "worker/frame_pointer_sites.h"

struct program_tables {
    bool is_peer; /* peer_waits_begin was called */
    struct program_maps maps;
    struct generated_code generated;
    struct program_labels labels;
    struct program_python python;
    struct program_tasks tasks;
    struct program_goroutines goroutines;
    struct sites sites; /* frame pointers of sleeping threads that needed them */
};

struct numbered_program {
    uint32_t number;
    struct program_tables *tables;
};

/* Those that were observed and have not ended, by number. Zeroed at first. */
struct programs {
    struct numbered_program *items;
    size_t count, capacity;
};

/* The tables of the observation's program: empty at first, valid until the program ends. Returns 0
 * or -ENOMEM. */
int programs_get(struct programs *programs, const struct program *program,
                 struct program_tables **ret_tables);

/* NULL: it has none. */
struct program_tables *programs_find(const struct programs *programs, uint32_t number);

/* Ends a program that has no more observations: reads the rest of its files about generated code,
 * and keeps only what names need. Returns 0 or -ENOMEM. */
int programs_end(struct programs *programs, uint32_t number, struct results *results,
                 struct rule_tables *rules);

/* The same for all programs that are left. */
int programs_end_all(struct programs *programs, struct results *results, struct rule_tables *rules);

void programs_free(struct programs *programs);

#endif
