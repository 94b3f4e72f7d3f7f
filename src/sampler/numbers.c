#include "sampler/numbers.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int numbers_give(struct numbers *numbers, struct sampled_process *process, pid_t tid,
                 uint32_t *ret_number)
{
    /* Allocates the room to take the number back now, so that this can't fail later. */
    if (array_reserve(&numbers->items, &numbers->capacity, numbers->count + 1) ||
        array_reserve(&numbers->free, &numbers->free_capacity, numbers->count + 1))
        return -ENOMEM;
    uint32_t number =
        numbers->free_count ? numbers->free[--numbers->free_count] : (uint32_t)numbers->count++;
    numbers->items[number] = (struct numbered_thread){process, tid};
    *ret_number = number;
    return 0;
}

void numbers_withhold(struct numbers *numbers, uint32_t number)
{
    numbers->items[number] = (struct numbered_thread){0};
}

void numbers_take_back(struct numbers *numbers, uint32_t number)
{
    numbers_withhold(numbers, number);
    numbers->free[numbers->free_count++] = number;
}

struct sampled_process *numbers_find(const struct numbers *numbers, uint32_t number, pid_t tid)
{
    const struct numbered_thread *found = number < numbers->count ? &numbers->items[number] : NULL;
    return found && found->tid == tid ? found->process : NULL;
}

void numbers_free(struct numbers *numbers)
{
    free(numbers->items);
    free(numbers->free);
    *numbers = (struct numbers){0};
}
