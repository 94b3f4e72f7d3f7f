#include "count/objects.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 1024
/* Programs may keep any number of objects. Beyond this many, of all processes together, objects are
 * counted as lost. */
#define LIVE_MAX ((8u << 20) - 1)
/* Beyond this many rows, sizes are rounded to a few binary digits. */
#define EXACT_ROWS_MAX 65536
#define DIGITS 7

static int intern_maker(struct objects *objects, const struct object_maker *maker,
                        uint32_t *ret_maker)
{
    const struct counted_maker row = {.maker = *maker};
    return INDEX_INTERN(&objects->maker_index, sizeof *maker, &row, &objects->makers,
                        &objects->maker_count, &objects->maker_capacity, ret_maker);
}

static size_t slot_of(const struct objects *objects, uint32_t process, uint32_t kind, uint64_t key)
{
    uint64_t hash = hash_bytes(&key, sizeof key, (uint64_t)process << 32 | kind);
    return (size_t)hash & (objects->slot_count - 1);
}

static size_t slot_after(const struct objects *objects, size_t slot)
{
    return (slot + 1) & (objects->slot_count - 1);
}

/* The object's slot, or the free slot for it, which there is. */
static struct live_object *find(const struct objects *objects, uint32_t process, uint32_t kind,
                                uint64_t key)
{
    size_t slot = slot_of(objects, process, kind, key);
    for (;; slot = slot_after(objects, slot)) {
        struct live_object *object = &objects->slots[slot];
        if (!object->maker_plus_1 ||
            (object->key == key && object->process == process && object->kind == kind))
            return object;
    }
}

static int resize(struct objects *objects, size_t slot_count)
{
    struct objects resized = {.slot_count = slot_count};
    resized.slots = calloc(slot_count, sizeof *resized.slots);
    if (!resized.slots)
        return -ENOMEM;
    for (size_t i = 0; i < objects->slot_count; i++) {
        const struct live_object *object = &objects->slots[i];
        if (object->maker_plus_1)
            *find(&resized, object->process, object->kind, object->key) = *object;
    }
    free(objects->slots);
    objects->slots = resized.slots;
    objects->slot_count = slot_count;
    return 0;
}

/* Makes room for another object: at most half of the slots are in use. */
static int reserve(struct objects *objects)
{
    if (objects->live_count * 2 < objects->slot_count)
        return 0;
    return resize(objects, objects->slot_count ? objects->slot_count * 2 : SLOTS_FIRST);
}

/* Gives memory back if hardly any slots are in use. Without memory to do it they stay. */
static void trim(struct objects *objects)
{
    size_t slot_count = objects->slot_count;
    while (slot_count > SLOTS_FIRST && objects->live_count * 16 < slot_count)
        slot_count /= 2;
    if (slot_count < objects->slot_count)
        resize(objects, slot_count);
}

static void count_live(struct objects *objects, uint32_t kind)
{
    objects->live_count++;
    objects->live_of[kind % OBJECT_KINDS_MAX]++;
}

/* Frees a slot, and moves those behind it that would no longer be found. */
static void empty(struct objects *objects, size_t hole)
{
    objects->live_count--;
    objects->live_of[objects->slots[hole].kind % OBJECT_KINDS_MAX]--;
    for (size_t slot = slot_after(objects, hole); objects->slots[slot].maker_plus_1;
         slot = slot_after(objects, slot)) {
        const struct live_object *object = &objects->slots[slot];
        size_t home = slot_of(objects, object->process, object->kind, object->key);
        size_t mask = objects->slot_count - 1;
        if (((slot - home) & mask) < ((slot - hole) & mask))
            continue;
        objects->slots[hole] = *object;
        hole = slot;
    }
    objects->slots[hole] = (struct live_object){0};
}

static void remove_object(struct objects *objects, struct live_object *object)
{
    objects->makers[object->maker_plus_1 - 1].gone += object->weight;
    empty(objects, (size_t)(object - objects->slots));
}

static bool is_of(const struct live_object *object, uint32_t process, uint32_t kind)
{
    return object->maker_plus_1 && object->process == process && object->kind == kind;
}

static uint64_t rounded(uint64_t bytes)
{
    unsigned digits = bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
    if (digits <= DIGITS)
        return bytes;
    unsigned cut = digits - DIGITS;
    return ((bytes >> (cut - 1)) + 1) >> 1 << cut;
}

const struct object_maker *objects_find(const struct objects *objects, uint32_t process,
                                        uint32_t kind, uint64_t key)
{
    const struct live_object *object =
        objects->slot_count ? find(objects, process, kind, key) : NULL;
    return object && object->maker_plus_1 ? &objects->makers[object->maker_plus_1 - 1].maker : NULL;
}

int objects_made(struct objects *objects, const struct object_maker *maker, uint64_t key,
                 uint32_t weight)
{
    struct object_maker wanted = *maker;
    uint32_t number;
    if (objects->live_count >= LIVE_MAX &&
        !objects_find(objects, maker->process, maker->kind, key)) {
        objects->lost[maker->kind % OBJECT_KINDS_MAX]++;
        return 0;
    }
    if (objects->maker_count >= EXACT_ROWS_MAX)
        wanted.bytes = rounded(maker->bytes);
    if (reserve(objects) || intern_maker(objects, &wanted, &number))
        return -ENOMEM;
    struct live_object *object = find(objects, maker->process, maker->kind, key);
    if (object->maker_plus_1)
        objects->makers[object->maker_plus_1 - 1].gone += object->weight;
    else
        count_live(objects, maker->kind);
    objects->makers[number].made += weight;
    *object = (struct live_object){.key = key,
                                   .process = maker->process,
                                   .kind = maker->kind,
                                   .maker_plus_1 = number + 1,
                                   .weight = weight};
    return 0;
}

int objects_move(struct objects *objects, uint64_t key, const struct object_maker *maker)
{
    uint32_t number;
    struct live_object *object = find(objects, maker->process, maker->kind, key);
    if (intern_maker(objects, maker, &number))
        return -ENOMEM;
    objects->makers[object->maker_plus_1 - 1].made -= object->weight;
    objects->makers[number].made += object->weight;
    object->maker_plus_1 = number + 1;
    return 0;
}

void objects_rekey(struct objects *objects, uint32_t process, uint32_t kind, uint64_t key,
                   uint64_t new_key)
{
    struct live_object *slot = find(objects, process, kind, key);
    struct live_object object = *slot;
    empty(objects, (size_t)(slot - objects->slots));
    object.key = new_key;
    *find(objects, process, kind, new_key) = object;
    count_live(objects, kind);
}

void objects_gone(struct objects *objects, uint32_t process, uint32_t kind, uint64_t key)
{
    if (!objects->slot_count)
        return;
    struct live_object *object = find(objects, process, kind, key);
    if (object->maker_plus_1)
        remove_object(objects, object);
}

/* Empties the slots of the process and kind. Another object may move into an emptied slot, so the
 * slot is looked at again. */
static void empty_all(struct objects *objects, uint32_t process, uint32_t kind, bool are_gone)
{
    for (size_t i = 0; i < objects->slot_count;) {
        struct live_object *object = &objects->slots[i];
        if (!is_of(object, process, kind))
            i++;
        else if (are_gone)
            remove_object(objects, object);
        else
            empty(objects, i);
    }
    trim(objects);
}

void objects_forget(struct objects *objects, uint32_t process, uint32_t kind)
{
    empty_all(objects, process, kind, true);
}

void objects_leave(struct objects *objects, uint32_t process, uint32_t kind)
{
    empty_all(objects, process, kind, false);
}

static bool is_maker_of(const struct object_maker *maker, uint32_t process, uint32_t kind)
{
    return maker->process == process && maker->kind == kind;
}

void objects_keep(struct objects *objects, uint32_t process, uint32_t kind)
{
    for (size_t i = 0; i < objects->maker_count; i++) {
        struct counted_maker *counted = &objects->makers[i];
        if (is_maker_of(&counted->maker, process, kind))
            counted->kept = counted->made - counted->gone;
    }
}

void objects_leave_kept(struct objects *objects, uint32_t process, uint32_t kind)
{
    objects_leave(objects, process, kind);
    for (size_t i = 0; i < objects->maker_count; i++) {
        struct counted_maker *counted = &objects->makers[i];
        if (is_maker_of(&counted->maker, process, kind))
            counted->gone = counted->made > counted->kept ? counted->made - counted->kept : 0;
    }
}

/* An object that gains weight brings back some of those that went. Fewer than that may have gone,
 * because chance decides which objects weigh more and which go: then more were made than was known.
 */
void objects_weigh(struct objects *objects, uint32_t process, uint32_t kind, uint64_t key,
                   uint32_t weight, unsigned level)
{
    struct live_object *object = objects->slot_count ? find(objects, process, kind, key) : NULL;
    if (!object || !object->maker_plus_1)
        return;
    struct counted_maker *maker = &objects->makers[object->maker_plus_1 - 1];
    uint64_t gone = maker->gone + object->weight;
    maker->gone = gone > weight ? gone - weight : 0;
    maker->made += gone > weight ? 0 : weight - gone;
    object->weight = weight;
    object->level = (uint16_t)level;
}

static int compare_keys(const void *a, const void *b)
{
    const struct listed_object *left = a, *right = b;
    return ORDER(left->key, right->key);
}

int objects_list(const struct objects *objects, uint32_t process, uint32_t kind,
                 struct listed_object **items, size_t *capacity, size_t *ret_count)
{
    size_t count = 0;
    if (array_reserve(items, capacity, objects->live_count))
        return -ENOMEM;
    for (size_t i = 0; i < objects->slot_count; i++) {
        const struct live_object *object = &objects->slots[i];
        if (is_of(object, process, kind))
            (*items)[count++] = (struct listed_object){
                .key = object->key,
                .bytes = objects->makers[object->maker_plus_1 - 1].maker.bytes,
                .weight = object->weight,
                .level = object->level,
            };
    }
    array_sort(*items, count, compare_keys);
    *ret_count = count;
    return 0;
}

/* Adds the row, which was one of the first rows before, or adds its objects to the equal row. There
 * is room. */
static uint32_t put_again(struct objects *objects, const struct counted_maker *row)
{
    size_t count = objects->maker_count;
    uint32_t number;
    index_intern(&objects->maker_index, sizeof row->maker, row, objects->makers, sizeof *row,
                 &objects->maker_count, &number);
    if (number < count) {
        objects->makers[number].made += row->made;
        objects->makers[number].gone += row->gone;
        objects->makers[number].kept += row->kept;
    }
    return number;
}

int objects_rewrite(struct objects *objects, objects_rewrite_fn *rewrite, void *context)
{
    size_t count = objects->maker_count;
    uint32_t *to = malloc(count * sizeof *to + 1);
    if (!to)
        return -ENOMEM;
    index_clear(&objects->maker_index, count);
    objects->maker_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct counted_maker row = objects->makers[i];
        rewrite(context, objects, i, &row);
        to[i] = row.made ? put_again(objects, &row) : ROW_GONE;
    }
    for (size_t i = 0; i < objects->slot_count; i++) {
        if (objects->slots[i].maker_plus_1)
            objects->slots[i].maker_plus_1 = to[objects->slots[i].maker_plus_1 - 1] + 1;
    }
    array_trim(&objects->makers, &objects->maker_capacity, objects->maker_count);
    free(to);
    return 0;
}

struct joining {
    uint32_t kind, other;
    const struct renumber *stay;
    size_t names, names_max;
};

/* Without ids it may equal an earlier row. If not, it is one more of those with names. */
static void join(void *context, struct objects *objects, size_t number, struct counted_maker *row)
{
    struct joining *joining = context;
    struct object_maker *maker = &row->maker;
    if (maker->kind != joining->kind || row->made != row->gone ||
        renumber_of(joining->stay, (uint32_t)number) != ROW_GONE)
        return;
    maker->tid = maker->maker = 0;
    if (INDEX_FIND(&objects->maker_index, sizeof *maker, maker, objects->makers) != INDEX_NONE)
        return;
    if (joining->names < joining->names_max)
        joining->names++;
    else
        maker->name = joining->other;
}

int objects_join_gone(struct objects *objects, uint32_t kind, const struct renumber *stay,
                      size_t names_max, uint32_t other)
{
    struct joining joining = {kind, other, stay, 0, names_max};
    return objects_rewrite(objects, join, &joining);
}

void objects_renumber(struct objects *objects, const struct renumber *stacks,
                      const struct renumber *names)
{
    for (size_t i = 0; i < objects->maker_count; i++) {
        struct object_maker *maker = &objects->makers[i].maker;
        maker->stack = renumber_of(stacks, maker->stack);
        maker->name = renumber_of(names, maker->name);
    }
    INDEX_AGAIN(&objects->maker_index, sizeof objects->makers->maker, objects->makers,
                objects->maker_count);
}

size_t objects_table_bytes(const struct objects *objects)
{
    return objects->maker_count * sizeof *objects->makers +
           objects->maker_index.slot_count * sizeof *objects->maker_index.slots +
           objects->slot_count * sizeof *objects->slots;
}

int objects_copy(const struct objects *objects, struct objects *to)
{
    if (array_reserve(&to->makers, &to->maker_capacity, objects->maker_count))
        return -ENOMEM;
    if (objects->maker_count)
        memcpy(to->makers, objects->makers, objects->maker_count * sizeof *to->makers);
    to->maker_count = objects->maker_count;
    memcpy(to->lost, objects->lost, sizeof to->lost);
    return 0;
}

void objects_free(struct objects *objects)
{
    free(objects->makers);
    index_free(&objects->maker_index);
    free(objects->slots);
    *objects = (struct objects){0};
}
