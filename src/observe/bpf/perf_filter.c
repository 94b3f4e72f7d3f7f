#include "observe/bpf/perf_filter.h"

#include "observe/bpf/libbpf_setup.h"
#include "observe/bpf/process_set.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "observe/bpf/perf_filter.skel.h"

/* The inode of the first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu
/* The id that the programs see for all processes in other PID namespaces. */
#define OTHERS_ID 0
#define PASSED_CPUS_MAX 256

static unsigned page_bits(void)
{
    return (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
}

/* ---- Opening ---- */

static int set_namespace(struct perf_filter_bpf *programs)
{
    struct stat namespace;
    if (stat("/proc/self/ns/pid", &namespace))
        return -errno;
    if (namespace.st_ino == FIRST_PID_NAMESPACE)
        return 0;
    /* In the kernel's encoding (MKDEV in its include/linux/kdev_t.h). */
    programs->rodata->namespace_device =
        (uint64_t)major(namespace.st_dev) << 20 | minor(namespace.st_dev);
    programs->rodata->namespace_inode = namespace.st_ino;
    return 0;
}

static unsigned count_cpus(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    return cpus < 1 ? 1 : cpus < PASSED_CPUS_MAX ? (unsigned)cpus : PASSED_CPUS_MAX;
}

/* Loads the program for pages, or the one for processes. */
static int load(struct perf_filter_bpf *programs, bool is_for_pages)
{
    int err = bpf_program__set_autoload(programs->progs.filter_by_page, is_for_pages);
    if (!err)
        err = bpf_program__set_autoload(programs->progs.filter_by_process, !is_for_pages);
    if (!err)
        err = bpf_map__set_autocreate(programs->maps.passed, is_for_pages);
    if (!err)
        err = bpf_map__set_max_entries(programs->maps.passed, programs->rodata->passed_cpus);
    if (!err)
        err = perf_filter_bpf__load(programs);
    /* If libbpf's probe for global data fails, it reports no error, but there is none. */
    return err ? err : programs->bss ? 0 : -ENOTSUP;
}

static size_t passed_bytes(const struct filter *filter)
{
    return filter->passed_cpus * sizeof *filter->passed;
}

static int map_passed(struct filter *filter)
{
    void *memory = mmap(NULL, passed_bytes(filter), PROT_READ, MAP_SHARED,
                        bpf_map__fd(filter->programs->maps.passed), 0);
    if (memory == MAP_FAILED)
        return -errno;
    filter->passed = memory;
    filter->choices = filter->programs->bss->choices;
    for (size_t i = 0; i < PAGE_GROUPS; i++)
        filter->choices[i].limit = UINT64_MAX;
    return 0;
}

static int open_programs(struct filter *filter, bool is_for_pages, uint64_t seed)
{
    filter->programs = perf_filter_bpf__open();
    if (!filter->programs)
        return -errno;
    filter->passed_cpus = count_cpus();
    filter->programs->rodata->page_seed = seed;
    filter->programs->rodata->page_bits = page_bits();
    filter->programs->rodata->passed_cpus = filter->passed_cpus;
    int err = set_namespace(filter->programs);
    if (!err)
        err = load(filter->programs, is_for_pages);
    return err || !is_for_pages ? err : map_passed(filter);
}

static int open_filter(struct filter *ret_filter, bool is_for_pages, uint64_t seed)
{
    static const struct libbpf_log no_log = {0};
    struct filter filter = {.is_exact = true};
    libbpf_setup_begin(&no_log);
    int err = open_programs(&filter, is_for_pages, seed);
    libbpf_setup_end();
    if (err)
        filter_close(&filter);
    *ret_filter = filter;
    return err;
}

int filter_open(struct filter *ret_filter)
{
    return open_filter(ret_filter, false, 0);
}

int filter_open_for_pages(uint64_t seed, struct filter *ret_filter)
{
    return open_filter(ret_filter, true, seed);
}

void filter_close(struct filter *filter)
{
    if (filter->passed)
        munmap((void *)filter->passed, passed_bytes(filter));
    perf_filter_bpf__destroy(filter->programs);
    *filter = (struct filter){0};
}

int filter_apply(const struct filter *filter, int event_fd)
{
    const struct perf_filter_bpf *programs = filter->programs;
    int fd = bpf_program__fd(filter->choices ? programs->progs.filter_by_page
                                             : programs->progs.filter_by_process);
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, fd) ? -errno : 0;
}

int filter_set_next(const struct filter *filter, int program_fd)
{
    uint32_t zero = 0, fd = (uint32_t)program_fd;
    int map_fd = bpf_map__fd(filter->programs->maps.next);
    return program_fd < 0 ? bpf_map_delete_elem(map_fd, &zero)
                          : bpf_map_update_elem(map_fd, &zero, &fd, BPF_ANY);
}

/* ---- Processes ---- */

/* The process's id as the programs see it. */
static pid_t seen_id(const struct filter *filter, pid_t process_id)
{
    struct stat namespace;
    char path[32];
    uint64_t own_inode = filter->programs->rodata->namespace_inode;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", process_id);
    bool is_other = own_inode && stat(path, &namespace) == 0 && namespace.st_ino != own_inode;
    return is_other ? OTHERS_ID : process_id;
}

int filter_add(struct filter *filter, pid_t process_id)
{
    pid_t id = seen_id(filter, process_id);
    if (!process_set_add(&filter->programs->bss->followed, id))
        return -EINVAL;
    filter->is_exact = filter->is_exact && id != OTHERS_ID;
    return 0;
}

void filter_remove(const struct filter *filter, pid_t process_id)
{
    process_set_remove(&filter->programs->bss->followed, process_id);
}

/* ---- Pages ---- */

enum page_group filter_page_group(uint64_t address)
{
    return page_group(address, page_bits());
}

uint64_t filter_page_rank(uint64_t seed, uint64_t address)
{
    return page_rank(seed, address, page_bits());
}

static const volatile struct passed_faults *passed_on(const struct filter *filter, int cpu)
{
    return &filter->passed[(unsigned)cpu % filter->passed_cpus];
}

uint64_t filter_passed_count(const struct filter *filter, int cpu)
{
    return filter->passed ? passed_on(filter, cpu)->count : 0;
}

bool filter_find_fault(const struct filter *filter, int cpu, uint64_t address, uint64_t *number,
                       struct passed_fault *ret_fault)
{
    if (!filter->passed)
        return false;
    const volatile struct passed_faults *passed = passed_on(filter, cpu);
    uint64_t count = passed->count, oldest = count > PASSED_MAX ? count - PASSED_MAX : 0;
    for (uint64_t i = *number > oldest ? *number : oldest; i < count; i++) {
        if (passed->items[i % PASSED_MAX].address != address)
            continue;
        *ret_fault = passed->items[i % PASSED_MAX];
        *number = i;
        return true;
    }
    return false;
}
