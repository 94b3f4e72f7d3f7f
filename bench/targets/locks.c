/* Locks of each kind, with a measurement of how long threads waited for them. Each has one thread
 * named "hold-KIND", which holds it for 200 us to 50 ms by turns in nested functions, and two named
 * "wait-KIND", which release it immediately. With argv[1] and argv[2] there are that many threads
 * instead, which wait for one lock ("mutex") or in one condition variable ("condition") for ever.
 *
 * Its answer: for each kind, the nanoseconds that its two waiters have waited so far */
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#define STACK_BYTES (64 * 1024)
#define MS 1000000u

struct kind {
    const char *name;
    int type, protocol, robust, shared;
    bool is_rwlock, computes;
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    _Atomic uint64_t waited_ns;
};

static struct kind kinds[] = {
    {.name = "plain"},
    {.name = "computing", .computes = true},
    {.name = "recursive", .type = PTHREAD_MUTEX_RECURSIVE},
    {.name = "checking", .type = PTHREAD_MUTEX_ERRORCHECK},
    {.name = "adaptive", .type = PTHREAD_MUTEX_ADAPTIVE_NP},
    {.name = "inherit", .protocol = PTHREAD_PRIO_INHERIT},
    {.name = "robust", .robust = PTHREAD_MUTEX_ROBUST},
    {.name = "shared", .shared = PTHREAD_PROCESS_SHARED},
    {.name = "rwlock", .is_rwlock = true},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static pthread_mutex_t one_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t begun;

void hold_outer(struct kind *kind, uint64_t hold_ns);
void hold_inner(struct kind *kind, uint64_t hold_ns);

static void sleep_ns(uint64_t ns)
{
    const struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&time, NULL);
}

static void take(struct kind *kind)
{
    errno =
        kind->is_rwlock ? pthread_rwlock_wrlock(&kind->rwlock) : pthread_mutex_lock(&kind->mutex);
    require(!errno, "lock");
}

static void let_go(struct kind *kind)
{
    errno =
        kind->is_rwlock ? pthread_rwlock_unlock(&kind->rwlock) : pthread_mutex_unlock(&kind->mutex);
    require(!errno, "unlock");
}

__attribute__((noinline)) void hold_inner(struct kind *kind, uint64_t hold_ns)
{
    uint64_t until_ns = now_ns() + hold_ns;
    while (kind->computes && now_ns() < until_ns) {
    }
    if (!kind->computes)
        sleep_ns(hold_ns);
    __asm__ volatile("" ::: "memory"); /* so that the call is not a tail call */
}

__attribute__((noinline)) void hold_outer(struct kind *kind, uint64_t hold_ns)
{
    hold_inner(kind, hold_ns);
    __asm__ volatile("" ::: "memory");
}

static void *hold(void *argument)
{
    static const uint64_t holds_ns[] = {200000, 1 * MS, 5 * MS, 20 * MS, 50 * MS};
    struct kind *kind = argument;
    char name[32];
    snprintf(name, sizeof name, "hold-%s", kind->name);
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&begun);
    for (unsigned turn = 0;; turn++) {
        take(kind);
        hold_outer(kind, holds_ns[turn % (sizeof holds_ns / sizeof *holds_ns)]);
        let_go(kind);
        /* A holder that computes leaves time for the others if CPUs are few. */
        sleep_ns(kind->computes ? 30 * MS : 2 * MS);
    }
    return NULL;
}

static void *wait_for(void *argument)
{
    struct kind *kind = argument;
    char name[32];
    snprintf(name, sizeof name, "wait-%s", kind->name);
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&begun);
    for (;;) {
        uint64_t before_ns = now_ns();
        take(kind);
        atomic_fetch_add(&kind->waited_ns, now_ns() - before_ns);
        let_go(kind);
        sleep_ns(300000);
    }
    return NULL;
}

static void *wait_for_ever(void *argument)
{
    bool is_condition = argument;
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&one_lock);
    while (is_condition)
        pthread_cond_wait(&one_condition, &one_lock);
    return NULL;
}

static void start(void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    errno = pthread_create(&thread, &attributes, body, argument);
    require(!errno, "thread");
}

static void prepare(struct kind *kind)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind->type);
    pthread_mutexattr_setprotocol(&attributes, kind->protocol);
    pthread_mutexattr_setrobust(&attributes, kind->robust);
    pthread_mutexattr_setpshared(&attributes, kind->shared);
    errno = pthread_mutex_init(&kind->mutex, &attributes);
    require(!errno, "mutex");
    pthread_rwlock_init(&kind->rwlock, NULL);
}

static void answer(void)
{
    for (int i = 0; i < KIND_COUNT; i++)
        printf("%s\"%s\": %" PRIu64, i ? ", " : "{", kinds[i].name,
               atomic_load(&kinds[i].waited_ns));
    putchar('}');
}

int main(int argc, char **argv)
{
    unsigned waiting = number_of(argc, argv, 1, 0);
    bool is_condition = argc > 2 && strcmp(argv[2], "condition") == 0;
    pthread_barrier_init(&begun, NULL, waiting ? waiting + 1 : 3 * KIND_COUNT + 1);
    if (waiting && !is_condition)
        pthread_mutex_lock(&one_lock);
    for (unsigned i = 0; i < waiting; i++)
        start(wait_for_ever, is_condition ? &one_condition : NULL);
    for (int i = 0; i < KIND_COUNT && !waiting; i++) {
        prepare(&kinds[i]);
        start(hold, &kinds[i]);
        start(wait_for, &kinds[i]);
        start(wait_for, &kinds[i]);
    }
    pthread_barrier_wait(&begun);
    serve(answer);
    return 0;
}
