/* The kernel's data about processes. */
#include "fake.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdio.h>

#define FIRST_PC 0x401000u
#define FIRST_SP 0x7ffff000u
/* Stands for the descriptor of a process's folder in /proc; never AT_FDCWD. */
#define FAKE_PROC_FD(PID) (-1000 - (PID))

struct fake_process *fake_process(pid_t pid)
{
    assert_true(fake->process_count < FAKE_PROCESSES_MAX);
    struct fake_process *process = &fake->processes[fake->process_count++];
    process->pid = pid;
    process->syscall_file = "/dev/zero";
    return process;
}

struct fake_thread *fake_thread(struct fake_process *process, pid_t tid, enum fake_doing doing)
{
    assert_true(fake->thread_count < FAKE_THREADS_MAX);
    struct fake_thread *thread = &fake->threads[fake->thread_count++];
    *thread = (struct fake_thread){
        .tid = tid,
        .process = process,
        .doing = doing,
        .activity = {.running_ns = 1000000, .switches = 10},
        .pc = FIRST_PC + (uint64_t)tid,
        .sp = FIRST_SP,
        .syscall_number = 202,
        .pause_ns = 1000,
    };
    snprintf(thread->name, sizeof thread->name, "thread-%d", (int)tid);
    process->threads[process->thread_count++] = thread;
    return thread;
}

void fake_thread_leaves(struct fake_thread *thread)
{
    struct fake_process *process = thread->process;
    size_t kept = 0;
    for (size_t i = 0; i < process->thread_count; i++) {
        if (process->threads[i] != thread)
            process->threads[kept++] = process->threads[i];
    }
    process->thread_count = kept;
    process->cpu_ns += thread->activity.running_ns;
    thread->doing = FAKE_GONE;
}

/* The thread with this id; if there were several, the one that is listed. */
struct fake_thread *fake_find(pid_t tid)
{
    struct fake_thread *found = NULL;
    for (size_t i = 0; i < fake->thread_count; i++) {
        if (fake->threads[i].tid == tid)
            found = &fake->threads[i];
    }
    return found;
}

struct fake_process *fake_find_process(pid_t pid)
{
    for (size_t i = 0; i < fake->process_count; i++) {
        if (fake->processes[i].pid == pid)
            return &fake->processes[i];
    }
    return NULL;
}

static bool is_there(const struct fake_thread *thread)
{
    for (size_t i = 0; thread && i < thread->process->thread_count; i++) {
        if (thread->process->threads[i] == thread)
            return true;
    }
    return false;
}

/* ---- Replaced functions ---- */

int __wrap_process_open(pid_t pid, struct process *ret_process);
void __wrap_process_close(struct process *process);
int __wrap_process_list_threads(struct process *process, struct thread_list *list,
                                size_t max_count);
size_t __wrap_process_count_threads(const struct process *process);
pid_t __wrap_process_live_thread(struct process *process);
int __wrap_process_cpu_ns(const struct process *process, uint64_t *ret_cpu_ns);
bool __wrap_procfs_thread_name(int proc_fd, pid_t tid, char ret_name[THREAD_NAME_BYTES]);
pid_t __wrap_procfs_inner_tid(int proc_fd, pid_t tid);
int __wrap_procfs_thread_stat(int proc_fd, pid_t tid, struct proc_stat *ret_stat);
int __wrap_sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *set);
int __wrap_sched_getcpu(void);
bool __wrap_watch_read_last_run(const struct watch_place *place, struct watch *watch,
                                struct last_run *ret_last_run);
int __wrap_program_open(struct process *process, uint32_t number, uint32_t process_number,
                        struct program **ret_program);
bool __wrap_program_is_current(const struct program *program);
void __wrap_program_keep_maps(const struct program *program);
int __wrap_stack_areas_read(struct stack_areas *areas, int maps_fd);
int __wrap_watch_read_activity(const struct watch_place *place, struct watch *watch,
                               struct activity *ret_activity);
int __wrap_openat(int folder, const char *path, int flags, ...);
size_t __wrap_memory_read(pid_t tid, const struct stack_areas *areas, uint64_t address,
                          void *buffer, size_t bytes);
int __wrap_memory_read_many(pid_t tid, const struct stack_areas *areas, struct memory_range *ranges,
                            size_t count);
int __wrap_descendants_add(struct descendants *descendants, pid_t pid);
int __wrap_descendants_look(struct descendants *descendants, uint64_t now_ns);
void __wrap_descendants_free(struct descendants *descendants);

int __wrap_process_open(pid_t pid, struct process *ret_process)
{
    *ret_process = (struct process){.pid = pid, .proc_fd = FAKE_PROC_FD(pid)};
    return fake_find_process(pid) ? 0 : -ESRCH;
}

void __wrap_process_close(struct process *process)
{
    (void)process;
}

static int compare_tids(const void *a, const void *b)
{
    return *(const pid_t *)a - *(const pid_t *)b;
}

int __wrap_process_list_threads(struct process *process, struct thread_list *list, size_t max_count)
{
    const struct fake_process *own = fake_find_process(process->pid);
    (void)max_count;
    free(list->tids);
    list->tids = malloc((own->thread_count + 1) * sizeof *list->tids);
    if (!list->tids)
        return -ENOMEM;
    list->count = list->capacity = own->thread_count;
    for (size_t i = 0; i < own->thread_count; i++)
        list->tids[i] = own->threads[i]->tid;
    qsort(list->tids, list->count, sizeof *list->tids, compare_tids);
    return 0;
}

size_t __wrap_process_count_threads(const struct process *process)
{
    struct fake_process *own = fake_find_process(process->pid);
    own->counted_ns = fake->now_ns;
    return own->thread_count;
}

pid_t __wrap_process_live_thread(struct process *process)
{
    const struct fake_process *own = fake_find_process(process->pid);
    for (size_t i = 0; i < own->thread_count; i++) {
        if (own->threads[i]->doing != FAKE_GONE)
            return own->threads[i]->tid;
    }
    return 0;
}

int __wrap_process_cpu_ns(const struct process *process, uint64_t *ret_cpu_ns)
{
    const struct fake_process *own = fake_find_process(process->pid);
    *ret_cpu_ns = own->cpu_ns;
    for (size_t i = 0; i < own->thread_count; i++)
        *ret_cpu_ns += own->threads[i]->activity.running_ns;
    return 0;
}

bool __wrap_procfs_thread_name(int proc_fd, pid_t tid, char ret_name[THREAD_NAME_BYTES])
{
    const struct fake_thread *thread = fake_find(tid);
    (void)proc_fd;
    if (!is_there(thread))
        return false;
    thread->process->named_ns = fake->now_ns;
    memcpy(ret_name, thread->name, sizeof thread->name);
    return true;
}

pid_t __wrap_procfs_inner_tid(int proc_fd, pid_t tid)
{
    (void)proc_fd;
    return tid;
}

int __wrap_procfs_thread_stat(int proc_fd, pid_t tid, struct proc_stat *ret_stat)
{
    const struct fake_thread *thread = fake_find(tid);
    (void)proc_fd;
    if (!fake->cpus || !is_there(thread) || thread->doing == FAKE_GONE)
        return -ESRCH;
    bool is_awake = thread->doing == FAKE_RUNS || thread->doing == FAKE_WAITS;
    *ret_stat = (struct proc_stat){
        .state = is_awake ? 'R' : 'S', .cpu = thread->cpu, .policy = thread->policy};
    return 0;
}

int __wrap_sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *set)
{
    (void)tid;
    memset(set, 0, bytes);
    for (int i = 0; i < fake->cpus; i++)
        CPU_SET(i, set);
    return fake->cpus ? 0 : -1;
}

static void set_reset_on_fork(void)
{
    const struct sched_param none = {0};
    if (fake->moves && !(sched_getscheduler(0) & SCHED_RESET_ON_FORK))
        fake->lost_reset_on_fork = true;
    sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
}

int __wrap_sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *set)
{
    (void)tid, (void)bytes;
    if (fake->resets_on_fork)
        set_reset_on_fork();
    fake->is_pinned = CPU_COUNT(set) == 1;
    fake->moves += fake->is_pinned;
    for (int i = 0; i < fake->cpus && fake->is_pinned; i++) {
        if (CPU_ISSET(i, set))
            fake->cpu = i;
    }
    return 0;
}

int __wrap_sched_getcpu(void)
{
    return fake->cpu;
}

bool __wrap_watch_read_last_run(const struct watch_place *place, struct watch *watch,
                                struct last_run *ret_last_run)
{
    const struct fake_thread *thread = fake_find(place->tid);
    (void)watch;
    fake->came_asked += !thread;
    *ret_last_run = (struct last_run){.at_ns = thread ? thread->left_ns : fake->came_ns};
    return ret_last_run->at_ns != 0;
}

/* A program's `tid` shows which of its process's programs it is. */
int __wrap_program_open(struct process *process, uint32_t number, uint32_t process_number,
                        struct program **ret_program)
{
    const struct fake_process *own = fake_find_process(process->pid);
    if (own->is_hidden || !__wrap_process_live_thread(process))
        return -ESRCH;
    struct program *program = calloc(1, sizeof *program);
    if (!program)
        return -ENOMEM;
    *program = (struct program){
        .number = number,
        .process = process_number,
        .process_id = process->pid,
        .tid = (pid_t)own->programs,
        .proc_fd = -1,
        .mem_fd = -1,
        .maps_fd = -1,
        .first_maps_fd = -1,
    };
    atomic_init(&program->references, 1);
    *ret_program = program;
    return 0;
}

bool __wrap_program_is_current(const struct program *program)
{
    const struct fake_process *own = fake_find_process(program->process_id);
    return (pid_t)own->programs == program->tid && !own->is_hidden;
}

void __wrap_program_keep_maps(const struct program *program)
{
    (void)program;
}

int __wrap_stack_areas_read(struct stack_areas *areas, int maps_fd)
{
    (void)maps_fd;
    areas->count = 0;
    return 0;
}

int __wrap_watch_read_activity(const struct watch_place *place, struct watch *watch,
                               struct activity *ret_activity)
{
    struct fake_thread *thread = fake_find(place->tid);
    (void)watch;
    if (!is_there(thread) || thread->doing == FAKE_GONE)
        return -ESRCH;
    thread->reads++;
    *ret_activity = thread->activity;
    return 0;
}

/* No process has any other file. */
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    const struct fake_process *process = fake_find_process(FAKE_PROC_FD(0) - folder);
    if (!process || strcmp(path, "syscall") != 0 || !process->syscall_file) {
        errno = process ? EACCES : ENOENT;
        return -1;
    }
    return open(process->syscall_file, flags);
}

/* Memory has no contents. */
size_t __wrap_memory_read(pid_t tid, const struct stack_areas *areas, uint64_t address,
                          void *buffer, size_t bytes)
{
    (void)tid, (void)areas, (void)address, (void)buffer, (void)bytes;
    return 0;
}

int __wrap_memory_read_many(pid_t tid, const struct stack_areas *areas, struct memory_range *ranges,
                            size_t count)
{
    (void)tid, (void)areas;
    for (size_t i = 0; i < count; i++)
        ranges[i].got = 0;
    return 0;
}

int __wrap_descendants_add(struct descendants *descendants, pid_t pid)
{
    (void)descendants, (void)pid;
    return 0;
}

int __wrap_descendants_look(struct descendants *descendants, uint64_t now_ns)
{
    fake->sought_ns = now_ns;
    descendants->looked_before_ns = descendants->looked_ns;
    descendants->looked_ns = now_ns;
    descendants->found.items = fake->born;
    descendants->found.count = fake->born_count;
    fake->born_count = 0;
    return 0;
}

void __wrap_descendants_free(struct descendants *descendants)
{
    *descendants = (struct descendants){0};
}
