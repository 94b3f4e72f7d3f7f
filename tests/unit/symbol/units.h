/* Functions of units of their own, to be looked up. */
#ifndef FGPROF_TESTS_UNITS_H
#define FGPROF_TESTS_UNITS_H

int in_one_unit(int number);
int in_other_unit(int number);

#endif
