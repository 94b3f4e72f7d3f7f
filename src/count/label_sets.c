#include "count/label_sets.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct label_key *find_key(const struct label_sets *sets, uint32_t key)
{
    for (size_t i = 0; i < sets->key_count; i++) {
        if (sets->keys[i].key == key)
            return &sets->keys[i];
    }
    return NULL;
}

/* *ret_key is NULL for a new key beyond the limit. */
static int take_key(struct label_sets *sets, const char *text, struct label_key **ret_key)
{
    uint32_t key;
    bool is_full = sets->key_count == LABEL_KEYS_MAX;
    *ret_key = NULL;
    if (is_full && !strings_find(&sets->strings, text, &key))
        return 0;
    if (!is_full && strings_intern(&sets->strings, text, &key))
        return -ENOMEM;
    *ret_key = find_key(sets, key);
    if (*ret_key || is_full)
        return 0;
    if (array_append(&sets->keys, &sets->key_count, &sets->key_capacity,
                     (struct label_key){key, 0}))
        return -ENOMEM;
    *ret_key = &sets->keys[sets->key_count - 1];
    return 0;
}

/* Replaces a new value beyond the limit by LABEL_OTHER, which is not counted. */
static int take_value(struct label_sets *sets, const char *value, struct label_key *key,
                      struct label *label, bool *ret_is_limited)
{
    if (strcmp(value, LABEL_OTHER) == 0)
        return strings_intern(&sets->strings, LABEL_OTHER, &label->value);
    if (key->values >= LABEL_VALUES_MAX) {
        bool is_known =
            strings_find(&sets->strings, value, &label->value) &&
            INDEX_FIND(&sets->value_index, sizeof *label, label, sets->values) != INDEX_NONE;
        *ret_is_limited = *ret_is_limited || !is_known;
        return is_known ? 0 : strings_intern(&sets->strings, LABEL_OTHER, &label->value);
    }
    if (strings_intern(&sets->strings, value, &label->value))
        return -ENOMEM;
    size_t before = sets->value_count;
    uint32_t number;
    int err = INDEX_INTERN(&sets->value_index, sizeof *label, label, &sets->values,
                           &sets->value_count, &sets->value_capacity, &number);
    key->values += sets->value_count > before;
    return err;
}

/* Adds the label to `items`, unless its key is beyond the limit. */
static int take_label(struct label_sets *sets, const struct label_text *text, struct label *items,
                      size_t *count, bool *ret_is_limited)
{
    struct label_key *key;
    int err = take_key(sets, text->key, &key);
    *ret_is_limited = *ret_is_limited || (!err && !key);
    if (err || !key)
        return err;
    struct label *label = &items[(*count)++];
    label->key = key->key;
    return take_value(sets, text->value, key, label, ret_is_limited);
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
        INDEX_APPEND(&sets->set_index, hash, &sets->sets, &sets->set_count, &sets->set_capacity,
                     (struct label_set){(uint32_t)sets->label_count, (uint32_t)key->count}))
        return -ENOMEM;
    memcpy(&sets->labels[sets->label_count], key->labels, key->count * sizeof *key->labels);
    sets->label_count += key->count;
    *ret_set_plus_1 = (uint32_t)sets->set_count;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct label_text *left = a, *right = b;
    return strcmp(left->key, right->key);
}

int label_sets_add(struct label_sets *sets, const struct label_text *labels, size_t count,
                   uint32_t *ret_set_plus_1, bool *ret_is_limited)
{
    struct label_text sorted[LABELS_MAX];
    struct label items[LABELS_MAX];
    size_t kept = 0;
    *ret_is_limited = false;
    *ret_set_plus_1 = 0;
    if (!count || count > LABELS_MAX)
        return 0;
    memcpy(sorted, labels, count * sizeof *labels);
    array_sort(sorted, count, compare_keys);
    for (size_t i = 0; i < count; i++) {
        int err = take_label(sets, &sorted[i], items, &kept, ret_is_limited);
        if (err)
            return err;
    }
    if (!kept)
        return 0;
    const struct set_key key = {items, kept};
    return intern_set(sets, &key, ret_set_plus_1, ret_is_limited);
}

static struct label_text text_of(const struct label_sets *sets, const struct label *label)
{
    return (struct label_text){strings_get(&sets->strings, label->key),
                               strings_get(&sets->strings, label->value)};
}

const char *label_sets_value(const struct label_sets *sets, uint32_t set_plus_1, const char *key)
{
    const struct label_set *set = set_plus_1 ? &sets->sets[set_plus_1 - 1] : NULL;
    for (uint32_t i = 0; set && i < set->count; i++) {
        struct label_text text = text_of(sets, &sets->labels[set->first + i]);
        if (strcmp(text.key, key) == 0)
            return text.value;
    }
    return NULL;
}

static int add_again(const struct label_sets *from, const struct label_set *set,
                     struct label_sets *to)
{
    struct label_text labels[LABELS_MAX];
    uint32_t set_plus_1;
    bool is_limited;
    for (uint32_t i = 0; i < set->count; i++)
        labels[i] = text_of(from, &from->labels[set->first + i]);
    return label_sets_add(to, labels, set->count, &set_plus_1, &is_limited);
}

/* Sets are added in order, so that each gets its number in `rows`. */
int label_sets_keep(const struct label_sets *sets, const struct renumber *rows,
                    struct label_sets *ret_sets)
{
    struct label_sets kept = {0};
    int err = 0;
    for (size_t i = 0; i < sets->set_count && !err; i++) {
        if (renumber_of(rows, (uint32_t)i) != ROW_GONE)
            err = add_again(sets, &sets->sets[i], &kept);
    }
    if (err)
        label_sets_free(&kept);
    else
        *ret_sets = kept;
    return err;
}

size_t label_sets_bytes(const struct label_sets *sets)
{
    return sets->label_count * sizeof *sets->labels + sets->set_count * sizeof *sets->sets +
           sets->value_count * sizeof *sets->values +
           (sets->set_index.slot_count + sets->value_index.slot_count) * sizeof(struct index_slot) +
           strings_bytes(&sets->strings);
}

void label_sets_free(struct label_sets *sets)
{
    free(sets->labels);
    free(sets->sets);
    free(sets->values);
    free(sets->keys);
    index_free(&sets->set_index);
    index_free(&sets->value_index);
    strings_free(&sets->strings);
    *sets = (struct label_sets){0};
}
