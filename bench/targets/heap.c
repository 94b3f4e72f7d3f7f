/* Allocates memory in known ways, for profilers of the heap and their costs.
 *
 * heap pairs COUNT DEPTH BYTES THREADS: each thread allocates and frees COUNT blocks of BYTES, each
 * immediately, DEPTH frames deep. Prints {"ns": time of a pair, the mean of all threads}.
 *
 * heap shares ROUNDS: ten functions allocate known numbers of bytes in blocks of 8 B to 8 MB, and
 * keep every other block. Prints {"FUNCTION": {"allocated": BYTES, "in_use": BYTES}, ...}. If there
 * is an input, it ends with that; blocks that are kept are never freed. */
#include "target.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

struct task {
    pthread_t thread;
    unsigned count, depth;
    size_t bytes;
    uint64_t ns;
};

/* So that the compiler keeps every pair. */
static void *volatile seen;

static __attribute__((noinline)) void allocate_pairs(unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        void *block = malloc(bytes);
        seen = block;
        free(block);
    }
}

static __attribute__((noinline)) void go_down(unsigned depth, unsigned count, size_t bytes)
{
    char frame[64];
    memset(frame, (int)depth, sizeof frame);
    if (depth)
        go_down(depth - 1, count, bytes);
    else
        allocate_pairs(count, bytes);
    __asm__ volatile("" ::"r"(frame) : "memory");
}

static void *run_task(void *argument)
{
    struct task *task = argument;
    go_down(task->depth, task->count / 10, task->bytes);
    uint64_t begin_ns = now_ns();
    go_down(task->depth, task->count, task->bytes);
    task->ns = now_ns() - begin_ns;
    return NULL;
}

static int measure_pairs(int argc, char **argv)
{
    unsigned count = (unsigned)strtoul(argc > 2 ? argv[2] : "1000000", NULL, 10);
    unsigned depth = number_of(argc, argv, 3, 24), threads = number_of(argc, argv, 5, 1);
    size_t bytes = number_of(argc, argv, 4, 516);
    struct task *tasks = calloc(threads, sizeof *tasks);
    double ns = 0;
    require(tasks != NULL && count > 0 && threads > 0, "tasks");
    for (unsigned i = 0; i < threads; i++) {
        tasks[i] = (struct task){.count = count, .depth = depth, .bytes = bytes};
        require(!pthread_create(&tasks[i].thread, NULL, run_task, &tasks[i]), "thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(tasks[i].thread, NULL);
        ns += (double)tasks[i].ns / count / threads;
    }
    printf("{\"ns\": %.3f}\n", ns);
    free(tasks);
    return 0;
}

struct share {
    const char *name;
    uint64_t allocated, in_use;
};

/* Blocks that stay are linked, so that leak detectors see that they are reachable. */
struct block {
    struct block *next;
};

static struct block *kept;

static void note(struct share *share, struct block *block, size_t bytes, unsigned round)
{
    require(block != NULL, "block");
    share->allocated += bytes;
    if (round % 2) {
        free(block);
        return;
    }
    share->in_use += bytes;
    block->next = kept;
    kept = block;
}

/* Each function allocates that many bytes per round, in blocks of one size. */
#define SHARES(X)                                                                                  \
    X(8, 40000)                                                                                    \
    X(24, 60000)                                                                                   \
    X(64, 100000)                                                                                  \
    X(200, 150000)                                                                                 \
    X(516, 250000)                                                                                 \
    X(1500, 400000)                                                                                \
    X(4096, 600000)                                                                                \
    X(40000, 900000)                                                                               \
    X(1000000, 4000000)                                                                            \
    X(8000000, 8000000)

#define DEFINE(block_bytes, round_bytes)                                                           \
    static                                                                                         \
        __attribute__((noinline)) void allocate_##block_bytes(struct share *share, unsigned round) \
    {                                                                                              \
        for (size_t i = 0; i < (round_bytes) / (block_bytes); i++)                                 \
            note(share, malloc(block_bytes), block_bytes, round);                                  \
        __asm__ volatile("" ::: "memory");                                                         \
    }
SHARES(DEFINE)

static int allocate_shares(unsigned rounds)
{
#define NAME(block_bytes, round_bytes) {.name = "allocate_" #block_bytes},
    struct share shares[] = {SHARES(NAME)};
    const char *comma = "{";
    for (unsigned round = 0; round < rounds; round++) {
        struct share *share = shares;
#define CALL(block_bytes, round_bytes) allocate_##block_bytes(share++, round);
        SHARES(CALL)
    }
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        printf("%s\"%s\": {\"allocated\": %" PRIu64 ", \"in_use\": %" PRIu64 "}", comma,
               shares[i].name, shares[i].allocated, shares[i].in_use);
        comma = ", ";
    }
    puts("}");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "pairs") == 0)
        return measure_pairs(argc, argv);
    if (argc > 1 && strcmp(argv[1], "shares") == 0)
        return allocate_shares(number_of(argc, argv, 2, 100));
    fputs("usage: heap pairs COUNT DEPTH BYTES THREADS | heap shares ROUNDS\n", stderr);
    return 2;
}
