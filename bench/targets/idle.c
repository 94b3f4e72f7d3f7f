/* argv[1] sleeping threads: a third each in futex (a condition variable), poll and read. With
 * argv[2] = "waking" each wakes about once a second, after a random time of 0.5 to 1.5 s, and
 * sleeps again. With a third argument, "labelled", each has two labels, new ones at each wakeup.
 *
 * Its answer: {"wakes": total number of wakes so far} */
#include "fgprof_label.h"
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STACK_BYTES (32 * 1024)
#define WAKE_MIN_MS 500
#define WAKE_SPREAD_MS 1000

static unsigned thread_count;
static int is_waking, is_labelled;
static _Atomic uint64_t wakes;
static int never_fd; /* nobody ever writes to it */
static pthread_barrier_t begun;

static uint64_t random_ms(unsigned *seed)
{
    return WAKE_MIN_MS + (uint64_t)rand_r(seed) % WAKE_SPREAD_MS;
}

static struct timespec in_ms(uint64_t ms)
{
    uint64_t ns = now_ns() + ms * 1000000;
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Changes the thread's labels: one of ten routes, and its own number. */
static void take_labels(unsigned *seed)
{
    static __thread struct fgprof_labels sets[2];
    static __thread unsigned turn;
    struct fgprof_labels *labels = &sets[turn++ % 2];
    char route[16], number[16];
    if (!is_labelled)
        return;
    snprintf(route, sizeof route, "/route/%d", rand_r(seed) % 10);
    snprintf(number, sizeof number, "%u", *seed % 100);
    memset(labels, 0, sizeof *labels);
    require(!fgprof_labels_put(labels, "route", route), "label");
    require(!fgprof_labels_put(labels, "tenant", number), "label");
    fgprof_labels_attach(labels);
}

/* Each waits on a lock of its own: 3,333 threads on one lock would be another benchmark. */
static void in_futex(unsigned *seed)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    for (;;) {
        struct timespec until = in_ms(is_waking ? random_ms(seed) : 3600 * 1000);
        pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until);
        atomic_fetch_add(&wakes, 1);
        take_labels(seed);
    }
}

static void in_poll(unsigned *seed)
{
    struct pollfd never = {.fd = never_fd, .events = POLLIN};
    for (;;) {
        poll(&never, 1, is_waking ? (int)random_ms(seed) : -1);
        atomic_fetch_add(&wakes, 1);
        take_labels(seed);
    }
}

static void in_read(unsigned *seed)
{
    uint64_t value;
    int fd = is_waking ? timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC) : never_fd;
    require(fd >= 0, "timerfd_create");
    for (;;) {
        if (is_waking) {
            struct itimerspec when = {.it_value = in_ms(random_ms(seed))};
            require(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL), "timerfd_settime");
        }
        require(read(fd, &value, sizeof value) == sizeof value || errno == EINTR, "read");
        atomic_fetch_add(&wakes, 1);
        take_labels(seed);
    }
}

static void *sleep_on(void *argument)
{
    static void (*const sleeps[])(unsigned *) = {in_futex, in_poll, in_read};
    unsigned i = (unsigned)(uintptr_t)argument, seed = i;
    take_labels(&seed);
    pthread_barrier_wait(&begun);
    sleeps[i % 3](&seed);
    return NULL;
}

static void answer(void)
{
    printf("{\"wakes\": %" PRIu64 "}", wakes);
}

int main(int argc, char **argv)
{
    struct rlimit files;
    pthread_attr_t attributes;
    pthread_t thread;
    thread_count = number_of(argc, argv, 1, 10);
    is_waking = argc > 2 && strcmp(argv[2], "waking") == 0;
    is_labelled = argc > 3 && strcmp(argv[3], "labelled") == 0;
    require(!getrlimit(RLIMIT_NOFILE, &files), "getrlimit");
    files.rlim_cur = files.rlim_max; /* each timer needs a descriptor */
    require(!setrlimit(RLIMIT_NOFILE, &files), "setrlimit");
    never_fd = eventfd(0, EFD_CLOEXEC);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_barrier_init(&begun, NULL, thread_count + 1);
    for (unsigned i = 0; i < thread_count; i++) {
        errno = pthread_create(&thread, &attributes, sleep_on, (void *)(uintptr_t)i);
        require(!errno, "thread");
    }
    pthread_barrier_wait(&begun);
    serve(answer);
    return 0;
}
