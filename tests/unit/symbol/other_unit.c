#include "units.h"

int in_other_unit(int number)
{
    return number + 2;
}
