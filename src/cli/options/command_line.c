#include "cli/options/command_line.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a shell needs no quotes for the word. */
static bool is_plain(const char *word)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "-_./,:=+@%";
    return *word && strspn(word, plain) == strlen(word);
}

/* Writes the word in single quotes, where only a single quote is special. */
static void write_quoted(FILE *text, const char *word)
{
    fputc('\'', text);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", text);
        else
            fputc(*word, text);
    }
    fputc('\'', text);
}

char *command_line_of(int argc, char **argv)
{
    char *line = NULL;
    size_t bytes;
    FILE *text = open_memstream(&line, &bytes);
    if (!text)
        return NULL;
    fputs("fgprof-c", text);
    for (int i = 0; i < argc; i++) {
        fputc(' ', text);
        if (is_plain(argv[i]))
            fputs(argv[i], text);
        else
            write_quoted(text, argv[i]);
    }
    bool ok = !ferror(text);
    if (fclose(text) != 0 || !ok) {
        free(line);
        return NULL;
    }
    return line;
}
