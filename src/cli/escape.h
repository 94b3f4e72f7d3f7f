#ifndef FGPROF_CLI_ESCAPE_H
#define FGPROF_CLI_ESCAPE_H

#include <stdio.h>

/* Writes text that comes from a sampled process, such as a path. Control characters are escaped, so
 * that a terminal does not take them as commands. */
void put_escaped(FILE *to, const char *text);

/* The same to standard error. */
void print_escaped(const char *text);

#endif
