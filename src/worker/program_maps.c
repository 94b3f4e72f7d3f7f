#include "worker/program_maps.h"
#include "base/clock.h"

#include <errno.h>

/* A program that has just started is still mapping its libraries. The mapping of a sampled address
 * may be newer than this round's reading of the maps, and several of its threads may be sampled in
 * one round. */
#define SPARE_READINGS 8
#define MAX_AGE_NS 1000000000u
/* With very many threads, maps has a line for each stack. */
#define PART_OF_TIME 100
#define AREAS_PART_OF_TIME 20

static int open_space(struct program_maps *maps, struct results *results,
                      const struct observation *observation)
{
    const struct program *program = observation->program;
    pid_t tid = observation_live_tid(observation);
    maps->reading.done_ns = monotonic_ns();
    maps->spare_readings = SPARE_READINGS;
    int err = spaces_add(&results->spaces, &results->modules, program->process_id, program->proc_fd,
                         tid, program->maps_fd, &maps->space);
    /* It has ended: uses its maps as read before. */
    int kept_fd = program_kept_maps_fd(program);
    maps->kept_fd = err == -ESRCH ? kept_fd : 0;
    if (err == -ESRCH && kept_fd >= 0)
        err = spaces_add(&results->spaces, &results->modules, program->process_id, program->proc_fd,
                         tid, kept_fd, &maps->space);
    maps->reading.cost_ns = monotonic_ns() - maps->reading.done_ns;
    maps->is_gone = err == -ESRCH;
    return err == -ENOMEM ? err : 0;
}

static int read_again(struct program_maps *maps, struct results *results,
                      const struct observation *observation, bool *ret_changed)
{
    const struct program *program = observation->program;
    pid_t tid = observation_live_tid(observation);
    const struct space *before = maps->space;
    maps->reading.done_ns = monotonic_ns();
    int err = spaces_refresh(&results->spaces, &results->modules, program->proc_fd, tid,
                             program->maps_fd, &maps->space, ret_changed);
    int kept_fd = program_kept_maps_fd(program);
    if (err == -ESRCH && kept_fd > 0 && kept_fd != maps->kept_fd) {
        maps->kept_fd = kept_fd;
        err = spaces_refresh(&results->spaces, &results->modules, program->proc_fd, tid, kept_fd,
                             &maps->space, ret_changed);
    }
    maps->reading.cost_ns = monotonic_ns() - maps->reading.done_ns;
    if (maps->space != before)
        maps->replaced_ns = maps->reading.done_ns;
    return err == -ENOMEM ? err : 0;
}

int program_maps_update(struct program_maps *maps, struct results *results,
                        const struct observation *observation)
{
    bool has_changed;
    if (!maps->space)
        return maps->is_gone ? 0 : open_space(maps, results, observation);
    if (!throttle_allows(&maps->reading, observation->round_ns, MAX_AGE_NS, PART_OF_TIME))
        return 0;
    return read_again(maps, results, observation, &has_changed);
}

int program_maps_refresh(struct program_maps *maps, struct results *results,
                         const struct observation *observation, bool *ret_changed)
{
    *ret_changed = false;
    if (maps->reading.done_ns >= observation->round_ns) {
        if (!maps->spare_readings)
            return 0;
        maps->spare_readings--;
    }
    return read_again(maps, results, observation, ret_changed);
}

int program_maps_read_areas(struct program_maps *maps, const struct observation *observation)
{
    uint64_t now_ns = monotonic_ns();
    if (maps->areas_reading.done_ns >= observation->round_ns ||
        !throttle_allows(&maps->areas_reading, now_ns, 0, AREAS_PART_OF_TIME))
        return 0;
    int err = stack_areas_read(&maps->areas, observation->program->maps_fd);
    maps->areas_reading = (struct throttle){now_ns, monotonic_ns() - now_ns};
    maps->areas_are_sent = false;
    return err == -ENOMEM ? err : 0;
}
