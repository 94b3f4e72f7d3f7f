#include "cli/options/duration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DURATION_MAX_NS (366ull * 24 * 3600 * 1000000000ull)

static const struct {
    const char *suffix;
    double ns;
} units[] = {{"ms", 1e6}, {"s", 1e9}, {"", 1e9}, {"m", 60e9}, {"h", 3600e9}};

bool duration_parse(const char *text, uint64_t *ret_ns)
{
    /* strtod also knows signs, exponents, hex, "inf" and "nan". */
    size_t digits = strspn(text, "0123456789.");
    if (!digits || digits > 20 || strcspn(text, "0123456789") >= digits)
        return false;
    char *end;
    double value = strtod(text, &end);
    if (end != text + digits)
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
