/* What is said to the user on stderr, a line at once, as other threads and programs print there,
 * too. Much of it repeats names and paths that come from a sampled process: control characters are
 * escaped, so that a terminal does not take them as commands. */
#ifndef FGPROF_CLI_SAY_H
#define FGPROF_CLI_SAY_H

#include <stdbool.h>
#include <stdio.h>

/* Prints "fgprof-c: " and the text. Returns false, as most of what is said is why something can't
 * be done. */
bool say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same once: nothing is said if *was_said. */
void say_once(bool *was_said, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints more about that, indented. */
void say_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the text, escaped. */
void put_escaped(FILE *to, const char *text);

#endif
