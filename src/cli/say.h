/* Messages to the user on stderr, each line in one write, because other threads and programs print
 * there too. Many repeat names and paths from a sampled process, so control characters are escaped:
 * otherwise a terminal would take them as commands. */
#ifndef FGPROF_CLI_SAY_H
#define FGPROF_CLI_SAY_H

#include <stdbool.h>
#include <stdio.h>

/* Prints "fgprof-c: " and the text. Returns false, because most messages say why something can't be
 * done. */
bool say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same once: nothing is said if *was_said. */
void say_once(bool *was_said, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints more about that, indented. */
void say_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the text, escaped. */
void put_escaped(FILE *to, const char *text);

#endif
