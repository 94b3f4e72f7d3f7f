#include "worker/goroutine_list.h"
#include "base/array.h"

#include <stdlib.h>

int goroutine_list_add(struct goroutine_list *list, const struct listed_goroutine *goroutine)
{
    if (array_reserve(&list->items, &list->capacity, list->count + 1))
        return -ENOMEM;
    list->items[list->count++] = *goroutine;
    return 0;
}

void listed_goroutine_clear(struct listed_goroutine *goroutine)
{
    free(goroutine->creator);
    free(goroutine->name);
    free(goroutine->awaited_by);
}

static int compare(const void *a, const void *b)
{
    const struct listed_goroutine *left = a, *right = b;
    if (left->process_id != right->process_id)
        return left->process_id < right->process_id ? -1 : 1;
    if (!left->name != !right->name)
        return left->name ? 1 : -1;
    return (left->id > right->id) - (left->id < right->id);
}

void goroutine_list_sort(struct goroutine_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare);
}

void goroutine_list_free(struct goroutine_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        listed_goroutine_clear(&list->items[i]);
    free(list->items);
    *list = (struct goroutine_list){0};
}
