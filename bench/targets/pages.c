/* Threads that map memory, touch each page of it and unmap it, over and over: nothing but page
 * faults, as many as possible, or a fixed number a second.
 *
 *     bench-pages THREADS PAGES-A-SECOND (0: as many as possible)
 *
 * Its answer: {"cpu_ns": CPU time so far, "pages": touched so far}. */
#include "target.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES 4096u
#define PAGES_AT_ONCE 64u

static _Atomic uint64_t pages;
static uint64_t pages_per_s;

static void rest(uint64_t begin_ns, uint64_t touched)
{
    uint64_t due_ns = pages_per_s ? begin_ns + touched * 1000000000u / pages_per_s : 0;
    uint64_t now = now_ns();
    if (due_ns <= now)
        return;
    const struct timespec pause = {(time_t)((due_ns - now) / 1000000000u),
                                   (long)((due_ns - now) % 1000000000u)};
    nanosleep(&pause, NULL);
}

static void *touch(void *argument)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t begin_ns = now_ns(), touched = 0;
    (void)argument;
    for (;;) {
        volatile unsigned char *memory = mmap(NULL, PAGES * page_bytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(memory != MAP_FAILED, "memory");
        madvise((void *)memory, PAGES * page_bytes, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < PAGES; i++) {
            memory[i * page_bytes] = 1;
            if (i % PAGES_AT_ONCE == 0)
                rest(begin_ns, touched + i);
        }
        touched += PAGES;
        pages += PAGES;
        munmap((void *)memory, PAGES * page_bytes);
    }
    return NULL;
}

static void answer(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("{\"cpu_ns\": %" PRIu64 ", \"pages\": %" PRIu64 "}",
           (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec, pages);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t thread;
    pages_per_s = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    for (int i = 0; i < threads; i++)
        require(!pthread_create(&thread, NULL, touch, NULL), "thread");
    serve(answer);
    return 0;
}
