#include "units.h"

int in_one_unit(int number)
{
    return number + 1;
}
