/* The formats of profiles, by name and by the ending of a file's name. */
#ifndef FGPROF_CLI_OPTIONS_FORMATS_H
#define FGPROF_CLI_OPTIONS_FORMATS_H

#include "fgprof.h"

/* Each says on stderr what is wrong. */
bool format_named(const char *name, enum fgprof_format *ret_format);
bool format_of_file(const char *path, enum fgprof_format *ret_format);

/* As format_of_file, and says nothing. */
bool format_of_ending(const char *path, enum fgprof_format *ret_format);

/* All of them, with the endings that name them, for --help: fills lines of the width, each indented
 * by so many spaces. */
void formats_print(int indent, int width);

/* Whether it is not to be written to a terminal. */
bool format_is_binary(enum fgprof_format format);

#endif
