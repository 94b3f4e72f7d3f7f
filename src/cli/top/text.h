/* Text in terminal cells, for `top`. */
#ifndef FGPROF_CLI_TOP_TEXT_H
#define FGPROF_CLI_TOP_TEXT_H

/* Draws text from a sampled process in at most `columns`. Characters that are not printable are
 * escaped, and longer text ends in "~". Returns how many columns were used. */
int put_text(const char *text, int columns);

/* printf within the line. Text that does not fit is cut. */
void put_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
