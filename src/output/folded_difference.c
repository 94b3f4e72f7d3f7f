/* How two profiles differ, as difffolded.pl writes it and flamegraph.pl reads it
 * (brendangregg/FlameGraph): "root;caller;leaf COUNT1 COUNT2", with 0 for a stack that one of them
 * lacks. */
#include "output/folded_lines.h"
#include "output/output.h"

#include <inttypes.h>
#include <string.h>

static uint64_t total(const struct folded_lines *lines)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < lines->count; i++)
        sum += lines->items[i].count;
    return sum;
}

/* A file may have counts of any size. */
static uint64_t scaled(uint64_t count, double scale)
{
    double wanted = (double)count * scale;
    return wanted < (double)UINT64_MAX ? (uint64_t)wanted : UINT64_MAX;
}

/* Both are sorted. */
static void put_joined(struct sink *sink, const struct folded_lines *before,
                       const struct folded_lines *after, double scale)
{
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : strcmp(before->items[i].stack, after->items[j].stack);
        const char *stack = order <= 0 ? before->items[i].stack : after->items[j].stack;
        uint64_t count1 = order <= 0 ? before->items[i++].count : 0;
        uint64_t count2 = order >= 0 ? after->items[j++].count : 0;
        if (scale != 1)
            count1 = scaled(count1, scale);
        sink_write(sink, stack, strlen(stack));
        sink_print(sink, " %" PRIu64 " %" PRIu64 "\n", count1, count2);
    }
}

void output_folded_difference(const struct profile_pair *pair, bool is_normalized,
                              struct sink *sink)
{
    struct folded_lines before = {0}, after = {0};
    int err = folded_lines_make(pair->before, &pair->view_before, &before);
    if (!err)
        err = folded_lines_make(pair->after, &pair->view_after, &after);
    if (err) {
        sink->error = sink->error ? sink->error : err;
    } else {
        uint64_t total1 = total(&before), total2 = total(&after);
        double scale = is_normalized && total1 ? (double)total2 / (double)total1 : 1;
        put_joined(sink, &before, &after, scale);
    }
    folded_lines_free(&before);
    folded_lines_free(&after);
}
