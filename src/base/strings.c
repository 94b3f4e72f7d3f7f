#include "base/strings.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int strings_init(struct strings *strings)
{
    *strings = (struct strings){0};
    uint32_t empty;
    return strings_intern(strings, "", &empty);
}

void strings_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    index_free(&strings->index);
    *strings = (struct strings){0};
}

static bool equals(const void *owner, uint32_t item, const void *key)
{
    const struct strings *strings = owner;
    return strcmp(strings->items[item], key) == 0;
}

static uint64_t hash_of(const char *text)
{
    return hash_bytes(text, strlen(text), 0);
}

static bool find(const struct strings *strings, const char *text, uint64_t hash, uint32_t *ret_id)
{
    uint32_t id = index_find(&strings->index, hash, equals, strings, text);
    if (id != INDEX_NONE)
        *ret_id = id;
    return id != INDEX_NONE;
}

bool strings_find(const struct strings *strings, const char *text, uint32_t *ret_id)
{
    return find(strings, text, hash_of(text), ret_id);
}

int strings_intern(struct strings *strings, const char *text, uint32_t *ret_id)
{
    uint64_t hash = hash_of(text);
    if (find(strings, text, hash, ret_id))
        return 0;
    if (array_reserve(&strings->items, &strings->capacity, strings->count + 1))
        return -ENOMEM;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    uint32_t id = (uint32_t)strings->count;
    if (index_add(&strings->index, hash, id)) {
        free(copy);
        return -ENOMEM;
    }
    strings->items[strings->count++] = copy;
    *ret_id = id;
    return 0;
}

const char *strings_get(const struct strings *strings, uint32_t id)
{
    return strings->items[id];
}
