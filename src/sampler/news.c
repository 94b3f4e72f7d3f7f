#include "sampler/news.h"

#include <stdlib.h>

/* More stacks of a program hardly bring anything that is lacking. */
#define HURRIED_MAX 64

/* What is lacking for the first stacks of a program, as its libraries, is best read while it is
 * still there. */
static bool is_in_a_hurry(struct object_sources *sources, const struct observation *observation)
{
    if (!observation->snapshot || sources->hurried == HURRIED_MAX)
        return false;
    sources->hurried++;
    return true;
}

int news_send(struct sampler *sampler, struct sampled_process *process, struct message *message)
{
    struct observation *observation = &message->object.observation;
    message->kind = MESSAGE_OBJECT;
    observation->evidence = EVIDENCE_SAMPLED;
    observation->process = process->number;
    observation->round_ns = process->turns.round_ns;
    int err = channel_send(sampler->channel, message);
    if (!err) {
        if (is_in_a_hurry(&process->objects, observation))
            channel_hurry(sampler->channel);
        return 0;
    }
    if (observation->snapshot)
        snapshots_give(channel_snapshots(sampler->channel), observation->snapshot, false);
    observation_release(observation);
    free(message->object.news.name);
    return err;
}
