/* Results of the comparisons, by the code that a frame was unwound from. */
#ifndef FGPROF_STEPS_TALLY_H
#define FGPROF_STEPS_TALLY_H

#include "mapping/space.h"
#include "unwind/rule_tables.h"
#include "unwind/stack.h"

#include <stdio.h>

enum verdict {
    VERDICT_EQUAL,
    VERDICT_CUT,     /* correct up to its end, and marked as cut */
    VERDICT_MISSING, /* one or more callers are left out */
    VERDICT_WRONG,   /* a frame that does not exist, or an end where there is none */
    VERDICT_DOUBT,   /* the return address is no longer where its call put it */
    VERDICT_COUNT
};

/* A place in a module, or an address outside all modules. */
struct spot {
    struct module *module;
    uint64_t address;
};

#define SPOTS_SHOWN 5

/* One difference. */
struct difference {
    enum verdict verdict;
    enum stack_cut cut;
    size_t depth;     /* of the frame whose caller was not found */
    unsigned form;    /* of the leaf's instruction */
    struct spot from; /* that frame */
    struct spot leaf;
    struct spot expected[SPOTS_SHOWN], found[SPOTS_SHOWN]; /* its callers */
    size_t expected_count, found_count;
    uint64_t count; /* of differences with the same verdict from the same place */
};

struct tally {
    uint64_t counts[VERDICT_COUNT];
    struct difference *items;
    size_t count, capacity;
    struct rule_tables *rules; /* to find out what kind of code it is */
};

struct spot tally_spot(struct space *space, uint64_t address);

/* Returns false if memory is short. */
bool tally_add(struct tally *tally, const struct difference *difference);

/* Prints the differences of at least this verdict, by function, at most `max_count` of them. */
void tally_print(struct tally *tally, FILE *out, size_t max_count);

void tally_free(struct tally *tally);

#endif
