#include "session.h"
#include "machine.h"
#include "base/clock.h"
#include "mapping/modules.h"
#include "proc/memory.h"
#include "unwind/signal_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define MAX_DEPTH 4096
#define STACK_LIMIT (256u << 10)

static int refresh_maps(struct session *session)
{
    bool changed;
    if (!session->maps_are_old)
        return 0;
    session->maps_are_old = false;
    instructions_forget(&session->instructions);
    int err = stack_areas_read(&session->areas, session->maps_fd);
    return err ? err
               : spaces_refresh(&session->spaces, &session->modules, session->process.proc_fd,
                                session->process.pid, session->maps_fd, &session->space, &changed);
}

/* Repeats with another stack, if this one leads to it. */
static int unwind(struct session *session)
{
    struct stack_place other = {0};
    struct unwind_hints hints;
    for (;;) {
        if (!snapshot_make_room(&session->snapshot, STACK_LIMIT, &other))
            return -ENOMEM;
        snapshot_copy_stacks(&session->snapshot, session->tracee.pid, &session->areas, STACK_LIMIT,
                             &other);
        int err = unwind_snapshot(&session->rules, session->space, &session->snapshot, MAX_DEPTH,
                                  &session->stack, &hints);
        if (err || other.address || !hints.missing_address)
            return err;
        other = (struct stack_place){hints.missing_address, STACK_LIMIT};
    }
}

static int compare(struct session *session)
{
    size_t depth;
    int err = refresh_maps(session);
    if (err)
        return err;
    err = unwind(session);
    if (err)
        return err;
    session->compared++;
    const struct judged judged = {session->shadow.current, &session->snapshot, &session->stack,
                                  session->space};
    enum verdict verdict = judge(&judged, &depth);
    session->tally.counts[verdict]++;
    session->frames += depth;
    if (verdict == VERDICT_EQUAL)
        return 0;
    struct difference difference = {.verdict = verdict, .cut = session->stack.cut};
    struct instruction instruction = {0};
    instructions_get(&session->instructions, session->tracee.pid,
                     registers_pc(&session->snapshot.registers), &instruction);
    difference.form = instruction.form;
    judge_describe(&judged, depth, &difference);
    return tally_add(&session->tally, &difference) ? 0 : -ENOMEM;
}

static struct shadow_place place_of(const struct registers *registers)
{
    return (struct shadow_place){registers_pc(registers), registers_sp(registers)};
}

static bool changes_maps(uint64_t number)
{
    return number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect ||
           number == SYS_mremap || number == SYS_brk || number == SYS_shmat;
}

static uint64_t read_word(pid_t pid, uint64_t address)
{
    uint64_t word = 0;
    memory_read(pid, NULL, address, &word, sizeof word);
    return word;
}

/* Whether a handler was entered from `before`: its frame has the interrupted stack pointer. */
static bool read_signal_frame(pid_t pid, struct shadow_place before, const struct registers *after,
                              struct shadow_signal *ret_signal)
{
    bool has_link = architecture.link != REGISTERS_MAX;
    uint64_t sp = registers_sp(after), end_sp = has_link ? sp : sp + 8;
    uint64_t stack_at = end_sp + machine_ucontext_offset + offsetof(ucontext_t, uc_stack);
    *ret_signal = (struct shadow_signal){
        .sp = sp,
        .end_sp = end_sp,
        .restorer = has_link ? after->values[architecture.link] : read_word(pid, sp),
        .interrupted_pc = read_word(pid, end_sp + signal_frame_offsets[architecture.pc]),
        .interrupted_sp = read_word(pid, end_sp + signal_frame_offsets[architecture.sp]),
        .stack = read_word(pid, stack_at + offsetof(stack_t, ss_sp)),
        .stack_bytes = read_word(pid, stack_at + offsetof(stack_t, ss_size)),
    };
    return registers_pc(after) != before.pc && ret_signal->interrupted_sp == before.sp;
}

static bool follow(struct session *session, int signal, const struct registers *old,
                   const struct instruction *instruction)
{
    struct shadow_place before = place_of(old);
    struct shadow_place after = place_of(&session->snapshot.registers);
    struct shadow_signal frame;
    if (before.pc == after.pc && before.sp == after.sp)
        return true;
    if (signal &&
        read_signal_frame(session->tracee.pid, before, &session->snapshot.registers, &frame))
        return shadow_enter_handler(&session->shadow, &frame);
    return shadow_step(&session->shadow, instruction, machine_call_number(old), before, after);
}

/* Takes one step. Returns 1 if it was taken, 0 at the program's end, or a negative errno. */
static int step(struct session *session, bool *ret_moved)
{
    struct registers old = session->snapshot.registers;
    struct instruction instruction;
    int signal = session->tracee.signal;
    if (!instructions_get(&session->instructions, session->tracee.pid, registers_pc(&old),
                          &instruction))
        instruction = (struct instruction){.pc = registers_pc(&old)};
    if (instruction.kind == INSTRUCTION_SYSCALL && changes_maps(machine_call_number(&old)))
        session->maps_are_old = true;
    if (tracee_step(&session->tracee) == TRACEE_ENDED ||
        tracee_registers(&session->tracee, &session->snapshot.registers))
        return 0;
    if (!follow(session, signal, &old, &instruction))
        return -ENOMEM;
    *ret_moved = registers_pc(&session->snapshot.registers) != registers_pc(&old);
    return 1;
}

/* Returns 1 at the window's end, 0 at the program's end, or a negative errno. */
static int run_window(struct session *session, bool is_whole)
{
    const struct options *options = &session->options;
    session->maps_are_old = true;
    if (tracee_registers(&session->tracee, &session->snapshot.registers))
        return 0;
    shadow_begin(&session->shadow, registers_sp(&session->snapshot.registers), is_whole);
    for (uint64_t i = 0; i < options->skip + options->steps; i++) {
        bool moved = false;
        if (i % 1024 == 0 && monotonic_ns() > session->deadline_ns)
            return 0;
        int result = step(session, &moved);
        if (result <= 0)
            return result;
        session->stepped++;
        int err = moved && i >= options->skip && i % options->every == 0 ? compare(session) : 0;
        if (err)
            return err;
    }
    return 1;
}

int session_run(struct session *session)
{
    const struct options *options = &session->options;
    if (options->from_entry && tracee_run_to_entry(&session->tracee) == TRACEE_ENDED)
        return -ENOEXEC;
    for (uint64_t i = 0; i < options->windows; i++) {
        if (options->after_ms && tracee_run(&session->tracee, options->after_ms) == TRACEE_ENDED)
            return 0;
        int result = run_window(session, !options->after_ms && !i);
        if (result <= 0)
            return result;
    }
    return 0;
}

int session_begin(struct session *session, char **command)
{
    cpu_set_t one;
    /* On one CPU, a step costs a third of what it costs on two. */
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    int err = tracee_start(command, &session->tracee);
    if (err)
        return err;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", session->tracee.pid);
    session->process.pid = session->tracee.pid;
    session->process.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    session->maps_fd = openat(session->process.proc_fd, "maps", O_RDONLY | O_CLOEXEC);
    if (session->maps_fd < 0)
        return -errno;
    session->tally.rules = &session->rules;
    return spaces_add(&session->spaces, &session->modules, session->process.pid,
                      session->process.proc_fd, session->process.pid, session->maps_fd,
                      &session->space);
}

void session_end(struct session *session)
{
    tracee_end(&session->tracee);
    shadow_free(&session->shadow);
    tally_free(&session->tally);
    rule_tables_free(&session->rules);
    snapshot_clear(&session->snapshot);
    free(session->stack.addresses);
    instructions_free(&session->instructions);
    stack_areas_free(&session->areas);
    spaces_free(&session->spaces);
    modules_free(&session->modules);
    close(session->maps_fd);
    close(session->process.proc_fd);
}
