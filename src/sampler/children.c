#include "sampler/children.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

/* What can't be sampled is counted. One that has gone already is as those that no look finds: the
 * others stand for it. */
static int take_in(struct fgprof_recorder *recorder, const struct relative *found, bool is_start)
{
    struct target *target;
    int err = recorder_add_target(recorder, found->pid, &target);
    if (err == -ENOMEM)
        return err;
    if (err) {
        bool is_none = err == -ESRCH || err == -EINVAL; /* gone, or a thread */
        recorder->recording.processes_refused += !is_none;
        return 0;
    }
    target->is_followed = true;
    return is_start ? target_start(target)
                    : target_join(target, found->unseen_ns, recorder->family.looked_before_ns);
}

static int look(struct fgprof_recorder *recorder, bool is_start)
{
    struct family *family = &recorder->family;
    int err = family_look(family, monotonic_ns());
    for (size_t i = 0; i < family->found.count && !err; i++)
        err = take_in(recorder, &family->found.items[i], is_start);
    return err;
}

int children_start(struct fgprof_recorder *recorder)
{
    if (!recorder->options.has_children)
        return 0;
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = family_add(&recorder->family, recorder->targets[i]->process.pid);
    return err ? err : look(recorder, true);
}

int children_find(struct fgprof_recorder *recorder)
{
    return recorder->options.has_children ? look(recorder, false) : 0;
}

void children_close_exited(struct fgprof_recorder *recorder)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->target_count; i++) {
        struct target *target = recorder->targets[i];
        if (target->is_followed && target->has_exited && !target->stops.has_dying_leader) {
            target_close(target);
            free(target);
        } else {
            recorder->targets[kept++] = target;
        }
    }
    recorder->target_count = kept;
}
