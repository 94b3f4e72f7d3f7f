/* Settings of libbpf that are shared by the whole process: where its messages go, by default to
 * stderr, and the limit of locked memory. */
#ifndef FGPROF_OBSERVE_BPF_LIBBPF_SETUP_H
#define FGPROF_OBSERVE_BPF_LIBBPF_SETUP_H

struct libbpf_log {
    void (*write)(void *argument,
                  const char *text); /* called with pieces of text; NULL: all are dropped */
    void *argument;
};

/* Between these calls all messages go to this log. Another thread that calls libbpf_setup_begin
 * waits until libbpf_setup_end. The limit of locked memory is raised if the kernel needs that
 * (base/memlock.h). libbpf also lifts it if bpf(2) is refused; that is undone. */
void libbpf_setup_begin(const struct libbpf_log *log);
void libbpf_setup_end(void);

#endif
