#include "worker/wake_causes.h"
#include "base/text.h"
#include "worker/elapsed_ticks.h"

#include <stdio.h>
#include <string.h>

/* ---- What ran ---- */

/* Functions of Linux, by a part of their names, and what they tell. */
struct cause {
    const char *function;
    enum waker_kind kind;
};
static const struct cause causes_of_interrupts[] = {
    {"net_rx_action", WAKER_NETWORK},   {"net_tx_action", WAKER_NETWORK},
    {"napi_", WAKER_NETWORK},           {"blk_", WAKER_DISK},
    {"bio_endio", WAKER_DISK},          {"nvme_", WAKER_DISK},
    {"virtblk_", WAKER_DISK},           {"hrtimer", WAKER_TIMER},
    {"run_timer_softirq", WAKER_TIMER}, {"call_timer_fn", WAKER_TIMER},
};
/* Entries of interrupts: arch/x86/include/asm/idtentry.h, and arch/arm64/kernel/entry-common.c. */
static const char *const entries[] = {"common_interrupt", "sysvec_",       "irq_exit",
                                      "_64_irq",          "el1_interrupt", "el0_interrupt"};

/* The innermost function that shows it, because one interrupt may interrupt another. */
static enum waker_kind cause_of(char *functions)
{
    char *rest;
    for (char *name = strtok_r(functions, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        for (size_t i = 0; i < sizeof causes_of_interrupts / sizeof *causes_of_interrupts; i++) {
            if (strstr(name, causes_of_interrupts[i].function))
                return causes_of_interrupts[i].kind;
        }
    }
    return WAKER_INTERRUPT;
}

static bool has_entry(const char *functions, size_t length)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (memmem(functions, length, entries[i], strlen(entries[i])))
            return true;
    }
    return false;
}

/* A packet to the same machine is delivered by the thread that sends it, when it enables softirqs
 * again (__local_bh_enable_ip), unless an interrupt does so first. */
static bool is_interrupt(const char *functions)
{
    return has_entry(functions, strlen(functions)) ||
           (strstr(functions, "softirq") && !strstr(functions, "process_backlog"));
}

static int write_functions(struct kernel_names *names, const struct wake_seen *seen,
                           char ret_functions[KERNEL_STACK_BYTES])
{
    uint64_t addresses[WAKE_CHAIN_MAX];
    const struct kernel_chain chain = {.addresses = addresses,
                                       .count = seen->chain_depth,
                                       .is_cut = seen->chain_depth == WAKE_CHAIN_MAX};
    memcpy(addresses, seen->chain, sizeof addresses);
    return kernel_names_write(names, &chain, ret_functions);
}

/* WAKER_THREAD: the thread that ran. */
static int find_cause(struct kernel_names *names, struct wake_causes *causes,
                      const struct wake_seen *seen, enum waker_kind *ret_kind)
{
    char functions[KERNEL_STACK_BYTES];
    uint64_t hash = hash_bytes(seen->chain, seen->chain_depth * sizeof *seen->chain, 1);
    size_t item = hash % WAKE_CAUSES_MAX;
    if (hash && causes->items[item].hash == hash) {
        *ret_kind = causes->items[item].kind;
        return 0;
    }
    int err = write_functions(names, seen, functions);
    if (err)
        return err;
    /* Every wakeup passes through a function with such a name: if there is none, the names are not
     * known. */
    if (!strstr(functions, "wake") && !strstr(functions, "ttwu"))
        *ret_kind = WAKER_UNKNOWN;
    else
        *ret_kind = is_interrupt(functions) ? cause_of(functions) : WAKER_THREAD;
    if (*ret_kind != WAKER_UNKNOWN) {
        causes->items[item].hash = hash;
        causes->items[item].kind = *ret_kind;
    }
    return 0;
}

static int name_thread(struct results *results, const struct wake_seen *seen, uint32_t process,
                       struct waker *waker)
{
    char name[THREAD_NAME_BYTES + 16];
    bool has_id = process == PROCESS_NONE && seen->process_id && waker->kind == WAKER_THREAD;
    if (has_id)
        snprintf(name, sizeof name, "%s/%d", seen->name, (int)seen->process_id);
    else
        snprintf(name, sizeof name, "%s", seen->name);
    if (waker->kind == WAKER_THREAD && process == PROCESS_NONE)
        waker->kind = WAKER_OTHER_THREAD;
    if (waker->kind == WAKER_THREAD) {
        waker->process_plus_1 = process + 1;
        waker->tid = (uint32_t)seen->tid;
    }
    return strings_intern(&results->strings, name, &waker->name);
}

int wake_find_waker(struct results *results, struct kernel_names *names, struct wake_causes *causes,
                    const struct wake_seen *seen, uint32_t process, struct waker *ret_waker)
{
    *ret_waker = (struct waker){0};
    int err = find_cause(names, causes, seen, &ret_waker->kind);
    if (err || ret_waker->kind != WAKER_THREAD)
        return err;
    if (seen->thread == WAKE_BY_IDLE)
        ret_waker->kind = WAKER_INTERRUPT;
    else if (seen->thread == WAKE_BY_KERNEL_THREAD)
        ret_waker->kind = WAKER_KERNEL_THREAD;
    return ret_waker->kind == WAKER_INTERRUPT ? 0 : name_thread(results, seen, process, ret_waker);
}

/* ---- The kernel's functions ---- */

/* Ends the functions with the entry of the interrupt: what it interrupted has no part in it. */
static void end_with_entry(char *functions)
{
    bool was_entry = false;
    for (char *name = functions, *next; *name; name = next) {
        size_t length = strcspn(name, "\n");
        bool is_in_entry = has_entry(name, length);
        if (was_entry && !is_in_entry) {
            *name = '\0';
            return;
        }
        was_entry = is_in_entry;
        next = name + length + 1;
    }
}

/* Skips the functions by which the kernel runs our program. */
static char *without_tracing(char *functions)
{
    static const char *const tracing[] = {"bpf_", "__bpf_", "__traceiter_"};
    while (text_begins_any(functions, tracing, COUNT_OF(tracing)))
        functions += strcspn(functions, "\n") + 1;
    return functions;
}

int wake_find_functions(struct results *results, struct kernel_names *names,
                        const struct wake_seen *seen, struct waker *waker)
{
    char functions[KERNEL_STACK_BYTES];
    if (waker->kind == WAKER_UNKNOWN)
        return 0;
    int err = write_functions(names, seen, functions);
    if (err)
        return err;
    if (is_interrupt(functions))
        end_with_entry(functions);
    return kernel_names_intern_text(names, &results->strings, without_tracing(functions),
                                    &waker->kernel_stack);
}

/* ---- What moves ---- */

/* From now on, ticks of the wait are counted for the sample `to`. */
static void point(struct results *results, struct counted_thread *thread, uint32_t from,
                  uint32_t to)
{
    struct thread_account *account = &thread->account;
    struct ledger *ledger = &account->ledger;
    if (account->last_sample == from)
        account->last_sample = to;
    if (account->unowned_sample == from)
        account->unowned_sample = to;
    if (ledger->has_sample[ACCOUNT_ASLEEP] && ledger->last_sample[ACCOUNT_ASLEEP] == from)
        ledger->last_sample[ACCOUNT_ASLEEP] = to;
    if (account->wait.is_open && account->wait.sample == from)
        elapsed_ticks_place_wait(results, thread, to);
}

static int move(struct results *results, struct counted_thread *thread,
                const struct open_wait *open, const struct waker *waker)
{
    struct thread_account *account = &thread->account;
    struct stack_table *stacks = &results->stacks;
    uint32_t from = open->sample, to = from;
    int err = waker_place(results, waker, &to);
    if (err || to == from)
        return err;
    window_move(&account->ledger.windows[ACCOUNT_ASLEEP], from, to, open->window_ticks);
    stack_table_move(stacks, from, to, open->given.ticks, open->given.time_ns, open->given.part_ns);
    if (open->sleeps) {
        stack_table_take_sleeps(stacks, from, open->sleeps);
        stack_table_count_sleeps(stacks, to, open->sleeps);
    }
    timeline_correct(&results->timeline, &account->timeline, from, to);
    tick_runs_correct(&results->timeline.ticks, &account->ticks, open->departed_ns, from, to);
    if (account->wakers.departed_ns == open->departed_ns)
        point(results, thread, from, to);
    return 0;
}

int wake_end_wait(struct results *results, struct counted_thread *thread, uint64_t departed_ns,
                  const struct waker *waker)
{
    struct thread_wakers *wakers = &thread->account.wakers;
    int err = 0;
    departed_ns = departed_ns ? departed_ns : WAIT_BEFORE_RECORD;
    if (wakers->departed_ns == departed_ns)
        thread->account.sleep_is_over = true;
    for (unsigned i = 0; i < OPEN_WAITS_MAX && !err; i++) {
        struct open_wait *open = &wakers->open[i];
        if (open->departed_ns != departed_ns)
            continue;
        err = move(results, thread, open, waker);
        *open = (struct open_wait){0};
    }
    if (departed_ns != WAIT_BEFORE_RECORD)
        wakers_note_ended(wakers, departed_ns, waker);
    return err;
}
