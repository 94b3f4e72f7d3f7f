#include "cli/options/formats.h"
#include "base/text.h"
#include "cli/options/values.h"
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

#define ENDINGS_MAX 3

static const struct format_row {
    const char *name;
    enum fgprof_format format;
    const char *endings[ENDINGS_MAX];
    bool is_binary, is_of_order;
} formats[] = {
    {"folded", FGPROF_FOLDED, {".folded", ".collapsed"}, false, false},
    {"pprof", FGPROF_PPROF, {".pb.gz", ".pprof"}, true, false},
    {"text", FGPROF_TEXT, {".txt"}, false, false},
    {"html", FGPROF_HTML, {".html"}, false, false},
    {"raw", FGPROF_RAW, {".fgprof"}, true, false},
    {"speedscope", FGPROF_SPEEDSCOPE, {".speedscope.json", ".json"}, false, true},
    {"firefox", FGPROF_FIREFOX, {".firefox.json.gz"}, true, true},
    {"report", FGPROF_REPORT, {".report"}, false, false},
    {"otlp", FGPROF_OTLP, {".otlp.gz"}, true, false},
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

static const struct format_row *row_of(enum fgprof_format format)
{
    static const struct format_row not_chosen = {.endings = {""}}; /* FGPROF_REPORT_JSON */
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (formats[i].format == format)
            return &formats[i];
    }
    return &not_chosen;
}

bool format_named(const char *name, enum fgprof_format *ret_format)
{
    const char *names[FORMAT_COUNT];
    char wanted[128] = "give";
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        size_t used = strlen(wanted);
        names[i] = formats[i].name;
        if (strcmp(name, formats[i].name) == 0) {
            *ret_format = formats[i].format;
            return true;
        }
        snprintf(wanted + used, sizeof wanted - used, "%s %s",
                 i == 0                  ? ""
                 : i + 1 == FORMAT_COUNT ? " or"
                                         : ",",
                 formats[i].name);
    }
    return complain_near("format", name, suggest(name, names, FORMAT_COUNT), wanted);
}

/* ".json" alone is speedscope's. */
static bool lacks_gz(const char *path)
{
    return text_ends(path, ".firefox.json");
}

bool format_of_ending(const char *path, enum fgprof_format *ret_format)
{
    for (size_t i = 0; i < FORMAT_COUNT && !lacks_gz(path); i++) {
        for (size_t j = 0; j < ENDINGS_MAX && formats[i].endings[j]; j++) {
            if (text_ends(path, formats[i].endings[j])) {
                *ret_format = formats[i].format;
                return true;
            }
        }
    }
    return false;
}

bool format_of_file(const char *path, enum fgprof_format *ret_format)
{
    char wanted[256] = "use a known ending (";
    if (format_of_ending(path, ret_format))
        return true;
    if (lacks_gz(path))
        return complain("output", path, "this format is gzipped: end it with .firefox.json.gz");
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        for (size_t j = 0; j < ENDINGS_MAX && formats[i].endings[j]; j++) {
            size_t used = strlen(wanted);
            snprintf(wanted + used, sizeof wanted - used, "%s%s", i + j ? " " : "",
                     formats[i].endings[j]);
        }
    }
    size_t used = strlen(wanted);
    snprintf(wanted + used, sizeof wanted - used, ") or give -f");
    return complain("output", path, wanted);
}

const char *format_ending(enum fgprof_format format)
{
    return row_of(format)->endings[0];
}

bool format_has_ending(const char *text)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(text, formats[i].endings[0]) == 0)
            return true;
    }
    return false;
}

const char *format_of_order(enum fgprof_format format)
{
    const struct format_row *row = row_of(format);
    return row->is_of_order ? row->name : NULL;
}

bool format_is_binary(enum fgprof_format format)
{
    return row_of(format)->is_binary;
}

/* Describes a format, as in "pprof (.pb.gz .pprof)". */
static void describe(size_t i, char *text, size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "%s (", formats[i].name);
    for (size_t j = 0; j < ENDINGS_MAX && formats[i].endings[j]; j++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", j ? " " : "",
                                 formats[i].endings[j]);
    snprintf(text + used, text_bytes - used, ")%s", i + 1 < FORMAT_COUNT ? "," : "");
}

void formats_print(int indent, int width)
{
    int column = 0;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        char text[80];
        describe(i, text, sizeof text);
        int length = (int)strlen(text);
        if (column && column + 1 + length <= width)
            column += printf(" %s", text);
        else
            column = printf("%s%*s%s", column ? "\n" : "", indent, "", text) - (column ? 1 : 0);
    }
    putchar('\n');
}
