/* Calls the C library through the PLT, and the vdso: a debugger stops it on the way. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile int may_go;

static __attribute__((noinline)) long call_both(void)
{
    struct timespec now;
    long parent = getppid();
    clock_gettime(CLOCK_MONOTONIC, &now);
    return parent + now.tv_nsec;
}

int main(void)
{
    volatile long sum = 0;
    alarm(900);
    puts("ready");
    fflush(stdout);
    while (!may_go)
        usleep(1000);
    for (;;)
        sum += call_both();
}
