#ifndef FGPROF_CLI_ESCAPE_H
#define FGPROF_CLI_ESCAPE_H

/* Writes text that comes from a sampled process, such as a path, to standard error. Control
 * characters are escaped, so that a terminal does not take them as commands. */
void print_escaped(const char *text);

#endif
