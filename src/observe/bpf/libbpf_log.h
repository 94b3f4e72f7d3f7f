/* Where libbpf's messages go. It has one function for them in the whole process, and writes them to
 * stderr without one. */
#ifndef FGPROF_OBSERVE_BPF_LIBBPF_LOG_H
#define FGPROF_OBSERVE_BPF_LIBBPF_LOG_H

#include <stdbool.h>

struct libbpf_log {
    void (*write)(void *argument, const char *text); /* called with pieces; NULL: all are dropped */
    void *argument;
    bool is_full; /* debug messages too */
};

/* Between these calls all messages go to this log. Another thread that calls libbpf_log_begin waits
 * until then. */
void libbpf_log_begin(const struct libbpf_log *log);
void libbpf_log_end(void);

#endif
