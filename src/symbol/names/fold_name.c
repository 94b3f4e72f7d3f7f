#include "symbol/names/fold_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The position in the name, and what is open there. */
struct folding {
    const char *name;
    size_t at;
    char *open; /* the brackets that are open, outermost first */
    size_t depth;
    size_t angles; /* how many of these are '<' */
};

static bool is_of_identifier(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

/* The length of "operator" and its sign, or 0 if there is none. */
static size_t operator_length(const struct folding *folding)
{
    static const char word[] = "operator";
    /* Signs that contain brackets, the longest first. */
    static const char *const signs[] = {
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"};
    const char *text = folding->name + folding->at;
    if (strncmp(text, word, sizeof word - 1) != 0 || (folding->at && is_of_identifier(text[-1])))
        return 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t length = strlen(signs[i]);
        if (strncmp(text + sizeof word - 1, signs[i], length) == 0)
            return sizeof word - 1 + length;
    }
    size_t length = strspn(text + sizeof word - 1, "+-*/%^&|~!=,");
    return length ? sizeof word - 1 + length : 0;
}

/* Whether the '<' at this position begins template arguments: it then follows a name, or an
 * operator's. In expressions the operands are in parentheses, as libiberty writes them:
 * "(a)<(b)". */
static bool begins_arguments(const struct folding *folding, size_t operator_end)
{
    const char *at = folding->name + folding->at;
    if (folding->at == operator_end)
        return true;
    if (at[-1] == ' ')
        return folding->at - 1 == operator_end;
    return is_of_identifier(at[-1]) || at[-1] == ']' || at[-1] == '}';
}

/* Notes a bracket. Returns false if it closes what is not open. */
static bool take_bracket(struct folding *folding, bool begins)
{
    static const char opening[] = "<([{", closing[] = ">)]}";
    char c = folding->name[folding->at];
    const char *kind = strchr(opening, c);
    if (kind) {
        if (c != '<' || begins) {
            folding->open[folding->depth++] = c;
            folding->angles += c == '<';
        }
        return true;
    }
    kind = strchr(closing, c);
    bool is_closed = folding->depth && folding->open[folding->depth - 1] == opening[kind - closing];
    /* "a->b", and "(a)>(b)", which libiberty puts in parentheses of its own. */
    if (c == '>' && (!is_closed || folding->name[folding->at - 1] == '-'))
        return true;
    if (is_closed) {
        folding->depth--;
        folding->angles -= c == '>';
    }
    return is_closed;
}

static bool fold(struct folding *folding, char *to)
{
    size_t operator_end = 0, length = 0;
    const char *name = folding->name;
    while (name[folding->at]) {
        size_t operator_bytes = operator_length(folding);
        if (operator_bytes) {
            if (!folding->angles) {
                memcpy(to + length, name + folding->at, operator_bytes);
                length += operator_bytes;
            }
            folding->at += operator_bytes;
            operator_end = folding->at;
            continue;
        }
        size_t angles = folding->angles;
        if (strchr("<>()[]{}", name[folding->at]) &&
            !take_bracket(folding, begins_arguments(folding, operator_end)))
            return false;
        if (!angles && folding->angles) {
            /* The space in "operator<< <int>". */
            length -= length && to[length - 1] == ' ';
        } else if (!angles) {
            to[length++] = name[folding->at];
        }
        folding->at++;
    }
    to[length] = '\0';
    return !folding->depth && length;
}

int fold_name(char *name)
{
    size_t bytes = strlen(name) + 1;
    /* A name that begins with '<' is not C++: "<T as a::B<T>>::c" is Rust. */
    if (*name == '<' || !strchr(name, '<'))
        return 0;
    /* There are at most as many open brackets, and kept characters, as there are characters. */
    char *work = malloc(2 * bytes);
    if (!work)
        return -ENOMEM;
    struct folding folding = {.name = name, .open = work + bytes};
    if (fold(&folding, work))
        memcpy(name, work, strlen(work) + 1);
    free(work);
    return 0;
}
