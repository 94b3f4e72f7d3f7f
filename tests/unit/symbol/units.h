/* Functions in units of their own, for lookups. */
#ifndef FGPROF_TESTS_UNITS_H
#define FGPROF_TESTS_UNITS_H

int in_one_unit(int number);
int in_other_unit(int number);

#endif
