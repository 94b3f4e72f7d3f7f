#include "observe/thread_context.h"
#include "proc/memory.h"
#include "proc/thread_pointer.h"

#include <stdatomic.h>
#include <string.h>

#define VALID_AT 24
#define ATTRIBUTE_BYTES_AT 26
#define PAGE_BYTES 4096u /* the smallest page there is */
#define MODULES_MAX 65536u

/* How many times a running thread's record is read. A mix of two records is accepted only if every
 * reading has the same mix. */
#define READINGS 8
#define PAUSE_STEPS_MAX 512u

static bool read_number(const struct context_thread *thread, uint64_t address, uint64_t *ret_number)
{
    return memory_read_word(thread->tid, thread->areas, address, ret_number);
}

/* Sets *ret_variable to the variable's address, or to 0 if the thread has none yet: its block for a
 * module that was loaded later is allocated on first use, and until then the row has
 * TLS_DTV_UNALLOCATED (glibc's sysdeps/generic/dl-dtv.h), or does not exist. Returns false if that
 * can't be read. */
static bool find_variable(const struct context_thread *thread, const struct context_place *place,
                          uint64_t *ret_variable)
{
    uint64_t thread_pointer = *thread->thread_pointer;
    uint64_t dtv, rows, block;
    if (place->kind == CONTEXT_STATIC) {
        *ret_variable = thread_pointer + (uint64_t)place->offset;
        return true;
    }
    /* The row before the first one has the number of rows. */
    if (!read_number(thread, thread_pointer_dtv(thread_pointer), &dtv) ||
        !read_number(thread, dtv - THREAD_DTV_ROW_BYTES, &rows))
        return false;
    *ret_variable = 0;
    if (place->module > rows || place->module > MODULES_MAX)
        return true;
    if (!read_number(thread, dtv + place->module * THREAD_DTV_ROW_BYTES, &block))
        return false;
    if (block && block != UINT64_MAX)
        *ret_variable = block + (uint64_t)place->offset;
    return true;
}

/* Memory behind a record may be slow to read, so the first read ends with the page of its head, and
 * the next one has the size from the head. */
static enum context_state read_record(const struct context_thread *thread, uint64_t address,
                                      struct thread_context *context)
{
    size_t first = PAGE_BYTES - address % PAGE_BYTES;
    uint16_t attribute_bytes;
    if (first < CONTEXT_HEAD_BYTES)
        first = CONTEXT_HEAD_BYTES;
    if (first > CONTEXT_BYTES_MAX)
        first = CONTEXT_BYTES_MAX;
    size_t got = memory_read(thread->tid, thread->areas, address, context->record, first);
    if (got < CONTEXT_HEAD_BYTES)
        return CONTEXT_UNREADABLE;
    if (context->record[VALID_AT] != 1)
        return CONTEXT_NONE;
    memcpy(&attribute_bytes, &context->record[ATTRIBUTE_BYTES_AT], sizeof attribute_bytes);
    size_t wanted = CONTEXT_HEAD_BYTES + (size_t)attribute_bytes;
    if (wanted > CONTEXT_BYTES_MAX)
        wanted = CONTEXT_BYTES_MAX;
    if (wanted > got && got == first)
        got += memory_read(thread->tid, thread->areas, address + got, context->record + got,
                           wanted - got);
    context->bytes = got < wanted ? got : wanted;
    return CONTEXT_READ;
}

/* Sets *ret_address to the record's address, 0 if there is none. */
static enum context_state read_once(const struct context_thread *thread,
                                    const struct context_place *place,
                                    struct thread_context *context, uint64_t *ret_address)
{
    uint64_t variable;
    context->bytes = 0;
    *ret_address = 0;
    if (!*thread->thread_pointer &&
        thread_pointer_find(thread->tid, thread->areas, thread->thread_pointer))
        return CONTEXT_UNREADABLE;
    if (!find_variable(thread, place, &variable))
        return CONTEXT_UNREADABLE;
    if (!variable)
        return CONTEXT_NONE;
    if (!read_number(thread, variable, ret_address))
        return CONTEXT_UNREADABLE;
    return *ret_address ? read_record(thread, *ret_address, context) : CONTEXT_NONE;
}

void thread_context_read(const struct context_thread *thread, const struct context_place *place,
                         struct thread_context *context)
{
    uint64_t address;
    context->may_be_later = false;
    context->state = read_once(thread, place, context, &address);
}

/* Pauses are random, so that no writer stays in step with the readings. */
static void pause_for_a_moment(void)
{
    static _Thread_local uint32_t state = 0x2545f491;
    state = state * 1664525u + 1013904223u;
    for (uint32_t i = (state >> 16) % PAUSE_STEPS_MAX; i > 0; i--)
        atomic_signal_fence(memory_order_seq_cst);
}

/* A record that is being written is not valid for some nanoseconds. */
static void read_valid(const struct context_thread *thread, const struct context_place *place,
                       struct thread_context *context, uint64_t *ret_address)
{
    for (unsigned i = 0; i < READINGS; i++) {
        context->state = read_once(thread, place, context, ret_address);
        if (context->state != CONTEXT_NONE || !*ret_address)
            return;
        pause_for_a_moment();
    }
}

static bool are_equal(const struct thread_context *a, const struct thread_context *b)
{
    return a->state == b->state &&
           (a->state != CONTEXT_READ ||
            (a->bytes == b->bytes && memcmp(a->record, b->record, a->bytes) == 0));
}

void thread_context_read_running(const struct context_thread *thread,
                                 const struct context_place *place, struct thread_context *context)
{
    struct thread_context again;
    uint64_t address, address_again;
    context->may_be_later = false;
    read_valid(thread, place, context, &address);
    for (unsigned i = 1; i < READINGS && context->state == CONTEXT_READ; i++) {
        pause_for_a_moment();
        again.state = read_once(thread, place, &again, &address_again);
        if (address_again != address || !are_equal(context, &again))
            context->state = CONTEXT_CHANGED;
    }
}
