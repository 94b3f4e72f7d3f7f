/* The command line as a text. */
#ifndef FGPROF_CLI_OPTIONS_COMMAND_LINE_H
#define FGPROF_CLI_OPTIONS_COMMAND_LINE_H

/* "fgprof-c" and the words of `argv`, quoted as far as a shell needs it. The caller's to free; NULL
 * for lack of memory. */
char *command_line_of(int argc, char **argv);

#endif
