#include "worker/threads.h"
#include "base/array.h"

#include <stdlib.h>

struct counted_thread *counted_threads_get(struct counted_threads *threads, uint32_t number,
                                           pid_t tid)
{
    if (array_extend(&threads->items, &threads->count, &threads->capacity, number + 1u))
        return NULL;
    struct counted_thread *thread = &threads->items[number];
    if (thread->tid != tid) {
        kept_stack_drop(&thread->kept);
        ledger_free(&thread->account.ledger);
        *thread = (struct counted_thread){
            .tid = tid,
            .unwinding.stack_limit = STACK_LIMIT_FIRST,
        };
    }
    return thread;
}

void kept_stack_drop(struct kept_stack *kept)
{
    free(kept->stack.addresses);
    *kept = (struct kept_stack){0};
}

void counted_threads_free(struct counted_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++) {
        kept_stack_drop(&threads->items[i].kept);
        ledger_free(&threads->items[i].account.ledger);
    }
    free(threads->items);
    *threads = (struct counted_threads){0};
}
