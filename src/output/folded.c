/* Folded stacks, as flamegraph.pl reads them (brendangregg/FlameGraph): "root;caller;leaf COUNT",
 * one line per stack, sorted bytewise. */
#include "output/output.h"
#include "output/folded_lines.h"

#include <inttypes.h>
#include <string.h>

void output_folded(const struct fgprof_profile *profile, const struct profile_view *view,
                   struct sink *sink)
{
    struct folded_lines lines = {0};
    int err = folded_lines_make(profile, view, &lines);
    if (err)
        sink->error = err;
    for (size_t i = 0; i < lines.count && !sink->error; i++) {
        sink_write(sink, lines.items[i].stack, strlen(lines.items[i].stack));
        sink_print(sink, " %" PRIu64 "\n", lines.items[i].count);
    }
    folded_lines_free(&lines);
}
