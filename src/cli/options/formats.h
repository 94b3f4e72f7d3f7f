/* The formats of profiles, by name and by file name ending. */
#ifndef FGPROF_CLI_OPTIONS_FORMATS_H
#define FGPROF_CLI_OPTIONS_FORMATS_H

#include "fgprof.h"

#define FORMAT_ENDINGS_MAX 3

struct format {
    const char *name;
    enum fgprof_format number;
    const char *endings[FORMAT_ENDINGS_MAX]; /* of files; new ones get the first */
    const char *type;                        /* Content-Type; NULL: it is not served */
    const char *viewer;                      /* what shows a file; NULL: nothing in particular */
    bool is_binary;                          /* and so is never written to a terminal */
    bool is_of_order;                        /* threads in the order of time: needs the timeline */
    bool tells_threads;                      /* of equal name apart */
};

const struct format *format_of(enum fgprof_format number);
/* NULL: there is none of this name. */
const struct format *format_find(const char *name);

/* Find a format. On failure, print the reason on stderr and return false. */
bool format_named(const char *name, enum fgprof_format *ret_format);
bool format_of_file(const char *path, enum fgprof_format *ret_format);

/* Like format_of_file, but prints nothing. */
bool format_of_ending(const char *path, enum fgprof_format *ret_format);

/* Whether new files of some format end in `text`. */
bool format_has_ending(const char *text);

/* Prints all formats with their file endings, for --help, in lines of at most `width` columns,
 * indented by `indent` spaces. */
void formats_print(int indent, int width);

/* The format's name, if it shows threads in the order of time, else NULL. */
const char *format_of_order(enum fgprof_format format);

#endif
