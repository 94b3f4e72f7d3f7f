/* What threads waited for. "waits" has rows of
 *   kind, resource, and if there is an owner: its process, its name, its tid, its stack + 1, and
 *   the number + 1 of the earlier row that says what it waited for itself
 * with 0 for what is not known. "sample_waits" has for each sample the number + 1 of its row; 0:
 * its thread waited for nothing, or that is not known. */
#include "output/json.h"
#include "output/page/data.h"

#include <inttypes.h>

static void write_wait(const struct fgprof_profile *profile, const struct profile_wait *wait,
                       struct sink *sink)
{
    bool tells_threads = profile->threads != FGPROF_THREADS_BY_NAME;
    sink_print(sink, "[%" PRIu32 ",%" PRIu32, wait->kind, wait->resource);
    if (wait->owner_process != PROFILE_NO_OWNER)
        sink_print(sink, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32,
                   wait->owner_process, wait->owner_name, tells_threads ? wait->owner_tid : 0,
                   wait->owner_stack == PROFILE_NO_STACK ? 0 : wait->owner_stack + 1,
                   wait->owner_wait_plus_1);
    sink_write(sink, "]", 1);
}

void page_waits(const struct fgprof_profile *profile, const struct profile_view *view,
                struct sink *sink)
{
    bool has_waits = false;
    for (size_t i = 0; i < view->sample_count && !has_waits; i++)
        has_waits = view->samples[i].wait_plus_1;
    if (!has_waits)
        return;
    json_key(sink, "waits", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < profile->wait_count; i++) {
        sink_write(sink, ",", i > 0);
        write_wait(profile, &profile->waits[i], sink);
    }
    sink_write(sink, "]", 1);
    json_key(sink, "sample_waits", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < view->sample_count; i++)
        sink_print(sink, "%s%" PRIu32, i ? "," : "", view->samples[i].wait_plus_1);
    sink_write(sink, "]", 1);
}
