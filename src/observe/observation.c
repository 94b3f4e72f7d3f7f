#include "observe/observation.h"

void observation_release(struct observation *observation)
{
    program_release(observation->program);
    observation->program = NULL;
}
