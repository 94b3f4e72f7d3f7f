#include "machine.h"

#include <stdlib.h>
#include <string.h>

bool instructions_get(struct instructions *instructions, pid_t tid, uint64_t pc,
                      struct instruction *ret_instruction)
{
    if (!instructions->kept)
        instructions->kept = calloc(INSTRUCTIONS_KEPT, sizeof *instructions->kept);
    if (!instructions->kept)
        return false;
    struct instruction *kept = &instructions->kept[pc % INSTRUCTIONS_KEPT];
    if ((kept->pc != pc || !pc) && !machine_decode(tid, pc, kept))
        return false;
    *ret_instruction = *kept;
    return true;
}

void instructions_forget(struct instructions *instructions)
{
    if (instructions->kept)
        memset(instructions->kept, 0, INSTRUCTIONS_KEPT * sizeof *instructions->kept);
}

void instructions_free(struct instructions *instructions)
{
    free(instructions->kept);
    *instructions = (struct instructions){0};
}
