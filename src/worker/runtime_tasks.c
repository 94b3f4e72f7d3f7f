#include "worker/runtime_tasks.h"
#include "base/array.h"

#include <stdlib.h>

int runtime_tasks_add(struct runtime_tasks *tasks, const struct runtime_task *task)
{
    return array_append(&tasks->items, &tasks->count, &tasks->capacity, *task);
}

void runtime_task_clear(struct runtime_task *task)
{
    free(task->creator);
    free(task->name);
    free(task->awaited_by);
}

static int compare(const void *a, const void *b)
{
    const struct runtime_task *left = a, *right = b;
    int order = ORDER(left->process_id, right->process_id);
    if (!order)
        order = ORDER(!right->name, !left->name); /* goroutines first */
    return order ? order : ORDER(left->id, right->id);
}

void runtime_tasks_sort(struct runtime_tasks *tasks)
{
    array_sort(tasks->items, tasks->count, compare);
}

void runtime_tasks_free(struct runtime_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        runtime_task_clear(&tasks->items[i]);
    free(tasks->items);
    *tasks = (struct runtime_tasks){0};
}
