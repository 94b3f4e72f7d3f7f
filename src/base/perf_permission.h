/* What lets a process have perf events of the kernel and of other users' processes. */
#ifndef FGPROF_BASE_PERF_PERMISSION_H
#define FGPROF_BASE_PERF_PERMISSION_H

/* The least capability for it on this kernel, in words. */
const char *perf_permission_needed(void);

/* The same on a kernel of this version with kernel.perf_event_paranoid at `paranoid`. */
const char *perf_permission_needed_on(unsigned major, unsigned minor, long paranoid);

#endif
