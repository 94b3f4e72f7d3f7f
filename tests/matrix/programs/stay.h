/* Threads that each reach a place and stay there, so that a debugger and a sampler see the same
 * stack. Each place has two threads: one blocks, and one runs in a loop of one instruction. */
#ifndef STAY_H
#define STAY_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Assembly calls this function: a program with assembly defines this as nothing. */
#ifndef STAY_LINKAGE
#define STAY_LINKAGE static
#endif

#ifdef __cplusplus
#define STAY_THREAD_LOCAL thread_local
#else
#define STAY_THREAD_LOCAL _Thread_local
#endif

/* Only a limit, in case nobody ends the program. */
#define STAY_LIMIT_S 900

struct place {
    const char *name;
    void (*enter)(void);
    int spins;
};

static STAY_THREAD_LOCAL int stay_spins;
static int stay_arrived;
static volatile int stay_on = 1; /* the compiler must assume that calls return */

/* Calls followed by this are not tail calls. */
#define STAY_GO_ON() __asm__ volatile("" ::: "memory")

STAY_LINKAGE __attribute__((noinline)) void stay(void)
{
    __atomic_fetch_add(&stay_arrived, 1, __ATOMIC_SEQ_CST);
    /* gdb hides an inlined function before its first instruction: so this is the second one. */
    if (stay_spins)
        __asm__ volatile("nop\n1: jmp 1b" ::: "memory");
    while (stay_on)
        pause();
}

static void *stay_thread(void *argument)
{
    const struct place *place = (const struct place *)argument;
    char name[16];
    stay_spins = place->spins;
    snprintf(name, sizeof name, "%s%s", place->name, place->spins ? "+" : "");
    prctl(PR_SET_NAME, name, 0, 0, 0);
    place->enter();
    return NULL;
}

static int stay_start(const struct place *places, int count)
{
    static struct place copies[64];
    alarm(STAY_LIMIT_S);
    for (int i = 0; i < 2 * count; i++) {
        pthread_t thread;
        copies[i] = places[i / 2];
        copies[i].spins = i % 2;
        if (pthread_create(&thread, NULL, stay_thread, &copies[i]))
            return 1;
    }
    while (__atomic_load_n(&stay_arrived, __ATOMIC_SEQ_CST) < 2 * count)
        usleep(1000);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

#endif
