/* How two profiles differ, as difffolded.pl writes it and flamegraph.pl reads it
 * (brendangregg/FlameGraph): "root;caller;leaf COUNT1 COUNT2", where a stack that one of them lacks
 * has 0. */
#include "output/folded_lines.h"
#include "output/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int lines_of(const struct fgprof_profile *profile, struct folded_lines *ret_lines)
{
    struct profile_view view;
    int err = profile_view_make(profile, &view);
    if (err)
        return err;
    err = folded_lines_make(profile, &view, ret_lines);
    profile_view_free(&view);
    return err;
}

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

int fgprof_profile_write_difference(const fgprof_profile *before, const fgprof_profile *after,
                                    bool is_normalized, int fd)
{
    struct folded_lines lines[2] = {{0}, {0}};
    struct sink *sink = malloc(sizeof *sink);
    int err = sink ? lines_of(before, &lines[0]) : -ENOMEM;
    if (!err)
        err = lines_of(after, &lines[1]);
    if (!err) {
        uint64_t total1 = total(&lines[0]), total2 = total(&lines[1]);
        double scale = is_normalized && total1 ? (double)total2 / (double)total1 : 1;
        sink_open(sink, fd, false);
        put_joined(sink, &lines[0], &lines[1], scale);
        err = sink_close(sink);
    }
    folded_lines_free(&lines[0]);
    folded_lines_free(&lines[1]);
    free(sink);
    return err;
}
