#include "observe/bpf/libbpf_log.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct libbpf_log current;
static libbpf_print_fn_t before;

static int print(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char *text = NULL;
    if (!current.write || (level == LIBBPF_DEBUG && !current.is_full))
        return 0;
    if (vasprintf(&text, format, arguments) < 0)
        return 0;
    current.write(current.argument, text);
    free(text);
    return 0;
}

void libbpf_log_begin(const struct libbpf_log *log)
{
    pthread_mutex_lock(&mutex);
    current = *log;
    before = libbpf_set_print(print);
}

void libbpf_log_end(void)
{
    libbpf_set_print(before);
    current = (struct libbpf_log){0};
    pthread_mutex_unlock(&mutex);
}
