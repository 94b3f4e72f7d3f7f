#include "sampler/stops.h"
#include "base/array.h"
#include "proc/procfs.h"

#include <stdlib.h>

enum capture_result stops_add(struct stops *stops, struct reaper *reaper,
                              const struct capture_request *request, const struct capture *look)
{
    if (array_reserve(&stops->items, &stops->capacity, stops->count + 1))
        return CAPTURE_REFUSED;
    struct pending_stop *item = &stops->items[stops->count];
    if (stops->count == stops->made) {
        *item = (struct pending_stop){0};
        stops->made++;
    }
    bool is_leader = request->tid == request->process_id;
    reaper_watch(reaper);
    if (!is_leader && reaper_hold(reaper, request->tid))
        return CAPTURE_REFUSED;
    item->is_interrupted = false;
    item->result = capture_stop(&item->capture, request, look, &item->snapshot);
    if (item->result == CAPTURE_PENDING)
        stops->count++;
    else if (!is_leader)
        reaper_drop(reaper, request->tid);
    return item->result;
}

void stops_interrupt(struct stops *stops)
{
    for (size_t i = 0; i < stops->count; i++) {
        struct pending_stop *item = &stops->items[i];
        if (!item->is_interrupted)
            stop_interrupt(&item->capture.stop);
        item->is_interrupted = true;
    }
}

/* Whether a stop of the process's first thread is under way, and so answers to its id. */
static bool holds_leader(const struct stops *stops)
{
    for (size_t i = 0; i < stops->count; i++) {
        const struct capture *capture = &stops->items[i].capture;
        if (stops->items[i].result == CAPTURE_PENDING &&
            capture->stop.tid == capture->request.process_id)
            return true;
    }
    return false;
}

/* One that was killed is ours until it is dead. The end of the process's first thread is taken in
 * by whoever looks at the process: it may be a child of ours. */
static void let_go(struct stops *stops, struct reaper *reaper, const struct capture *capture)
{
    const struct stop *stop = &capture->stop;
    if (stop->is_dying && stop->tid == stop->process_id) {
        stops->has_dying_leader = true;
        stops->dying_leader = *stop;
    }
    if (stop->is_dying && capture->request.tid == stop->tid)
        reaper_abandon(reaper, stop->tid);
    else
        reaper_drop(reaper, capture->request.tid);
}

size_t stops_collect(struct stops *stops, struct reaper *reaper, uint64_t heard_ns)
{
    size_t collected = 0;
    for (size_t i = 0; i < stops->count; i++) {
        struct pending_stop *item = &stops->items[i];
        if (item->result == CAPTURE_PENDING) {
            item->capture.stop.may_become_leader = !holds_leader(stops);
            if (heard_ns > item->capture.stop.running_ns)
                item->capture.stop.running_ns = heard_ns;
            item->result = capture_collect(&item->capture, &item->snapshot);
            if (item->result != CAPTURE_PENDING)
                let_go(stops, reaper, &item->capture);
        }
        collected += item->result != CAPTURE_PENDING;
    }
    return collected;
}

void stops_drop_dead_leader(struct stops *stops, struct reaper *reaper, int proc_fd)
{
    for (size_t i = 0; i < stops->count; i++) {
        struct pending_stop *item = &stops->items[i];
        struct stop *stop = &item->capture.stop;
        struct proc_stat stat;
        if (item->result != CAPTURE_PENDING || stop->tid != stop->process_id ||
            procfs_thread_stat(proc_fd, stop->tid, &stat) || stat.state != 'Z')
            continue;
        stop->is_dying = true;
        item->result = CAPTURE_GONE;
        let_go(stops, reaper, &item->capture);
    }
}

void stops_remove(struct stops *stops, size_t number)
{
    struct pending_stop removed = stops->items[number];
    stops->items[number] = stops->items[--stops->count];
    stops->items[stops->count] = removed;
}

void stops_free(struct stops *stops)
{
    for (size_t i = 0; i < stops->made; i++)
        snapshot_free(&stops->items[i].snapshot);
    free(stops->items);
    *stops = (struct stops){0};
}
