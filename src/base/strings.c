#include "base/strings.h"
#include "base/array.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MALLOC_BYTES 16

int strings_init(struct strings *strings)
{
    *strings = (struct strings){0};
    uint32_t empty;
    int err = strings_intern(strings, "", &empty);
    if (err)
        strings_free(strings);
    return err;
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
    strings->text_bytes += strlen(copy) + 1;
    *ret_id = id;
    return 0;
}

int strings_print(struct strings *strings, uint32_t *ret_id, const char *format, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return -ENOMEM;
    int err = strings_intern(strings, text, ret_id);
    free(text);
    return err;
}

void strings_keep(struct strings *strings, const struct renumber *rows)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (renumber_of(rows, (uint32_t)i) != ROW_GONE)
            continue;
        strings->text_bytes -= strlen(strings->items[i]) + 1;
        free(strings->items[i]);
    }
    renumber_move(rows, strings->items, sizeof *strings->items);
    strings->count = renumber_kept(rows);
    array_trim(&strings->items, &strings->capacity, strings->count);
    index_clear(&strings->index, strings->count);
    for (size_t i = 0; i < strings->count; i++)
        index_add(&strings->index, hash_of(strings->items[i]), (uint32_t)i);
}

/* With malloc(3)'s own bytes for each. */
size_t strings_bytes(const struct strings *strings)
{
    return strings->text_bytes + strings->count * (sizeof *strings->items + MALLOC_BYTES) +
           strings->index.slot_count * sizeof *strings->index.slots;
}

const char *strings_get(const struct strings *strings, uint32_t id)
{
    return strings->items[id];
}
