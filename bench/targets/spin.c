/* argv[1] threads that compute, and notice whenever they did not: each works in equal chunks of
 * about 0.1 us and reads the clock between them. If two readings are more than 5 us apart, it was
 * kept from working: paused by a tracer, by an interrupt, or for lack of a CPU.
 *
 * Its answer, summed over the threads:
 *   {"ns": time, "chunks": work done, "gap_ns": time in gaps, "gaps": {"BUCKET": COUNT, ...}} */
#include "target.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#define GAP_MIN_NS 5000
#define STEPS_PER_CHUNK 100

/* Buckets are 1/32 of a power of two wide, so that a gap's length is known to 3 %: the bucket of
 * `ns` is its power of two times 32, plus the 5 bits after its first one. */
#define BUCKET_BITS 5
#define BUCKETS (64 << BUCKET_BITS)

struct worker {
    pthread_t thread;
    _Atomic uint64_t chunks, gap_ns;
    _Atomic uint32_t gaps[BUCKETS];
};

static struct worker *workers;
static unsigned worker_count;
static pthread_barrier_t begun;

static unsigned bucket_of(uint64_t ns)
{
    unsigned power = 63u - (unsigned)__builtin_clzll(ns);
    return (power << BUCKET_BITS) | ((unsigned)(ns >> (power - BUCKET_BITS)) & 31u);
}

/* Only the thread itself writes its counters, so no locked instruction is needed, which would cost
 * work. */
static void add(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + amount, memory_order_relaxed);
}

static void note_gap(struct worker *worker, uint64_t ns)
{
    _Atomic uint32_t *bucket = &worker->gaps[bucket_of(ns)];
    uint32_t count = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, count + 1, memory_order_relaxed);
    add(&worker->gap_ns, ns);
}

/* Each step needs the one before it, so a chunk measures latency: the CPU can't do other work in
 * parallel. */
static uint64_t work(uint64_t state)
{
    for (int i = 0; i < STEPS_PER_CHUNK; i++)
        state = state * 6364136223846793005u + 1442695040888963407u;
    return state;
}

static void *spin(void *argument)
{
    struct worker *worker = argument;
    uint64_t state = 1;
    pthread_barrier_wait(&begun);
    uint64_t before_ns = now_ns();
    for (;;) {
        state = work(state);
        /* Never true, but the compiler does not know that. */
        if (state == 0)
            puts("");
        uint64_t after_ns = now_ns();
        if (after_ns - before_ns > GAP_MIN_NS)
            note_gap(worker, after_ns - before_ns);
        add(&worker->chunks, 1);
        before_ns = after_ns;
    }
    return NULL;
}

static void answer(void)
{
    uint64_t ns = now_ns(), chunks = 0, gap_ns = 0;
    const char *comma = "";
    for (unsigned i = 0; i < worker_count; i++) {
        chunks += workers[i].chunks;
        gap_ns += workers[i].gap_ns;
    }
    printf("{\"ns\": %" PRIu64 ", \"chunks\": %" PRIu64 ", \"gap_ns\": %" PRIu64 ", \"gaps\": {",
           ns, chunks, gap_ns);
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
        uint64_t count = 0;
        for (unsigned i = 0; i < worker_count; i++)
            count += workers[i].gaps[bucket];
        if (count) {
            printf("%s\"%u\": %" PRIu64, comma, bucket, count);
            comma = ", ";
        }
    }
    printf("}}");
}

int main(int argc, char **argv)
{
    worker_count = number_of(argc, argv, 1, 1);
    workers = calloc(worker_count, sizeof *workers);
    require(workers != NULL, "workers");
    pthread_barrier_init(&begun, NULL, worker_count + 1);
    for (unsigned i = 0; i < worker_count; i++)
        require(!pthread_create(&workers[i].thread, NULL, spin, &workers[i]), "thread");
    pthread_barrier_wait(&begun);
    serve(answer);
    return 0;
}
