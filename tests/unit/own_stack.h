/* Snapshots of the test's own thread, and what is needed to unwind them. */
#ifndef FGPROF_TESTS_OWN_STACK_H
#define FGPROF_TESTS_OWN_STACK_H

#include "unit.h"
#include "mapping/modules.h"
#include "mapping/spaces.h"
#include "proc/memory.h"
#include "unwind/rule_tables.h"
#include "unwind/unwind.h"

#include <pthread.h>
#include <ucontext.h>

static struct {
    struct spaces spaces;
    struct modules modules;
    struct space *space;
    struct rule_tables rules;
} self;

static inline uint64_t stack_end(void)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstack(&attributes, &lowest, &bytes), 0);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)lowest + bytes;
}

static inline void set_registers(struct registers *registers, const ucontext_t *context)
{
    memset(registers, 0, sizeof *registers);
#ifdef __x86_64__
    static const int order[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                  REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (unsigned i = 0; i < 17; i++)
        registers->values[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
#else
    for (unsigned i = 0; i < 31; i++)
        registers->values[i] = context->uc_mcontext.regs[i];
    registers->values[31] = context->uc_mcontext.sp;
    registers->values[32] = context->uc_mcontext.pc;
#endif
    registers->known = (1ull << architecture.register_count) - 1;
}

static inline void copy_stack(struct snapshot *snapshot)
{
    snapshot->stack.address = registers_sp(&snapshot->registers);
    snapshot->stack.end = stack_end();
    snapshot->stack.end_is_known = true;
    assert_true(snapshot->stack.end > snapshot->stack.address);
    snapshot->stack.bytes = (size_t)(snapshot->stack.end - snapshot->stack.address);
    snapshot->stack.capacity = snapshot->stack.bytes;
    snapshot->stack.memory = malloc(snapshot->stack.bytes);
    assert_non_null(snapshot->stack.memory);
    /* Not with memcpy: a sanitizer build would report the frames that it reads across. */
    snapshot->stack.bytes = memory_read(getpid(), NULL, snapshot->stack.address,
                                        snapshot->stack.memory, snapshot->stack.bytes);
    assert_true(snapshot->stack.bytes > 1000);
}

static inline int set_up_group(void **state)
{
    (void)state;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int err =
        spaces_add(&self.spaces, &self.modules, getpid(), proc_fd, getpid(), maps_fd, &self.space);
    close(maps_fd);
    close(proc_fd);
    return err;
}

static inline int tear_down_group(void **state)
{
    (void)state;
    rule_tables_free(&self.rules);
    spaces_free(&self.spaces);
    modules_free(&self.modules);
    return 0;
}

#endif
