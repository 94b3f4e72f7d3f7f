#include "worker/programs.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "unwind/rule_tables.h"

#include <errno.h>
#include <stdlib.h>

static struct numbered_program *find(const struct programs *programs, uint32_t number)
{
    return FIND_SORTED(programs->items, programs->count, number, number);
}

int programs_get(struct programs *programs, const struct program *program,
                 struct program_tables **ret_tables)
{
    struct numbered_program *known = find(programs, program->number);
    struct program_tables *tables = known ? known->tables : calloc(1, sizeof *tables);
    if (!tables)
        return -ENOMEM;
    *ret_tables = tables;
    if (known)
        return 0;
    tables->maps.areas.mem_fd_plus_1 = program->mem_fd + 1;
    size_t at = UPPER_BOUND(programs->items, programs->count, number, program->number);
    int err = array_insert(&programs->items, &programs->count, &programs->capacity, at,
                           (struct numbered_program){program->number, tables});
    if (err)
        free(tables);
    return err;
}

struct program_tables *programs_find(const struct programs *programs, uint32_t number)
{
    struct numbered_program *known = find(programs, number);
    return known ? known->tables : NULL;
}

int programs_end(struct programs *programs, uint32_t number, struct results *results,
                 struct rule_tables *rules)
{
    struct numbered_program *item = find(programs, number);
    if (!item)
        return 0;
    struct program_tables *tables = item->tables;
    struct space *space = tables->maps.space;
    int err = generated_finish(&tables->generated, rules, results, space);
    if (space) {
        rule_tables_forget_generated(rules, space->id);
        space_retire(space);
    }
    program_labels_free(&tables->labels);
    program_python_free(&tables->python);
    program_tasks_free(&tables->tasks);
    program_goroutines_free(&tables->goroutines);
    sites_free(&tables->sites);
    stack_areas_free(&tables->maps.areas);
    free(tables);
    array_remove(programs->items, &programs->count, item);
    return err;
}

int programs_end_all(struct programs *programs, struct results *results, struct rule_tables *rules)
{
    int err = 0;
    while (programs->count) {
        uint32_t last = programs->items[programs->count - 1].number;
        int end_err = programs_end(programs, last, results, rules);
        err = err ? err : end_err;
    }
    return err;
}

void programs_free(struct programs *programs)
{
    free(programs->items);
    *programs = (struct programs){0};
}
