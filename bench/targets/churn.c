/* Short-lived threads: argv[1] a second are created, at equal intervals, and each sleeps for
 * argv[2] milliseconds and exits.
 *
 * Its answer: {"born": number of threads so far} */
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#define STACK_BYTES (32 * 1024)

static unsigned rate_hz, life_ms;
static _Atomic uint64_t born;

static void *live(void *argument)
{
    struct timespec life = {life_ms / 1000, (long)(life_ms % 1000) * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &life, &life) == EINTR) {
    }
    return argument;
}

/* Creates each thread at its time, or immediately if that has passed: on a busy machine threads
 * come later, but not fewer of them. */
static void *bear(void *argument)
{
    pthread_attr_t attributes;
    uint64_t begin_ns = now_ns();
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint64_t i = 1;; i++) {
        pthread_t thread;
        uint64_t ns = begin_ns + i * 1000000000u / rate_hz;
        struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
        }
        errno = pthread_create(&thread, &attributes, live, NULL);
        require(!errno, "thread");
        atomic_fetch_add(&born, 1);
    }
    return argument;
}

static void answer(void)
{
    printf("{\"born\": %" PRIu64 "}", born);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    rate_hz = number_of(argc, argv, 1, 2000);
    life_ms = number_of(argc, argv, 2, 5);
    require(rate_hz > 0 && !pthread_create(&thread, NULL, bear, NULL), "thread");
    serve(answer);
    return 0;
}
