/* Source names by libiberty, within bounds: a symbol is data of the target, and can be made to keep
 * the demangler busy for a lifetime, or to use all memory. */
#include "symbol/names/demangle.h"
#include "base/text.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The position in the name, and what is open there. */
struct folding {
    const char *name;
    size_t at;
    char *open; /* the brackets that are open, outermost first; NAME_BRACKET is one of them */
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

/* Whether the '<' at this position begins template arguments: then it follows a name, or an
 * operator's name. In expressions libiberty puts the operands in parentheses: "(a)<(b)". */
static bool begins_arguments(const struct folding *folding, size_t operator_end)
{
    const char *at = folding->name + folding->at;
    if (folding->at == operator_end)
        return true;
    if (at[-1] == ' ')
        return folding->at - 1 == operator_end;
    return is_of_identifier(at[-1]) || at[-1] == ']' || at[-1] == '}';
}

/* GCC writes "wait<serve()::<lambda()> >" into debug information: the second '<' begins a name. */
#define NAME_BRACKET 'n'

static bool begins_name(const struct folding *folding)
{
    static const char *const names[] = {"<lambda(", "<unnamed"};
    return text_begins_any(folding->name + folding->at, names, COUNT_OF(names));
}

/* Notes a bracket. Returns false if it closes what is not open. */
static bool take_bracket(struct folding *folding, bool begins)
{
    static const char opening[] = "<([{", closing[] = ">)]}";
    char c = folding->name[folding->at];
    const char *kind = strchr(opening, c);
    if (kind && begins_name(folding)) {
        folding->open[folding->depth++] = NAME_BRACKET;
        return true;
    }
    if (kind) {
        if (c != '<' || begins) {
            folding->open[folding->depth++] = c;
            folding->angles += c == '<';
        }
        return true;
    }
    kind = strchr(closing, c);
    if (c == '>' && folding->depth && folding->open[folding->depth - 1] == NAME_BRACKET) {
        folding->depth--;
        return true;
    }
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

/* libiberty recurses at most once per character, and uses some 200 bytes of our stack each time.
 * Its own limit of 1024 is too low for today's C++ (DMGL_NO_RECURSE_LIMIT). */
#define SYMBOL_BYTES_MAX 4096
/* The code that writes D names can't be interrupted, and a name may double in length with each
 * reference. */
#define D_SYMBOL_BYTES_MAX 512
#define D_REFERENCES_MAX 16
/* A few milliseconds of writing. */
#define NAME_BYTES_MAX ((size_t)256 << 10)
#define DOUBLINGS_MAX 16

struct written {
    char *text; /* ends with NUL once there is any */
    size_t length, capacity;
    jmp_buf stop;
};

/* A name that refers back to its parts may double in length with each reference. libiberty can't be
 * told to stop, but holds no memory while it writes, so it can be left by a jump. */
static void take(const char *text, size_t bytes, void *context)
{
    struct written *written = context;
    size_t length = written->length + bytes;
    if (length > NAME_BYTES_MAX || array_reserve(&written->text, &written->capacity, length + 1))
        longjmp(written->stop, 1);
    if (bytes) /* libiberty may pass no bytes, with NULL */
        memcpy(written->text + written->length, text, bytes);
    written->length = length;
    written->text[length] = '\0';
}

typedef int demangler(const char *symbol, int options, demangle_callbackref callback,
                      void *context);

static char *write_by(demangler *write, const char *symbol, int options)
{
    struct written *written = calloc(1, sizeof *written);
    if (!written)
        return NULL;
    if (setjmp(written->stop) || !write(symbol, options, take, written)) {
        free(written->text);
        written->text = NULL;
    }
    char *text = written->text;
    free(written);
    return text;
}

/* The end of the reference that begins at `text` with this letter, like "S1_" or "T_"; else
 * NULL. */
static const char *end_of_reference(const char *text, char letter)
{
    if (*text++ != letter)
        return NULL;
    while ((*text >= '0' && *text <= '9') || (*text >= 'A' && *text <= 'Z'))
        text++;
    return *text == '_' ? text + 1 : NULL;
}

/* Whether demangling takes too long, even before libiberty writes anything: it reads the arguments
 * of a template parameter twice in the type of a conversion operator, and those in them four times
 * (cplus_demangle_type in cp-demangle.c), and it searches each repeated part of a pack expansion's
 * pattern as often as it is written there (d_find_pack). */
static bool takes_too_long(const char *symbol)
{
    unsigned parameters_with_arguments = 0, references = 0;
    bool has_conversion = strstr(symbol, "cv") != NULL, has_pattern = false;
    for (const char *at = symbol; *at; at++) {
        const char *end = end_of_reference(at, 'T');
        parameters_with_arguments += end && *end == 'I';
        references += end_of_reference(at, 'S') != NULL;
        if (strncmp(at, "Dp", 2) == 0) {
            const char *pattern = at + 2 + strspn(at + 2, "KOPRV");
            has_pattern = has_pattern || !end_of_reference(pattern, 'T');
        }
    }
    return (has_conversion && parameters_with_arguments > DOUBLINGS_MAX) ||
           (has_pattern && references > DOUBLINGS_MAX);
}

static char *demangle_cpp(const char *symbol, enum fgprof_names names)
{
    int options = DMGL_NO_RECURSE_LIMIT;
    if (names == FGPROF_NAMES_FULL)
        options |= DMGL_PARAMS | DMGL_ANSI;
    if (takes_too_long(symbol))
        return NULL;
    return write_by(cplus_demangle_v3_callback, symbol, options);
}

static char *demangle_d(const char *symbol)
{
    unsigned references = 0;
    for (const char *at = symbol; *at; at++)
        references += *at == 'Q';
    if (references > D_REFERENCES_MAX || strlen(symbol) > D_SYMBOL_BYTES_MAX)
        return NULL;
    return dlang_demangle(symbol, 0);
}

bool demangle_may_change(const char *symbol, enum fgprof_names names)
{
    bool is_mangled = symbol[0] == '_' && symbol[1] && strchr("ZRD", symbol[1]);
    return names != FGPROF_NAMES_RAW && strnlen(symbol, SYMBOL_BYTES_MAX + 1) <= SYMBOL_BYTES_MAX &&
           (is_mangled || (names == FGPROF_NAMES_SHORT && strchr(symbol, '<')));
}

char *demangle(const char *symbol, enum fgprof_names names)
{
    char *name = NULL;
    if (!demangle_may_change(symbol, names))
        return NULL;
    if (strncmp(symbol, "_D", 2) == 0)
        return demangle_d(symbol);
    /* Rust's older names look like C++ names. */
    if (strncmp(symbol, "_R", 2) == 0 || strncmp(symbol, "_Z", 2) == 0)
        name = write_by(rust_demangle_callback, symbol, 0);
    if (name)
        return name;
    if (strncmp(symbol, "_Z", 2) == 0)
        name = demangle_cpp(symbol, names);
    else if (names == FGPROF_NAMES_SHORT && strchr(symbol, '<'))
        name = strdup(symbol); /* C++, from the debug information */
    if (name && names == FGPROF_NAMES_SHORT && fold_name(name)) {
        free(name);
        return NULL;
    }
    return name;
}

/* A stub's name is the name of the function that it calls, and a mark (see symbols.c). */
static char *demangle_stub(const char *symbol, enum fgprof_names kind)
{
    static const char mark[] = "@plt";
    char *marked = NULL;
    if (!text_ends(symbol, mark))
        return NULL;
    char *target = strndup(symbol, strlen(symbol) - (sizeof mark - 1));
    char *name = target ? demangle(target, kind) : NULL;
    if (name && asprintf(&marked, "%s%s", name, mark) < 0)
        marked = NULL;
    free(name);
    free(target);
    return marked;
}

const char *shown_name(struct shown_names *names, const char *symbol, enum fgprof_names kind)
{
    uint32_t number;
    if (strings_intern(&names->symbols, symbol, &number))
        return NULL;
    if (number == names->count) {
        if (array_reserve(&names->shown, &names->capacity, names->count + 1))
            return NULL;
        char *shown = demangle(symbol, kind);
        names->shown[names->count++] = shown ? shown : demangle_stub(symbol, kind);
    }
    return names->shown[number] ? names->shown[number] : strings_get(&names->symbols, number);
}

void shown_names_free(struct shown_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->shown[i]);
    free(names->shown);
    strings_free(&names->symbols);
    *names = (struct shown_names){0};
}
