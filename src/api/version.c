#include "fgprof.h"

const char *fgprof_version(void)
{
    return FGPROF_VERSION;
}
