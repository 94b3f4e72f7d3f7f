#include "symbol/dwarf/names.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 16 /* a longer one is a circle */
#define KEPT_BYTES_MAX ((size_t)32 << 20)

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
    index_free(&names->index);
    *names = (struct names){0};
}

void names_forget_many(struct names *names)
{
    if (names->bytes > KEPT_BYTES_MAX)
        names_free(names);
}

static bool holds(const struct unit *unit, const struct debug_info *info, uint64_t at)
{
    return unit->info == info && at >= unit->first_die && at < unit->end;
}

static void take(char **name, const struct unit *unit, const struct value *value)
{
    const char *text = !*name && value->form ? value_string(unit, value) : NULL;
    if (text)
        *name = strdup(text);
}

static char *find(struct names *names, const struct unit *home, uint64_t at)
{
    struct unit unit = *home;
    struct debug_info *info = home->info;
    char *linkage_name = NULL, *name = NULL;
    for (int i = 0; i < CHAIN_MAX && !linkage_name; i++) {
        struct die die;
        if (!holds(&unit, info, at)) {
            if (!holds(&names->other, info, at) && unit_read_around(info, at, &names->other))
                break;
            unit = names->other;
        }
        if (!die_read_at(&unit, at, &die))
            break;
        take(&linkage_name, &unit, &die.linkage_name);
        take(&name, &unit, &die.name);
        const struct value *next = die.origin.form ? &die.origin : &die.specification;
        if (!value_reference(&unit, next, &info, &at))
            break;
    }
    if (!linkage_name)
        return name;
    free(name);
    return linkage_name;
}

static bool is_known(const void *owner, uint32_t item, const void *key)
{
    const struct known_name *known = &((const struct names *)owner)->items[item];
    const struct known_name *sought = key;
    return known->info == sought->info && known->die == sought->die;
}

const char *names_get(struct names *names, const struct unit *unit, uint64_t die)
{
    struct known_name name = {.info = unit->info, .die = die};
    uint64_t hash = hash_bytes(&die, sizeof die, (uintptr_t)unit->info);
    uint32_t number = index_find(&names->index, hash, is_known, names, &name);
    if (number != INDEX_NONE)
        return names->items[number].name;
    if (array_reserve(&names->items, &names->capacity, names->count + 1) ||
        index_add(&names->index, hash, (uint32_t)names->count))
        return NULL;
    name.name = find(names, unit, die);
    names->bytes += sizeof name + (name.name ? strlen(name.name) : 0);
    names->items[names->count++] = name;
    return name.name;
}
