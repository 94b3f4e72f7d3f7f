#include "worker/programs.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int programs_get(struct programs *programs, const struct program *program,
                 struct program_tables **ret_tables)
{
    size_t before = programs->capacity;
    if (array_reserve(&programs->items, &programs->capacity, program->number + 1u))
        return -ENOMEM;
    for (size_t i = before; i < programs->capacity; i++)
        programs->items[i] = NULL;
    struct program_tables **item = &programs->items[program->number];
    if (!*item && !(*item = calloc(1, sizeof **item)))
        return -ENOMEM;
    *ret_tables = *item;
    return 0;
}

int programs_end(struct programs *programs, uint32_t number, struct results *results,
                 struct unwinder *unwinder)
{
    struct program_tables *tables = number < programs->capacity ? programs->items[number] : NULL;
    if (!tables)
        return 0;
    struct space *space = tables->maps.space;
    int err = generated_finish(&tables->generated, results, space);
    if (space) {
        unwinder_drop(unwinder, space);
        space_retire(space);
    }
    program_labels_free(&tables->labels);
    sites_free(&tables->sites);
    stack_areas_free(&tables->maps.areas);
    free(tables);
    programs->items[number] = NULL;
    return err;
}

int programs_end_all(struct programs *programs, struct results *results, struct unwinder *unwinder)
{
    int err = 0;
    for (size_t i = 0; i < programs->capacity; i++) {
        int end_err = programs_end(programs, (uint32_t)i, results, unwinder);
        err = err ? err : end_err;
    }
    return err;
}

void programs_free(struct programs *programs)
{
    free(programs->items);
    *programs = (struct programs){0};
}
