/* The labels that threads give themselves while they work on something, such as a request's route.
 *
 * Two tables. Labels: key and value, one set's after the other. Sets: which of the labels each has;
 * each distinct set occurs once. Keys and values come from the sampled processes and may be any
 * number, so all are bounded: beyond a number of distinct values, a key's other values become one,
 * and labels with further keys are left out. Sets can be forgotten, which makes room for others:
 * the rest then get new numbers, and keep their order. */
#ifndef FGPROF_COUNT_LABEL_SETS_H
#define FGPROF_COUNT_LABEL_SETS_H

#include "base/index.h"
#include "base/renumber.h"
#include "base/strings.h"

#define LABEL_KEYS_MAX 1024
#define LABEL_VALUES_MAX 1000 /* of a key */
#define LABEL_SETS_MAX 65536
#define LABEL_OTHER STRING_OTHER /* the value of a key that has had its number of values */

struct label { /* both in label_sets.strings */
    uint32_t key, value;
};

struct label_set {
    uint32_t first, count; /* in label_sets.labels, sorted by key */
};

/* A key, and how many distinct values it has had. */
struct label_key {
    uint32_t key, values;
};

/* Starts zeroed. */
struct label_sets {
    struct label *labels;
    size_t label_count, label_capacity;
    struct label_set *sets;
    size_t set_count, set_capacity;
    struct index set_index;
    struct label *values; /* the distinct ones, with their keys */
    size_t value_count, value_capacity;
    struct index value_index;
    struct label_key *keys;
    size_t key_count, key_capacity;
    struct strings strings;
};

/* A label as text. */
struct label_text {
    const char *key, *value;
};
#define LABELS_MAX 258 /* as many keys as a thread's context may have, and its two ids */

/* Sets *ret_set_plus_1 to the set of these labels, whose keys are distinct; 0: no labels, or there
 * are too many sets. *ret_is_limited: one of the limits was reached. Returns 0 or -ENOMEM. */
int label_sets_add(struct label_sets *sets, const struct label_text *labels, size_t count,
                   uint32_t *ret_set_plus_1, bool *ret_is_limited);

/* The value of the key in a set; NULL: it has none. */
const char *label_sets_value(const struct label_sets *sets, uint32_t set_plus_1, const char *key);

/* Copies the sets that are kept. Returns 0 or -ENOMEM. */
int label_sets_keep(const struct label_sets *sets, const struct renumber *rows,
                    struct label_sets *ret_sets);

size_t label_sets_bytes(const struct label_sets *sets);

void label_sets_free(struct label_sets *sets);

#endif
