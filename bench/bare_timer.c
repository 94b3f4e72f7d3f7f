/* bench-bare-timer: a clock that samples at 99 Hz on each CPU, as those of profilers do, but
 * nothing that receives the samples: no ring, no stack, no filter. It is the lower bound for a
 * sampler that lets the kernel sample, on this machine at this time. Runs until it is killed. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS 10101010

int main(void)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = PERIOD_NS,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .exclude_idle = 1,
    };
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        if (syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC) < 0) {
            perror("perf_event_open");
            return 1;
        }
    }
    pause();
    return 0;
}
