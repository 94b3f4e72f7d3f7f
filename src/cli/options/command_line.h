/* The command line as text. */
#ifndef FGPROF_CLI_OPTIONS_COMMAND_LINE_H
#define FGPROF_CLI_OPTIONS_COMMAND_LINE_H

/* Returns "fgprof-c" and the words of `argv`, quoted for a shell if needed. The caller frees it.
 * NULL if memory is short. */
char *command_line_of(int argc, char **argv);

#endif
