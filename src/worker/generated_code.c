#include "worker/generated_code.h"
#include "base/clock.h"
#include "unwind/rule_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Reading takes at most this part of the time, and this much at once, some milliseconds. */
#define READING_PART_OF_TIME 20
#define TURN_BYTES (1u << 20)
#define TURNS_MAX 1024          /* at the end: more than the largest file takes */
#define FUNCTION_BYTES_MAX 8192 /* of a function's code, to learn how it is unwound */
/* Replaced code begins a new space with its own stacks. Once a program has this many spaces,
 * nothing more is read until the end; then the first code sampled at an address names everything
 * sampled there. */
#define SPACES_MAX 1000

/* To be called while the program lives; its files are still found later. */
static void open_owner(struct generated_code *generated, const struct observation *observation)
{
    if (!generated->has_owner)
        generated->has_owner =
            jit_owner_open(observation->program->proc_fd, observation_live_tid(observation),
                           &generated->owner) == 0;
}

int generated_note(struct generated_code *generated, struct space *space,
                   const struct observation *observation, const struct stack *stack)
{
    for (size_t i = 0; i < stack->depth; i++) {
        uint64_t address = stack->addresses[i];
        const struct mapping *mapping = space_find(space, address);
        if (!mapping || mapping->has_bias)
            continue;
        open_owner(generated, observation);
        int err = space_note_jit(space, address);
        if (err)
            return err;
    }
    return 0;
}

/* Reads through the program, because its process id may belong to another one by now. */
static size_t read_code(const struct program *program, uint64_t address, void *code, size_t bytes)
{
    ssize_t got = pread(program->mem_fd, code, bytes, (off_t)address);
    return got < 0 ? 0 : (size_t)got;
}

int generated_learn(const struct generated_code *generated, struct rule_tables *rules,
                    const struct space *space, const struct program *program, uint64_t address,
                    bool *ret_has_learnt)
{
    uint8_t code[FUNCTION_BYTES_MAX];
    const struct jit *jit = space->jit;
    uint32_t number = jit ? jit_code_find(&jit->code, address) : JIT_NO_SYMBOL;
    *ret_has_learnt = number != JIT_NO_SYMBOL || generated->reading.done_ns;
    if (number == JIT_NO_SYMBOL) {
        /* Remembers failures, so that each address is looked up once. */
        return *ret_has_learnt
                   ? rule_tables_learn_generated(rules, space->id, address, address, code, 0)
                   : 0;
    }
    const struct jit_symbol *symbol = &jit->code.symbols[number];
    size_t bytes = symbol->size < sizeof code ? symbol->size : sizeof code;
    bytes = read_code(program, symbol->start, code, bytes);
    return rule_tables_learn_generated(rules, space->id, address, symbol->start, code, bytes);
}

static void refuse(struct generated_code *generated, struct results *results)
{
    if (!generated->is_refused)
        results->counts.jit_files_refused++;
    generated->is_refused = true;
}

static void open_map(struct generated_code *generated, struct results *results)
{
    int fd = generated->map.is_open ? -EEXIST : jit_owner_open_map(&generated->owner);
    if (fd >= 0)
        jit_source_open(&generated->map, fd, false);
    else if (fd == -EACCES)
        refuse(generated, results);
}

/* A program that writes a jitdump maps the dump's first page executable, so that profilers find it.
 * So the dump is a module, and its file was opened when the mapping was first seen. */
static void open_dump(struct generated_code *generated, struct results *results,
                      const struct space *space)
{
    for (size_t i = 0; i < space->mapping_count && !generated->dump.is_open; i++) {
        const struct mapping *mapping = &space->mappings[i];
        if (!mapping->module || mapping->module->image.fd < 0 ||
            !jit_owner_names_dump(&generated->owner, mapping->path))
            continue;
        if (!jit_owner_believes(&generated->owner, mapping->module->image.fd)) {
            refuse(generated, results);
            continue;
        }
        int fd = fcntl(mapping->module->image.fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0)
            jit_source_open(&generated->dump, fd, true);
    }
}

/* Opens files that may exist by now. */
static void open_files(struct generated_code *generated, struct results *results,
                       const struct space *space)
{
    if (!generated->has_owner)
        return;
    open_map(generated, results);
    open_dump(generated, results, space);
}

/* Returns 1 if there is nothing more to read now, 0 if there is more, or -ENOMEM. */
static int read_file(struct jit_source *source, struct lookups *lookups, struct jit_code *code,
                     struct jit_reading *reading)
{
    if (!jit_source_has_more(source))
        return 1;
    int err = lookups->read_code(lookups, source, TURN_BYTES, reading);
    if (err == -EAGAIN || err == -ENOMEM)
        return err == -EAGAIN ? 1 : err;
    source->is_spent = err;
    if (!err)
        err = jit_source_take(source, reading, code);
    if (err == -ENOMEM)
        return err;
    return err || reading->is_at_end || source->is_spent || source->is_full;
}

/* Reads a turn of each file. Returns as above, of both; *ret_cpu_ns: what that took the reader. */
static int read_files(struct generated_code *generated, struct lookups *lookups,
                      struct jit_code *code, uint64_t *ret_cpu_ns)
{
    struct jit_reading reading = {0};
    int map_end = read_file(&generated->map, lookups, code, &reading);
    *ret_cpu_ns = reading.cpu_ns;
    reading.cpu_ns = 0;
    int dump_end = map_end < 0 ? map_end : read_file(&generated->dump, lookups, code, &reading);
    *ret_cpu_ns += reading.cpu_ns;
    buffer_free(&reading.announced);
    return dump_end < 0 ? dump_end : map_end && dump_end;
}

static bool has_room(const struct generated_code *generated, const struct spaces *spaces,
                     const struct jit *jit)
{
    bool is_full = generated->map.is_full || generated->dump.is_full;
    return spaces_with_jit(spaces, jit) < SPACES_MAX && (!is_full || jit_code_has_room(&jit->code));
}

/* Takes in what was read. */
static int take_in(struct results *results, struct space **space)
{
    bool is_replaced;
    int err = jit_take_in((*space)->jit, &is_replaced);
    return err || !is_replaced ? err : spaces_branch(&results->spaces, space);
}

int generated_update(struct generated_code *generated, struct rule_tables *rules,
                     struct results *results, const struct observation *observation,
                     struct space **space)
{
    struct throttle *reading = &generated->reading;
    uint64_t now_ns = monotonic_ns();
    if (!(*space)->jit || reading->done_ns >= observation->round_ns ||
        !throttle_allows(reading, now_ns, 0, READING_PART_OF_TIME) ||
        !has_room(generated, &results->spaces, (*space)->jit))
        return 0;
    generated->map.is_full = generated->dump.is_full = false;
    /* CPU time, because elapsed time would include that of other threads. */
    uint64_t begin_ns = thread_cpu_ns();
    open_owner(generated, observation);
    open_files(generated, results, *space);
    struct jit_code *code = &(*space)->jit->code;
    size_t applied_before = code->applied_count;
    /* Code reported before the end of the files is reached is not new: it is taken in then. */
    uint64_t reader_ns, took_ns;
    int err = read_files(generated, rule_tables_lookups(rules), code, &reader_ns);
    if (err > 0)
        err = take_in(results, space);
    /* Code that was sampled before its function was known had no unwind rule. */
    if (code->applied_count != applied_before)
        rule_tables_forget_generated(rules, (*space)->id);
    took_ns = thread_cpu_ns() - begin_ns;
    /* The reader may claim any time, but can't have taken more than this. */
    uint64_t elapsed_ns = monotonic_ns() - now_ns;
    took_ns += reader_ns < elapsed_ns ? reader_ns : elapsed_ns;
    *reading = (struct throttle){now_ns, took_ns};
    return err;
}

int generated_finish(struct generated_code *generated, struct rule_tables *rules,
                     struct results *results, struct space *space)
{
    int err = 0;
    if (space && space->jit) {
        bool is_replaced;
        uint64_t reader_ns;
        open_files(generated, results, space);
        for (unsigned turn = 0; turn < TURNS_MAX && !err; turn++)
            err = read_files(generated, rule_tables_lookups(rules), &space->jit->code, &reader_ns);
        if (err >= 0)
            err = jit_take_in(space->jit, &is_replaced);
        jit_settle(space->jit);
    }
    jit_source_close(&generated->map);
    jit_source_close(&generated->dump);
    results->counts.jit_bytes_unread += generated->map.bytes_unread + generated->dump.bytes_unread;
    if (generated->has_owner)
        jit_owner_close(&generated->owner);
    *generated = (struct generated_code){0};
    return err;
}
