#include "sampler/target_jit.h"
#include "base/clock.h"
#include "proc/memory.h"

#include <errno.h>
#include <fcntl.h>

/* Reading takes no more than so small a part of the time, and no longer than this at once: some
 * milliseconds. */
#define READING_PART_OF_TIME 20
#define TURN_BYTES (1u << 20)
#define FUNCTION_BYTES_MAX 8192 /* of its code, to learn how it is unwound */
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

int target_jit_learn(struct target *target, uint64_t address, bool *ret_has_learnt)
{
    uint8_t code[FUNCTION_BYTES_MAX];
    const struct jit *jit = target->space->jit;
    uint32_t number = jit ? jit_code_find(&jit->code, address) : JIT_NO_SYMBOL;
    *ret_has_learnt = number != JIT_NO_SYMBOL || target->jit.read_ns;
    if (number == JIT_NO_SYMBOL) {
        /* Once names were looked for: so that it is not asked for again. */
        return *ret_has_learnt ? unwinder_learn(target->recording->unwinder, target->space, address,
                                                address, code, 0)
                               : 0;
    }
    const struct jit_symbol *symbol = &jit->code.symbols[number];
    size_t bytes = symbol->size < sizeof code ? symbol->size : sizeof code;
    bytes = memory_read(target->capture->request.tid, symbol->start, code, bytes);
    return unwinder_learn(target->recording->unwinder, target->space, address, symbol->start, code,
                          bytes);
}

static void refuse(struct target *target)
{
    if (!target->jit.is_refused)
        target->recording->jit_files_refused++;
    target->jit.is_refused = true;
}

static void open_map(struct target *target)
{
    struct target_jit *jit = &target->jit;
    int fd = jit->map.is_open ? -EEXIST : jit_owner_open_map(&jit->owner);
    if (fd >= 0)
        jit_source_open(&jit->map, fd, false);
    else if (fd == -EACCES)
        refuse(target);
}

/* Who writes a jitdump maps its first page executable, for profilers to find it. So it is a module,
 * whose file was opened when the mapping was seen first. */
static void open_dump(struct target *target)
{
    struct target_jit *jit = &target->jit;
    const struct space *space = target->space;
    for (size_t i = 0; i < space->mapping_count && !jit->dump.is_open; i++) {
        const struct mapping *mapping = &space->mappings[i];
        if (!mapping->module || mapping->module->image.fd < 0 ||
            !jit_owner_names_dump(&jit->owner, mapping->path))
            continue;
        if (!jit_owner_believes(&jit->owner, mapping->module->image.fd)) {
            refuse(target);
            continue;
        }
        int fd = fcntl(mapping->module->image.fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0)
            jit_source_open(&jit->dump, fd, true);
    }
}

/* Opens what is not open yet and may be there by now. */
static void open_files(struct target *target)
{
    struct target_jit *jit = &target->jit;
    if (!jit->has_owner) {
        pid_t tid = process_live_thread(&target->process);
        jit->has_owner = tid && jit_owner_open(target->process.proc_fd, tid, &jit->owner) == 0;
    }
    if (!jit->has_owner)
        return;
    open_map(target);
    open_dump(target);
}

/* Returns 1 where it came to the end of what there is, 0 where there is more, or -ENOMEM. */
static int read_files(struct target *target, off_t most)
{
    struct jit_code *code = &target->space->jit->code;
    struct target_jit *jit = &target->jit;
    int map_end = 1, dump_end = 1;
    if (jit_source_has_more(&jit->map))
        map_end = jit_source_read(&jit->map, code, most);
    if (map_end >= 0 && jit_source_has_more(&jit->dump))
        dump_end = jit_source_read(&jit->dump, code, most);
    return map_end < 0 ? map_end : dump_end < 0 ? dump_end : map_end && dump_end;
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
    /* Reading is not to blame for the time that others took. */
    uint64_t begin_ns = thread_cpu_ns();
    open_files(target);
    bool has_news = jit_source_has_more(&jit->map) || jit_source_has_more(&jit->dump);
    /* What was there before it could all be read is no news: it is taken in once that is done. */
    int err = read_files(target, TURN_BYTES);
    if (err > 0)
        err = take_in(target);
    /* Code that was sampled before its function was known had no rule. */
    if (has_news)
        unwinder_forget(target->recording->unwinder, target->space);
    jit->read_ns = now_ns;
    jit->reading_ns = thread_cpu_ns() - begin_ns;
    return err;
}

int target_jit_finish(struct target *target)
{
    struct target_jit *jit = &target->jit;
    int err = 0;
    if (target->space && target->space->jit) {
        bool is_replaced;
        open_files(target);
        err = read_files(target, INT64_MAX / 2);
        if (err >= 0)
            err = jit_take_in(target->space->jit, &is_replaced);
        jit_settle(target->space->jit);
    }
    jit_source_close(&jit->map);
    jit_source_close(&jit->dump);
    target->recording->jit_bytes_unread += jit->map.bytes_unread + jit->dump.bytes_unread;
    if (jit->has_owner)
        jit_owner_close(&jit->owner);
    *jit = (struct target_jit){0};
    return err;
}
