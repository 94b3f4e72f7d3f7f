#include "count/label_sets.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_value(const void *owner, uint32_t item, const void *key)
{
    return memcmp(&((const struct label_sets *)owner)->values[item], key, sizeof(struct label)) ==
           0;
}

static struct label_key *find_key(struct label_sets *sets, uint32_t key)
{
    for (size_t i = 0; i < sets->key_count; i++) {
        if (sets->keys[i].key == key)
            return &sets->keys[i];
    }
    if (array_reserve(&sets->keys, &sets->key_capacity, sets->key_count + 1))
        return NULL;
    sets->keys[sets->key_count] = (struct label_key){key, 0};
    return &sets->keys[sets->key_count++];
}

/* A value that is new and one too many is not interned, but replaced. */
static int take_value(struct label_sets *sets, struct strings *strings, const char *value,
                      struct label *label, bool *ret_is_limited)
{
    struct label_key *key = find_key(sets, label->key);
    if (!key)
        return -ENOMEM;
    if (key->values >= LABEL_VALUES_MAX) {
        bool is_known = strings_find(strings, value, &label->value) &&
                        index_find(&sets->value_index, hash_bytes(label, sizeof *label, 0),
                                   is_same_value, sets, label) != INDEX_NONE;
        *ret_is_limited = *ret_is_limited || !is_known;
        return is_known ? 0 : strings_intern(strings, LABEL_OTHER, &label->value);
    }
    if (strings_intern(strings, value, &label->value))
        return -ENOMEM;
    uint64_t hash = hash_bytes(label, sizeof *label, 0);
    if (index_find(&sets->value_index, hash, is_same_value, sets, label) != INDEX_NONE)
        return 0;
    if (array_reserve(&sets->values, &sets->value_capacity, sets->value_count + 1) ||
        index_add(&sets->value_index, hash, (uint32_t)sets->value_count))
        return -ENOMEM;
    sets->values[sets->value_count++] = *label;
    key->values++;
    return 0;
}

struct set_key {
    const struct label *labels;
    size_t count;
};

static bool is_same_set(const void *owner, uint32_t item, const void *key)
{
    const struct label_sets *sets = owner;
    const struct set_key *sought = key;
    return sets->sets[item].count == sought->count &&
           memcmp(&sets->labels[sets->sets[item].first], sought->labels,
                  sought->count * sizeof *sought->labels) == 0;
}

static int intern_set(struct label_sets *sets, const struct set_key *key, uint32_t *ret_set_plus_1,
                      bool *ret_is_limited)
{
    uint64_t hash = hash_bytes(key->labels, key->count * sizeof *key->labels, 0);
    uint32_t found = index_find(&sets->set_index, hash, is_same_set, sets, key);
    if (found != INDEX_NONE) {
        *ret_set_plus_1 = found + 1;
        return 0;
    }
    if (sets->set_count == LABEL_SETS_MAX) {
        *ret_set_plus_1 = 0;
        *ret_is_limited = true;
        return 0;
    }
    if (array_reserve(&sets->labels, &sets->label_capacity, sets->label_count + key->count) ||
        array_reserve(&sets->sets, &sets->set_capacity, sets->set_count + 1) ||
        index_add(&sets->set_index, hash, (uint32_t)sets->set_count))
        return -ENOMEM;
    memcpy(&sets->labels[sets->label_count], key->labels, key->count * sizeof *key->labels);
    sets->sets[sets->set_count++] =
        (struct label_set){(uint32_t)sets->label_count, (uint32_t)key->count};
    sets->label_count += key->count;
    *ret_set_plus_1 = (uint32_t)sets->set_count;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct label_text *left = a, *right = b;
    return strcmp(left->key, right->key);
}

int label_sets_add(struct label_sets *sets, struct strings *strings,
                   const struct label_text *labels, size_t count, uint32_t *ret_set_plus_1,
                   bool *ret_is_limited)
{
    struct label_text sorted[LABELS_MAX];
    struct label items[LABELS_MAX];
    *ret_is_limited = false;
    *ret_set_plus_1 = 0;
    if (!count || count > LABELS_MAX)
        return 0;
    memcpy(sorted, labels, count * sizeof *labels);
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 0; i < count; i++) {
        int err = strings_intern(strings, sorted[i].key, &items[i].key);
        if (!err)
            err = take_value(sets, strings, sorted[i].value, &items[i], ret_is_limited);
        if (err)
            return err;
    }
    const struct set_key key = {items, count};
    return intern_set(sets, &key, ret_set_plus_1, ret_is_limited);
}

const char *label_sets_value(const struct label_sets *sets, const struct strings *strings,
                             uint32_t set_plus_1, const char *key)
{
    const struct label_set *set = set_plus_1 ? &sets->sets[set_plus_1 - 1] : NULL;
    for (uint32_t i = 0; set && i < set->count; i++) {
        const struct label *label = &sets->labels[set->first + i];
        if (strcmp(strings_get(strings, label->key), key) == 0)
            return strings_get(strings, label->value);
    }
    return NULL;
}

void label_sets_free(struct label_sets *sets)
{
    free(sets->labels);
    free(sets->sets);
    free(sets->values);
    free(sets->keys);
    index_free(&sets->set_index);
    index_free(&sets->value_index);
    *sets = (struct label_sets){0};
}
