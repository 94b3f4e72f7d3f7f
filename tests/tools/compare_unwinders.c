/* compare-unwinders PID SNAPSHOTS
 *
 * Takes that many snapshots of the process's threads, for at most a minute, unwinds each by rules
 * and by libunwind, and prints a row of results:
 *   snapshots=N frames=N rules_whole=N libunwind_whole=N agree=N disagree=N \
 *       rules_ns=NS libunwind_ns=NS
 * agree and disagree count snapshots in which libunwind reaches the thread's first frame; the times
 * are for one frame, with warm caches of rules. Disagreements are printed to standard error. Exits
 * with 1 if there are any, and with 2 if the comparison failed. */
#include "base/clock.h"
#include "mapping/modules.h"
#include "mapping/spaces.h"
#include "observe/proc_source.h"
#include "observe/ptrace_source.h"
#include "proc/process.h"
#include "walk_libunwind.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 4096
#define STACK_LIMIT (256u << 10)
#define LIMIT_NS 60000000000u
#define BETWEEN_NS 1000000
#define SHOWN_MAX 5
#define ROUNDS 20 /* of timing; the fastest one counts */
#define REPEATS 8 /* of each snapshot, because a fresh one is still in the CPU's caches */

struct context {
    struct process process;
    struct modules modules;
    struct spaces spaces;
    struct space *space;
    struct stack_areas areas;
    int maps_fd;
    struct snapshot *snapshots;
    struct watches watches;
    struct ptrace_source *stopped;
    size_t count, wanted;
    struct rule_tables rules;
    struct libunwind *libunwind;
};

struct result {
    size_t frames, rules_whole, libunwind_whole, agree, disagree;
};

static void take(struct context *context, pid_t tid)
{
    static const struct stack_place none = {0};
    struct snapshot *snapshot = &context->snapshots[context->count];
    struct subject subject = {
        .process_id = context->process.pid,
        .tid = tid,
        .proc_fd = context->process.proc_fd,
        .stack_areas = &context->areas,
        .stack_limit = STACK_LIMIT,
    };
    struct observation observation = {.snapshot = snapshot};
    enum outcome outcome = OUTCOME_REFUSED;
    if (snapshot_make_room(snapshot, STACK_LIMIT, &none))
        outcome = proc_source_observe(&context->watches, &subject, &observation);
    if (outcome == OUTCOME_RUNNING) {
        subject.look = observation.now;
        outcome = ptrace_source_observe(context->stopped, &subject, &observation);
        ptrace_source_interrupt(context->stopped);
    }
    while (outcome == OUTCOME_PENDING) {
        struct timespec nap = {0, 10000};
        nanosleep(&nap, NULL);
        if (ptrace_source_let_go(context->stopped, 0))
            ptrace_source_collect(context->stopped, &observation, &outcome);
    }
    watches_forget(&context->watches, 0); /* the next one is of another thread */
    if (outcome != OUTCOME_OBSERVED) {
        snapshot_clear(snapshot);
        return;
    }
    /* Only as much memory as it needs, because there are many. */
    unsigned char *fitting = realloc(snapshot->stack.memory, snapshot->stack.bytes + 1);
    if (fitting)
        snapshot->stack.memory = fitting;
    context->count++;
}

static void take_all(struct context *context)
{
    struct thread_list threads = {0};
    uint64_t begin_ns = monotonic_ns(), round = 0;
    while (context->count < context->wanted && monotonic_ns() - begin_ns < LIMIT_NS) {
        if (process_list_threads(&context->process, &threads, SIZE_MAX) || !threads.count)
            break;
        bool changed;
        if (round++ % 64 == 0) {
            stack_areas_read(&context->areas, context->maps_fd);
            spaces_refresh(&context->spaces, &context->modules, context->process.proc_fd,
                           context->process.pid, context->maps_fd, &context->space, &changed);
        }
        for (size_t i = 0; i < threads.count && context->count < context->wanted; i++)
            take(context, threads.tids[i]);
        struct timespec nap = {0, BETWEEN_NS};
        nanosleep(&nap, NULL);
    }
    thread_list_free(&threads);
}

static int unwind(struct context *context, size_t number, bool by_rules, struct stack *stack)
{
    struct unwind_hints hints = {0};
    struct walk walk = {.tables = &context->rules,
                        .space = context->space,
                        .snapshot = &context->snapshots[number],
                        .max_depth = MAX_DEPTH,
                        .stack = stack,
                        .hints = &hints,
                        .code_mask = registers_code_mask()};
    stack->depth = 0;
    stack->cut = STACK_WHOLE;
    return by_rules ? walk_by_rules(&walk) : walk_by_libunwind(&walk, context->libunwind);
}

static void show(const struct context *context, size_t number, const struct stack *rules,
                 const struct stack *libunwind)
{
    fprintf(stderr, "snapshot %zu: cut %d at depth %zu by rules, cut %d at %zu by libunwind\n",
            number, rules->cut, rules->depth, libunwind->cut, libunwind->depth);
    for (size_t i = 0; i < rules->depth || i < libunwind->depth; i++) {
        uint64_t left = i < rules->depth ? rules->addresses[i] : 0;
        uint64_t right = i < libunwind->depth ? libunwind->addresses[i] : 0;
        const struct mapping *mapping = space_find(context->space, left ? left : right);
        fprintf(stderr, "  %s %#" PRIx64 " %#" PRIx64 " %s+%#" PRIx64 "\n",
                left == right ? " " : "!", left, right, mapping ? mapping->path : "?",
                mapping ? (left ? left : right) - mapping->bias : 0);
    }
}

static void compare(struct context *context, struct result *result)
{
    struct stack rules = {0}, libunwind = {0};
    for (size_t i = 0; i < context->count; i++) {
        if (unwind(context, i, true, &rules) || unwind(context, i, false, &libunwind))
            exit(2);
        bool is_rules_whole = rules.cut == STACK_WHOLE;
        result->frames += rules.depth;
        result->rules_whole += is_rules_whole;
        if (getenv("SHOW_CUT") && !is_rules_whole)
            show(context, i, &rules, &libunwind);
        if (libunwind.cut != STACK_WHOLE)
            continue;
        result->libunwind_whole++;
        bool is_same = is_rules_whole && rules.depth == libunwind.depth &&
                       memcmp(rules.addresses, libunwind.addresses,
                              rules.depth * sizeof *rules.addresses) == 0;
        result->agree += is_same;
        result->disagree += !is_same;
        if (!is_same && result->disagree <= SHOWN_MAX)
            show(context, i, &rules, &libunwind);
    }
    free(rules.addresses);
    free(libunwind.addresses);
}

/* Nanoseconds per frame. */
static double measure(struct context *context, bool by_rules)
{
    struct stack stack = {0};
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t frames = 0;
        uint64_t begin_ns = monotonic_ns();
        for (size_t i = 0; i < context->count * REPEATS; i++) {
            unwind(context, i / REPEATS, by_rules, &stack);
            frames += stack.depth;
        }
        double ns = (double)(monotonic_ns() - begin_ns) / (double)(frames ? frames : 1);
        best = !round || ns < best ? ns : best;
    }
    free(stack.addresses);
    return best;
}

static int prepare(struct context *context, pid_t pid, size_t wanted)
{
    *context = (struct context){.wanted = wanted};
    context->snapshots = calloc(wanted + 1, sizeof *context->snapshots);
    if (!context->snapshots)
        return -ENOMEM;
    int err = ptrace_source_new(&context->watches, &context->stopped);
    if (!err)
        err = process_open(pid, &context->process);
    if (err)
        return err;
    context->maps_fd = openat(context->process.proc_fd, "maps", O_RDONLY | O_CLOEXEC);
    if (context->maps_fd < 0)
        return -errno;
    err = stack_areas_read(&context->areas, context->maps_fd);
    if (!err)
        err = spaces_add(&context->spaces, &context->modules, pid, context->process.proc_fd, pid,
                         context->maps_fd, &context->space);
    return err ? err : libunwind_new(&context->libunwind);
}

static void release(struct context *context)
{
    for (size_t i = 0; i < context->count; i++)
        snapshot_clear(&context->snapshots[i]);
    free(context->snapshots);
    ptrace_source_free(context->stopped);
    watches_free(&context->watches);
    libunwind_free(context->libunwind);
    rule_tables_free(&context->rules);
    stack_areas_free(&context->areas);
    spaces_free(&context->spaces);
    modules_free(&context->modules);
    close(context->maps_fd);
    process_close(&context->process);
}

int main(int argc, char **argv)
{
    struct context context;
    struct result result = {0};
    if (argc != 3)
        return 2;
    int err = prepare(&context, (pid_t)strtol(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
    if (err) {
        fprintf(stderr, "%s\n", strerror(-err));
        return 2;
    }
    take_all(&context);
    if (!context.count) {
        fprintf(stderr, "no snapshot could be taken\n");
        return 2;
    }
    compare(&context, &result);
    printf("snapshots=%zu frames=%zu rules_whole=%zu libunwind_whole=%zu agree=%zu disagree=%zu "
           "rules_ns=%.1f libunwind_ns=%.1f\n",
           context.count, result.frames, result.rules_whole, result.libunwind_whole, result.agree,
           result.disagree, measure(&context, true), measure(&context, false));
    release(&context);
    return result.disagree != 0;
}
