/* Text in cells of the terminal, for `top`. */
#ifndef FGPROF_CLI_TOP_TEXT_H
#define FGPROF_CLI_TOP_TEXT_H

/* Draws text of the target's in at most `columns`: what is no printable character is escaped, what
 * is longer ends in "~". Returns how many columns were used. */
int put_text(const char *text, int columns);

/* printf within the line: what does not fit is left out, and does not go on in the next. */
void put_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
