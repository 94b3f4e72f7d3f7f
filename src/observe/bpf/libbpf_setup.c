#include "observe/bpf/libbpf_setup.h"

#include "base/memlock.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct libbpf_log current;
static libbpf_print_fn_t before;
static struct rlimit limit; /* of locked memory */
static bool keeps_limit;

static int print(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char *text = NULL;
    if (!current.write || level == LIBBPF_DEBUG)
        return 0;
    if (vasprintf(&text, format, arguments) < 0)
        return 0;
    current.write(current.argument, text);
    free(text);
    return 0;
}

void libbpf_setup_begin(const struct libbpf_log *log)
{
    pthread_mutex_lock(&mutex);
    current = *log;
    before = libbpf_set_print(print);
    keeps_limit = !memlock_raise() && !getrlimit(RLIMIT_MEMLOCK, &limit);
}

void libbpf_setup_end(void)
{
    libbpf_set_print(before);
    if (keeps_limit)
        setrlimit(RLIMIT_MEMLOCK, &limit);
    current = (struct libbpf_log){0};
    pthread_mutex_unlock(&mutex);
}
