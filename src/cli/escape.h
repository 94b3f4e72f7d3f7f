#ifndef FGPROF_CLI_ESCAPE_H
#define FGPROF_CLI_ESCAPE_H

/* Writes a text that comes from a target, such as a path, to standard error: nothing in it reaches
 * a terminal as a command. */
void print_escaped(const char *text);

#endif
