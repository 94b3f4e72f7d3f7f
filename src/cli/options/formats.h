/* The formats of profiles, by name and by file name ending. */
#ifndef FGPROF_CLI_OPTIONS_FORMATS_H
#define FGPROF_CLI_OPTIONS_FORMATS_H

#include "fgprof.h"

/* Find a format. On failure, print the reason on stderr and return false. */
bool format_named(const char *name, enum fgprof_format *ret_format);
bool format_of_file(const char *path, enum fgprof_format *ret_format);

/* Like format_of_file, but prints nothing. */
bool format_of_ending(const char *path, enum fgprof_format *ret_format);

/* The ending of files in this format, such as ".fgprof", and whether `text` is one of these. */
const char *format_ending(enum fgprof_format format);
bool format_has_ending(const char *text);

/* Prints all formats with their file endings, for --help, in lines of at most `width` columns,
 * indented by `indent` spaces. */
void formats_print(int indent, int width);

/* The format's name, if it shows threads in the order of time, else NULL. Needs the timeline. */
const char *format_of_order(enum fgprof_format format);

/* Whether the format is binary, and so is never written to a terminal. */
bool format_is_binary(enum fgprof_format format);

#endif
