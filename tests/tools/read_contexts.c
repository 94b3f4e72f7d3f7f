/* Reads COUNT times the thread context of a thread that changes it as often as it can, and prints
 * the results. Usage: read_contexts COUNT. Fails if a record that mixes two states was accepted.
 *
 * The writer alternately changes its record in place and switches to another record. A record's
 * value consists of one repeated byte, and so do its ids. */
#include "observe/thread_context.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VALUE_BYTES 200

struct record {
    unsigned char ids[24];
    unsigned char valid, flags;
    uint16_t bytes;
    unsigned char key, length, value[VALUE_BYTES];
};

/* Shared with the writer, which counts its changes there. */
struct shared {
    _Atomic uint64_t changes;
};

static __thread const void *volatile variable;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void write_on(struct shared *shared)
{
    static struct record records[2];
    for (uint64_t i = 0;; i++) {
        struct record *record = &records[i / 4 % 2];
        int byte = 'a' + (int)(i % 26);
        *(volatile unsigned char *)&record->valid = 0;
        atomic_signal_fence(memory_order_seq_cst);
        memset(record->ids, byte, sizeof record->ids);
        record->bytes = 2 + VALUE_BYTES;
        record->key = 0;
        record->length = VALUE_BYTES;
        memset(record->value, byte, VALUE_BYTES);
        atomic_signal_fence(memory_order_seq_cst);
        *(volatile unsigned char *)&record->valid = 1;
        variable = record;
        atomic_store_explicit(&shared->changes, i, memory_order_relaxed);
    }
}

static bool is_mixed(const struct thread_context *context)
{
    if (context->bytes != CONTEXT_HEAD_BYTES + 2 + VALUE_BYTES)
        return true;
    for (size_t i = 0; i < VALUE_BYTES; i++) {
        if (context->record[CONTEXT_HEAD_BYTES + 2 + i] != context->record[0])
            return true;
    }
    for (size_t i = 1; i < 24; i++) {
        if (context->record[i] != context->record[0])
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, states[5] = {0}, mixed = 0;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!count || shared == MAP_FAILED)
        return 2;
    pid_t writer = fork();
    if (writer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_on(shared);
    }
    /* The child has the same thread pointer as its parent. */
    uint64_t pointer = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    const struct context_place place = {CONTEXT_STATIC,
                                        (int64_t)((uint64_t)(uintptr_t)&variable - pointer), 0};
    const struct context_thread thread = {writer, NULL, &pointer};
    struct thread_context context;
    while (!atomic_load(&shared->changes)) {
    }
    double begin_s = now_s();
    uint64_t changes = atomic_load(&shared->changes);
    for (uint64_t i = 0; i < count; i++) {
        thread_context_read_running(&thread, &place, &context);
        states[context.state]++;
        mixed += context.state == CONTEXT_READ && is_mixed(&context);
    }
    double s = now_s() - begin_s;
    changes = atomic_load(&shared->changes) - changes;
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    printf("{\"reads\": %" PRIu64 ", \"taken\": %" PRIu64 ", \"changed\": %" PRIu64
           ", \"none\": %" PRIu64 ", \"unreadable\": %" PRIu64 ", \"mixed\": %" PRIu64
           ", \"us\": %.2f, \"changes_per_s\": %.0f}\n",
           count, states[CONTEXT_READ], states[CONTEXT_CHANGED], states[CONTEXT_NONE],
           states[CONTEXT_UNREADABLE], mixed, s * 1e6 / (double)count, (double)changes / s);
    return mixed != 0;
}
