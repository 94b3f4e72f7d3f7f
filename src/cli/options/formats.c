#include "cli/options/formats.h"
#include "base/text.h"
#include "cli/options/values.h"
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

#define PLAIN "text/plain; charset=utf-8"
#define BINARY "application/octet-stream"
#define JSON "application/json"

static const struct format formats[] = {
    {"folded", FGPROF_FOLDED, {".folded", ".collapsed"}, PLAIN, .viewer = "flamegraph.pl"},
    {"pprof", FGPROF_PPROF, {".pb.gz", ".pprof"}, BINARY, "go tool pprof", true, false, false},
    {"text", FGPROF_TEXT, {".txt"}, PLAIN, .viewer = "less"},
    {"html", FGPROF_HTML, {".html"}, "text/html; charset=utf-8", "xdg-open", false, false, true},
    {"raw", FGPROF_RAW, {".fgprof"}, BINARY, "fgprof-c report", true, false, true},
    {"speedscope", FGPROF_SPEEDSCOPE, {".speedscope.json", ".json"}, JSON, NULL, false, true, true},
    {"firefox", FGPROF_FIREFOX, {".firefox.json.gz"}, BINARY, NULL, true, true, true},
    {"report", FGPROF_REPORT, {".report"}, PLAIN, "less", false, false, true},
    {"otlp", FGPROF_OTLP, {".otlp.gz"}, NULL, NULL, true, false, false},
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

const struct format *format_of(enum fgprof_format number)
{
    static const struct format report_json = {.endings = {""}, .tells_threads = true}; /* no -f */
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (formats[i].number == number)
            return &formats[i];
    }
    return &report_json;
}

const struct format *format_find(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    }
    return NULL;
}

bool format_named(const char *name, enum fgprof_format *ret_format)
{
    const struct format *found = format_find(name);
    const char *names[FORMAT_COUNT];
    char wanted[128] = "give";
    if (found) {
        *ret_format = found->number;
        return true;
    }
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        size_t used = strlen(wanted);
        names[i] = formats[i].name;
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
        for (size_t j = 0; j < FORMAT_ENDINGS_MAX && formats[i].endings[j]; j++) {
            if (text_ends(path, formats[i].endings[j])) {
                *ret_format = formats[i].number;
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
        for (size_t j = 0; j < FORMAT_ENDINGS_MAX && formats[i].endings[j]; j++) {
            size_t used = strlen(wanted);
            snprintf(wanted + used, sizeof wanted - used, "%s%s", i + j ? " " : "",
                     formats[i].endings[j]);
        }
    }
    size_t used = strlen(wanted);
    snprintf(wanted + used, sizeof wanted - used, ") or give -f");
    return complain("output", path, wanted);
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
    const struct format *row = format_of(format);
    return row->is_of_order ? row->name : NULL;
}

/* Describes a format, as in "pprof (.pb.gz .pprof)". */
static void describe(size_t i, char *text, size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "%s (", formats[i].name);
    for (size_t j = 0; j < FORMAT_ENDINGS_MAX && formats[i].endings[j]; j++)
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
