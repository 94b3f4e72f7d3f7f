#include "profile/name_classes.h"
#include "base/array.h"
#include "symbol/variables.h"

#include <errno.h>
#include <stdlib.h>

struct class_key {
    const struct module *module;
    uint64_t vtable; /* the module's own address */
};

struct class_name {
    struct class_key key;
    char *name; /* NULL: it has none */
};

static bool is_key(const void *owner, uint32_t item, const void *key)
{
    const struct class_key *known = &((const struct class_names *)owner)->items[item].key;
    const struct class_key *sought = key;
    return known->module == sought->module && known->vtable == sought->vtable;
}

static int add(struct class_names *names, const struct class_key *key, uint64_t hash)
{
    struct class_name added = {.key = *key};
    int err = class_find(key->module, key->vtable, &added.name);
    if (err == -ENOMEM || array_reserve(&names->items, &names->capacity, names->count + 1) ||
        index_add(&names->index, hash, (uint32_t)names->count)) {
        if (!err)
            free(added.name);
        return -ENOMEM;
    }
    names->items[names->count++] = added;
    return 0;
}

int class_names_get(struct class_names *names, const struct space *space, uint64_t vtable,
                    const char **ret_name)
{
    const struct mapping *mapping = vtable ? space_find_memory(space, vtable) : NULL;
    *ret_name = NULL;
    if (!mapping)
        return 0;
    const struct class_key key = {mapping->module, vtable - mapping->bias};
    uint64_t hash = hash_bytes(&key, sizeof key, 0);
    uint32_t found = index_find(&names->index, hash, is_key, names, &key);
    if (found == INDEX_NONE) {
        found = (uint32_t)names->count;
        if (add(names, &key, hash))
            return -ENOMEM;
    }
    *ret_name = names->items[found].name;
    return 0;
}

void class_names_free(struct class_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
    index_free(&names->index);
}
