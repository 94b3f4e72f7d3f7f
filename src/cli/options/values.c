#include "cli/options/values.h"
#include "cli/say.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 20
#define DURATION_MAX_NS (366ull * 24 * 3600 * 1000000000ull)

static const struct {
    const char *suffix;
    double ns;
} units[] = {{"ms", 1e6}, {"s", 1e9}, {"", 1e9}, {"m", 60e9}, {"h", 3600e9}};

const char *decimal_parse(const char *text, double *ret_value)
{
    /* strtod also knows spaces, signs, exponents, hex, "inf" and "nan". */
    size_t digits = strspn(text, "0123456789.");
    char *end;
    *ret_value = strtod(text, &end);
    return digits && digits <= DIGITS_MAX && end == text + digits ? end : NULL;
}

bool duration_parse(const char *text, uint64_t *ret_ns)
{
    double value;
    const char *end = decimal_parse(text, &value);
    if (!end)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].suffix) != 0)
            continue;
        double ns = value * units[i].ns;
        if (ns < 1 || ns > (double)DURATION_MAX_NS)
            return false;
        *ret_ns = (uint64_t)(ns + 0.5);
        return true;
    }
    return false;
}

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits])
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, NULL, 10);
    if (errno || number < min || number > max)
        return false;
    *ret_number = number;
    return true;
}

bool bytes_parse(const char *text, uint64_t max, uint64_t *ret_bytes)
{
    static const struct {
        char letter;
        unsigned shift;
    } sizes[] = {{'K', 10}, {'M', 20}, {'G', 30}};
    char number[24];
    size_t length = strlen(text);
    unsigned shift = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && length; i++) {
        if (text[length - 1] == sizes[i].letter)
            shift = sizes[i].shift;
    }
    length -= shift != 0;
    if (length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    if (!number_parse(number, 1, max >> shift, ret_bytes))
        return false;
    *ret_bytes <<= shift;
    return true;
}

bool host_parse(const char *text, char *host, size_t host_bytes, const char **ret_port)
{
    bool is_in_brackets = *text == '[';
    const char *begin = text + is_in_brackets;
    size_t length = strcspn(begin, is_in_brackets ? "]" : ":");
    const char *end = begin + length;
    if (!length || length >= host_bytes || (is_in_brackets && *end++ != ']') ||
        (*end && *end != ':'))
        return false;
    memcpy(host, begin, length);
    host[length] = '\0';
    *ret_port = *end ? end + 1 : NULL;
    return true;
}

bool complain_near(const char *what, const char *value, const char *near, const char *wanted)
{
    return near ? say("bad %s '%s': did you mean %s? %s", what, value, near, wanted)
                : say("bad %s '%s': %s", what, value, wanted);
}

bool complain(const char *what, const char *value, const char *wanted)
{
    return complain_near(what, value, NULL, wanted);
}

bool id_add(pid_t **ids, size_t *id_count, pid_t id)
{
    pid_t *grown = reallocarray(*ids, *id_count + 1, sizeof *grown);
    if (!grown)
        return false;
    *ids = grown;
    (*ids)[(*id_count)++] = id;
    return true;
}

bool id_is_there(const pid_t *ids, size_t count, pid_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

bool ids_parse(const char *list, const char *what, pid_t **ids, size_t *id_count)
{
    char *copy = strdup(list), *rest = copy, *word;
    bool ok = copy != NULL;
    while (ok && (word = strsep(&rest, ","))) {
        uint64_t id;
        ok = number_parse(word, 1, INT_MAX, &id);
        if (!ok) {
            complain(what, word, "give a number, or several such as 12,34");
            break;
        }
        ok = id_add(ids, id_count, (pid_t)id);
    }
    free(copy);
    return ok;
}

bool regex_check(const char *what, const char *value)
{
    regex_t compiled;
    char why[128];
    int failure = regcomp(&compiled, value, REG_EXTENDED | REG_NOSUB);
    if (!failure) {
        regfree(&compiled);
        return true;
    }
    if (failure == REG_ESPACE) {
        errno = ENOMEM;
        return false;
    }
    regerror(failure, &compiled, why, sizeof why);
    return complain(what, value, why);
}

bool percent_parse(const char *text, double *ret_percent)
{
    const char *end = decimal_parse(text, ret_percent);
    return end && !*end && *ret_percent > 0 && *ret_percent <= 100;
}
