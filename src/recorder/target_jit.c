#include "recorder/target_jit.h"
#include "module/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reading takes no more than so small a part of the time, and no longer than this at once: some
 * milliseconds. */
#define READING_PART_OF_TIME 20
#define TURN_BYTES (1u << 20)
#define BUFFER_BYTES (64u << 10)
/* Of one map; runtimes that have run for long write hundreds of megabytes, most of it of code that
 * is no more. Of what is there at the start the end is read, with room left for what comes. */
#define MAP_BYTES_MAX ((off_t)64 << 20)
#define MAP_BYTES_AT_START_MAX ((off_t)48 << 20)
/* Replaced code begins a new space, each with its own stacks. After so many the names are read only
 * at the end, when what was sampled at an address first names all of it. */
#define REPLACEMENTS_MAX 1000

int target_jit_note(struct target *target)
{
    for (size_t i = 0; i < target->stack.depth; i++) {
        uint64_t address = target->stack.addresses[i];
        const struct mapping *mapping = space_find(target->space, address);
        if (!mapping || mapping->has_bias)
            continue;
        int err = space_note_jit(target->space, address);
        if (err)
            return err;
    }
    return 0;
}

static void close_map(struct target_jit *jit)
{
    if (jit->has_map)
        close(jit->map_fd);
    jit->has_map = false;
}

/* Opens what is not open yet and may be there by now. */
static void open_files(struct target *target)
{
    struct target_jit *jit = &target->jit;
    struct stat status;
    if (!jit->has_owner) {
        pid_t tid = process_live_thread(&target->process);
        jit->has_owner = tid && jit_owner_open(target->process.proc_fd, tid, &jit->owner) == 0;
    }
    if (!jit->has_owner || jit->has_map)
        return;
    int fd = jit_owner_open_map(&jit->owner);
    if (fd == -EACCES && !jit->is_refused) {
        target->recording->jit_files_refused++;
        jit->is_refused = true;
    }
    if (fd < 0)
        return;
    if (fstat(fd, &status)) {
        close(fd);
        return;
    }
    jit->has_map = true;
    jit->map_fd = fd;
    jit->map = (struct perf_map){0};
    jit->map_offset = 0;
    if (status.st_size > MAP_BYTES_AT_START_MAX) {
        jit->map_offset = status.st_size - MAP_BYTES_AT_START_MAX;
        jit->map.is_in_long_line = true; /* it begins somewhere in a line */
        target->recording->jit_bytes_unread += (uint64_t)jit->map_offset;
    }
}

static int add_entry(void *context, const struct perf_map_entry *entry)
{
    return jit_code_add(context, entry->start, entry->size, entry->name, entry->name_bytes, 0);
}

/* Reads on, `most` bytes at the most. Returns 1 where it came to the end, 0 where there is more, or
 * -ENOMEM. */
static int read_map(struct target_jit *jit, struct jit_code *code, off_t most)
{
    off_t until = jit->map_offset + most;
    char *buffer = malloc(BUFFER_BYTES);
    int err = buffer ? 0 : -ENOMEM;
    bool is_at_end = false;
    while (!err && !is_at_end && jit->map_offset < until && jit->map_bytes_read < MAP_BYTES_MAX) {
        size_t used = 0;
        ssize_t got = pread(jit->map_fd, buffer, BUFFER_BYTES, jit->map_offset);
        if (got > 0)
            err = perf_map_read(&jit->map, buffer, (size_t)got, add_entry, code, &used);
        jit->map_offset += (off_t)used;
        jit->map_bytes_read += (off_t)used;
        is_at_end = !used;
    }
    free(buffer);
    /* Too many names: no more of them. */
    if (err == -ENOSPC) {
        jit->map_bytes_read = MAP_BYTES_MAX;
        err = 0;
    }
    return err ? err : is_at_end || jit->map_bytes_read >= MAP_BYTES_MAX;
}

/* A file that has become shorter was written anew, and one without a name was replaced by
 * another. */
static bool has_new_bytes(struct target_jit *jit)
{
    struct stat status;
    if (!jit->has_map || fstat(jit->map_fd, &status))
        return false;
    if (status.st_size < jit->map_offset) {
        jit->map_offset = 0;
        jit->map = (struct perf_map){0};
    }
    bool has_new = status.st_size > jit->map_offset;
    if (!has_new && !status.st_nlink)
        close_map(jit);
    return has_new;
}

/* Puts to use what was read. */
static int take_in(struct target *target)
{
    struct recording *recording = target->recording;
    bool is_replaced;
    int err = jit_take_in(target->space->jit, &is_replaced);
    if (!err && is_replaced) {
        target->jit.replacements++;
        err = spaces_branch(&recording->spaces, &target->space);
    }
    return err;
}

int target_jit_update(struct target *target)
{
    struct target_jit *jit = &target->jit;
    uint64_t now_ns = monotonic_ns();
    if (!target->space || !target->space->jit || jit->replacements >= REPLACEMENTS_MAX ||
        now_ns - jit->read_ns < READING_PART_OF_TIME * jit->reading_ns)
        return 0;
    open_files(target);
    /* What was there before it could all be read is no news: it is taken in once that is done. */
    int err = 0;
    if (has_new_bytes(jit))
        err = read_map(jit, &target->space->jit->code, TURN_BYTES);
    if (err > 0)
        err = take_in(target);
    jit->read_ns = now_ns;
    jit->reading_ns = monotonic_ns() - now_ns;
    return err;
}

int target_jit_finish(struct target *target)
{
    struct target_jit *jit = &target->jit;
    struct stat status;
    int err = 0;
    if (target->space && target->space->jit) {
        bool is_replaced;
        open_files(target);
        if (has_new_bytes(jit))
            err = read_map(jit, &target->space->jit->code, MAP_BYTES_MAX);
        if (err >= 0)
            err = jit_take_in(target->space->jit, &is_replaced);
        jit_settle(target->space->jit);
        if (jit->has_map && fstat(jit->map_fd, &status) == 0 && status.st_size > jit->map_offset &&
            jit->map_bytes_read >= MAP_BYTES_MAX)
            target->recording->jit_bytes_unread += (uint64_t)(status.st_size - jit->map_offset);
    }
    close_map(jit);
    if (jit->has_owner)
        jit_owner_close(&jit->owner);
    *jit = (struct target_jit){0};
    return err;
}
