/* What a thread says it works on: the record of OpenTelemetry's thread context (OTEP 4947,
 * open-telemetry/opentelemetry-specification, oteps/profiles/4947-thread-ctx.md).
 *
 * The TLS variable otel_thread_ctx_v1 points at a record: trace id, span id, a byte that is 1 while
 * the record is valid, the trace's flags, the size of the attributes, and the attributes, each with
 * a key number, a length, and this many bytes. Only the thread itself writes its record, so a
 * record that is read while the thread sleeps or is stopped is consistent. */
#ifndef FGPROF_OBSERVE_THREAD_CONTEXT_H
#define FGPROF_OBSERVE_THREAD_CONTEXT_H

#include "proc/stack_areas.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the threads of a program have the variable. */
struct context_place {
    enum { CONTEXT_NOWHERE, CONTEXT_STATIC, CONTEXT_DYNAMIC } kind;
    int64_t offset;  /* CONTEXT_STATIC: from the thread pointer; else in the module's block */
    uint64_t module; /* CONTEXT_DYNAMIC: its number, from 1 on (see proc/thread_pointer.h) */
};

#define CONTEXT_HEAD_BYTES 28
#define CONTEXT_TRACE_ID_BYTES 16
#define CONTEXT_SPAN_ID_BYTES 8
/* OTEP 4947 recommends at most 640. If a record is longer, the attributes that fit are read. */
#define CONTEXT_BYTES_MAX 1024u

enum context_state {
    CONTEXT_NOT_READ,   /* it was not requested */
    CONTEXT_NONE,       /* none is attached to the thread */
    CONTEXT_READ,       /* `record` has it */
    CONTEXT_CHANGED,    /* it changed while it was read, or the thread moved */
    CONTEXT_UNREADABLE, /* the thread pointer is not known, or the memory can't be read */
};

struct thread_context {
    enum context_state state;
    bool may_be_later; /* read after the sample of a running thread, and it may have changed
                          meanwhile */
    size_t bytes;      /* of the record that were read */
    unsigned char record[CONTEXT_BYTES_MAX];
};

/* A thread that can be read. */
struct context_thread {
    pid_t tid;
    const struct stack_areas *areas; /* its known mappings, or NULL */
    uint64_t *thread_pointer;        /* found and set if it is 0 */
};

/* Reads the record of a thread that sleeps or is stopped. */
void thread_context_read(const struct context_thread *thread, const struct context_place *place,
                         struct thread_context *context);

/* The same for a thread that may run: reads the record several times, at intervals of random
 * length. If one reading differs from the others, the state is CONTEXT_CHANGED. */
void thread_context_read_running(const struct context_thread *thread,
                                 const struct context_place *place, struct thread_context *context);

#endif
