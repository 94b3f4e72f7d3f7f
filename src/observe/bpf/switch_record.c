#include "observe/bpf/switch_record.h"

#include "base/array.h"
#include "base/clock.h"
#include "observe/bpf/libbpf_setup.h"
#include "observe/bpf/process_set.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "observe/bpf/switch_record.skel.h"

#define NO_SLOT UINT32_MAX
#define READS_MAX 1000
/* The programs run for microseconds: after this time, none that saw the process as followed is
 * still running. */
#define RELEASE_AFTER_NS 1000000000u
#define NEVER_NS (UINT64_MAX / 2)

/* A process that is no longer followed. */
struct leaving {
    pid_t process_id;
    uint64_t since_ns;
};

/* Finds the slot of a thread: chains of slots with the same tid % slots_max. */
struct slot_index {
    uint32_t *first; /* by tid % slots_max: a slot or NO_SLOT */
    uint32_t *next;  /* by slot */
    uint32_t *tids;  /* by slot; 0: it is in no chain */
    uint64_t births; /* how many of the record's births were seen */
};

struct switch_record {
    struct switch_record_bpf *programs;
    struct switch_slot *slots;
    uint32_t slots_max;
    struct ring_buffer *ring;
    struct clock_offsets offsets;
    struct slot_index index;
    struct leaving *leaving;
    size_t leaving_count, leaving_capacity;
    /* Set while messages are taken out: */
    switch_take_fn *take;
    void *take_argument;
};

/* ---- Opening ---- */

/* Abilities that differ between kernels with BTF. */
struct kernel_abilities {
    bool has_registers;    /* bpf_task_pt_regs: 5.15 */
    bool has_prev_state;   /* sched_switch has the state as its fourth argument: 5.18 */
    bool has_safe_storage; /* task storage is allocated by BPF's own allocator (6.4), or by
                              kmalloc_nolock */
};

static bool has_member(const struct btf *btf, const char *type_name, const char *name)
{
    int id = btf__find_by_name_kind(btf, type_name, BTF_KIND_STRUCT);
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
    for (unsigned i = 0; type && i < btf_vlen(type); i++) {
        const char *member = btf__name_by_offset(btf, btf_members(type)[i].name_off);
        if (member && strcmp(member, name) == 0)
            return true;
    }
    return false;
}

/* The arguments of the tracepoint: those of its BTF function type, except the first. */
static unsigned count_switch_arguments(const struct btf *btf)
{
    int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
    const struct btf_type *pointer = type ? btf__type_by_id(btf, type->type) : NULL;
    const struct btf_type *function = pointer ? btf__type_by_id(btf, pointer->type) : NULL;
    return function && btf_is_func_proto(function) && btf_vlen(function) ? btf_vlen(function) - 1u
                                                                         : 0;
}

static int read_abilities(struct kernel_abilities *ret_abilities)
{
    struct btf *btf = btf__load_vmlinux_btf();
    if (!btf)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -errno : -ENOTSUP;
    *ret_abilities = (struct kernel_abilities){
        .has_registers = btf__find_by_name_kind(btf, "bpf_task_pt_regs", BTF_KIND_FUNC) > 0,
        .has_prev_state = count_switch_arguments(btf) >= 4,
        .has_safe_storage = has_member(btf, "bpf_local_storage_map", "selem_ma") ||
                            has_member(btf, "bpf_local_storage_map", "use_kmalloc_nolock"),
    };
    btf__free(btf);
    return ret_abilities->has_registers ? 0 : -ENOTSUP;
}

static int configure(struct switch_record *record, const struct switch_options *options,
                     const struct kernel_abilities *abilities)
{
    struct switch_record_bpf *programs = record->programs;
    bool allocates_at_switch = abilities->has_safe_storage && !options->allocates_when_woken;
    uint32_t ring_bytes = options->ring_bytes ? options->ring_bytes : SWITCH_RING_BYTES_DEFAULT;
    programs->rodata->slots_max = record->slots_max;
    programs->rodata->stack_bytes =
        options->stack_bytes ? options->stack_bytes : SWITCH_STACK_BYTES_DEFAULT;
    programs->rodata->stack_window_ns = options->stack_window_ns;
    programs->rodata->stack_pause_ns = options->stack_pause_ns;
    programs->rodata->has_prev_state = abilities->has_prev_state;
    programs->rodata->allocates_at_switch = allocates_at_switch;
    programs->rodata->tells_wakes = options->tells_wakes;
    programs->rodata->keeps_chains = options->keeps_chains;
    programs->bss->ticks.start_ns = NEVER_NS;
    int err = bpf_map__set_max_entries(programs->maps.slots, record->slots_max);
    if (!err)
        err = bpf_map__set_max_entries(programs->maps.free_slots, record->slots_max);
    if (!err)
        err = bpf_map__set_max_entries(programs->maps.messages, ring_bytes);
    if (!err)
        err = bpf_program__set_autoload(programs->progs.on_waking,
                                        options->tells_wakes || !allocates_at_switch);
    return err ? err : bpf_program__set_autoload(programs->progs.on_fork, !allocates_at_switch);
}

/* The find_* programs are run directly, not attached. */
static int attach(struct switch_record_bpf *programs)
{
    LIBBPF_OPTS(bpf_test_run_opts, once);
    int err = bpf_prog_test_run_opts(bpf_program__fd(programs->progs.find_namespace), &once);
    if (err || once.retval)
        return err ? err : -ENOTSUP;
    bpf_program__set_autoattach(programs->progs.find_namespace, false);
    bpf_program__set_autoattach(programs->progs.find_current, false);
    return switch_record_bpf__attach(programs);
}

static int load(struct switch_record *record, const struct switch_options *options)
{
    struct kernel_abilities abilities;
    int err = read_abilities(&abilities);
    if (err)
        return err;
    record->programs = switch_record_bpf__open();
    if (!record->programs)
        return -errno;
    err = configure(record, options, &abilities);
    if (!err)
        err = switch_record_bpf__load(record->programs);
    /* If libbpf's probe for global data fails, it reports no error, but there is none. */
    if (!err && (!record->programs->bss || !record->programs->rodata))
        err = -ENOTSUP;
    return err ? err : attach(record->programs);
}

static int take_message(void *argument, void *data, size_t bytes)
{
    struct switch_record *record = argument;
    struct past_departure past;
    bool is_whole = past_departure_read(data, bytes, &record->offsets, &past);
    return is_whole ? record->take(record->take_argument, &past) : 0;
}

static int map_memory(struct switch_record *record)
{
    struct switch_record_bpf *programs = record->programs;
    size_t bytes = (size_t)record->slots_max * sizeof *record->slots;
    void *slots =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(programs->maps.slots), 0);
    if (slots == MAP_FAILED)
        return -errno;
    record->slots = slots;
    record->ring =
        ring_buffer__new(bpf_map__fd(programs->maps.messages), take_message, record, NULL);
    return record->ring ? 0 : -errno;
}

static int make_index(struct slot_index *index, uint32_t slots_max)
{
    index->first = malloc(slots_max * sizeof *index->first);
    index->next = malloc(slots_max * sizeof *index->next);
    index->tids = calloc(slots_max, sizeof *index->tids);
    if (!index->first || !index->next || !index->tids)
        return -ENOMEM;
    for (uint32_t i = 0; i < slots_max; i++)
        index->first[i] = NO_SLOT;
    return 0;
}

static bool are_valid(const struct switch_options *options)
{
    return options->threads_max <= SWITCH_SLOTS_MAX &&
           options->stack_bytes <= SWITCH_STACK_BYTES_MAX &&
           (options->ring_bytes & (options->ring_bytes - 1)) == 0 &&
           options->ring_bytes % (uint32_t)sysconf(_SC_PAGESIZE) == 0;
}

int switch_record_open(const struct switch_options *options, struct switch_record **ret_record)
{
    if (!are_valid(options))
        return -EINVAL;
    struct switch_record *record = calloc(1, sizeof *record);
    if (!record)
        return -ENOMEM;
    record->slots_max = options->threads_max ? options->threads_max : SWITCH_THREADS_DEFAULT;
    record->offsets = procfs_clock_offsets();
    int err = make_index(&record->index, record->slots_max);
    if (!err) {
        const struct libbpf_log log = {options->log, options->log_argument};
        libbpf_setup_begin(&log);
        err = load(record, options);
        if (!err)
            err = map_memory(record);
        libbpf_setup_end();
    }
    if (err) {
        switch_record_free(record);
        return err;
    }
    *ret_record = record;
    return 0;
}

void switch_record_free(struct switch_record *record)
{
    if (!record)
        return;
    ring_buffer__free(record->ring);
    if (record->slots)
        munmap(record->slots, (size_t)record->slots_max * sizeof *record->slots);
    switch_record_bpf__destroy(record->programs);
    free(record->index.first);
    free(record->index.next);
    free(record->index.tids);
    free(record->leaving);
    free(record);
}

/* ---- Processes ---- */

/* Takes back the slots of a process. A thread that exits at the same time gives back its slot
 * itself. */
static void release_slots(struct switch_record *record, pid_t process_id)
{
    uint32_t used = __atomic_load_n(&record->programs->bss->slots_used, __ATOMIC_ACQUIRE);
    int free_slots = bpf_map__fd(record->programs->maps.free_slots);
    for (uint32_t i = 0; i < used && i < record->slots_max; i++) {
        struct switch_slot *slot = &record->slots[i];
        uint32_t generation = __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE);
        if (slot->departure.tid == 0 || slot->departure.process_id != (uint32_t)process_id ||
            !__atomic_compare_exchange_n(&slot->generation, &generation,
                                         switch_generation_after(generation), false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            continue;
        slot->departure.tid = 0;
        bpf_map_update_elem(free_slots, NULL, &i, BPF_ANY);
    }
}

/* Takes back the slots of processes that were unfollowed long enough ago. */
static void release_left(struct switch_record *record)
{
    size_t kept = 0;
    uint64_t now_ns = record->leaving_count ? monotonic_ns() : 0;
    for (size_t i = 0; i < record->leaving_count; i++) {
        struct leaving leaving = record->leaving[i];
        if (now_ns - leaving.since_ns < RELEASE_AFTER_NS)
            record->leaving[kept++] = leaving;
        else
            release_slots(record, leaving.process_id);
    }
    record->leaving_count = kept;
}

int switch_record_follow(struct switch_record *record, pid_t process_id)
{
    if (process_id <= 0)
        return -EINVAL;
    release_left(record);
    for (size_t i = 0; i < record->leaving_count; i++) {
        if (record->leaving[i].process_id == process_id) /* its slots are needed again */
            record->leaving[i--] = record->leaving[--record->leaving_count];
    }
    return process_set_add(&record->programs->bss->followed, process_id) ? 0 : -EINVAL;
}

void switch_record_unfollow(struct switch_record *record, pid_t process_id)
{
    release_left(record);
    process_set_remove(&record->programs->bss->followed, process_id);
    /* If memory is short, slots are only given back when their threads exit. */
    (void)array_append(&record->leaving, &record->leaving_count, &record->leaving_capacity,
                       (struct leaving){process_id, monotonic_ns()});
}

/* ---- Ticks ---- */

void switch_record_set_ticks(struct switch_record *record, const struct ticks *ticks)
{
    struct ticks *known = &record->programs->bss->ticks;
    known->period_ns = ticks->period_ns;
    known->seed = ticks->seed;
    /* There are no ticks before the start. */
    __atomic_store_n(&known->start_ns, ticks->start_ns - record->offsets.monotonic_ns,
                     __ATOMIC_RELEASE);
}

/* ---- Threads ---- */

static uint32_t *chain_of(const struct switch_record *record, uint32_t tid)
{
    return &record->index.first[tid % record->slots_max];
}

static void unlink_slot(struct switch_record *record, uint32_t slot)
{
    struct slot_index *index = &record->index;
    if (index->tids[slot] == 0)
        return;
    uint32_t *at = chain_of(record, index->tids[slot]);
    while (*at != slot)
        at = &index->next[*at];
    *at = index->next[slot];
    index->tids[slot] = 0;
}

static void note_slot(struct switch_record *record, uint32_t slot)
{
    uint32_t tid = __atomic_load_n(&record->slots[slot].departure.tid, __ATOMIC_ACQUIRE);
    unlink_slot(record, slot);
    if (tid == 0)
        return;
    uint32_t *first = chain_of(record, tid);
    record->index.tids[slot] = tid;
    record->index.next[slot] = *first;
    *first = slot;
}

/* Adds the slots that were given to threads since the last time. */
static void read_births(struct switch_record *record)
{
    const struct switch_births *births = &record->programs->bss->births;
    uint64_t *seen = &record->index.births;
    uint64_t count = __atomic_load_n(&births->count, __ATOMIC_ACQUIRE);
    if (count - *seen > SWITCH_BIRTHS / 2) { /* the rest would soon be overwritten */
        uint32_t used = __atomic_load_n(&record->programs->bss->slots_used, __ATOMIC_ACQUIRE);
        for (uint32_t slot = 0; slot < used && slot < record->slots_max; slot++)
            note_slot(record, slot);
        *seen = count;
    }
    for (; *seen < count; ++*seen) {
        uint64_t item = __atomic_load_n(&births->items[*seen % SWITCH_BIRTHS], __ATOMIC_ACQUIRE);
        uint32_t slot = item & (SWITCH_SLOTS_MAX - 1);
        if (item >> 16 < *seen + 1)
            return; /* it is being written */
        if (slot < record->slots_max)
            note_slot(record, slot);
    }
}

static bool is_of(const struct switch_record *record, uint32_t slot, pid_t tid)
{
    return __atomic_load_n(&record->slots[slot].departure.tid, __ATOMIC_ACQUIRE) == (uint32_t)tid;
}

static uint32_t find_slot(struct switch_record *record, pid_t tid)
{
    read_births(record);
    uint32_t slot = *chain_of(record, (uint32_t)tid);
    while (slot != NO_SLOT && !is_of(record, slot, tid))
        slot = record->index.next[slot];
    return slot;
}

int switch_record_read(struct switch_record *record, pid_t tid, struct slot_view *ret_view)
{
    uint32_t number = find_slot(record, tid);
    if (number == NO_SLOT)
        return -ENOENT;
    const struct switch_slot *slot = &record->slots[number];
    struct switch_departure departure;
    for (unsigned i = 0; i < READS_MAX; i++) {
        uint32_t sequence = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);
        uint32_t generation = __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE);
        memcpy(&departure, (const void *)&slot->departure, sizeof departure);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (sequence % 2 || sequence != __atomic_load_n(&slot->sequence, __ATOMIC_RELAXED))
            continue;
        if (departure.tid != (uint32_t)tid || departure.number == 0)
            return -ENOENT;
        ret_view->slot = number;
        ret_view->generation = generation;
        ret_view->sequence = sequence;
        departure_translate(&departure, &record->offsets, &ret_view->departure);
        return 0;
    }
    return -EAGAIN;
}

bool switch_record_is_unmoved(const struct switch_record *record, const struct slot_view *view)
{
    const struct switch_slot *slot = &record->slots[view->slot];
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == view->sequence &&
           __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE) == view->generation;
}

bool switch_record_has_hidden_returns(const struct switch_record *record)
{
    return __atomic_load_n(&record->programs->bss->failures.returns, __ATOMIC_RELAXED) > 0;
}

bool switch_record_read_futex(const struct switch_record *record, const struct slot_view *view,
                              unsigned char ret_futex[SWITCH_FUTEX_BYTES], bool *ret_has_before)
{
    const struct switch_slot *slot = &record->slots[view->slot];
    uint32_t bytes = slot->futex_bytes;
    memcpy(ret_futex, (const void *)slot->futex, SWITCH_FUTEX_BYTES);
    *ret_has_before = bytes == SWITCH_FUTEX_BYTES;
    return bytes && switch_record_is_unmoved(record, view);
}

void switch_record_acknowledge(struct switch_record *record, const struct slot_view *view,
                               uint64_t tick)
{
    struct switch_slot *slot = &record->slots[view->slot];
    if (!switch_record_is_unmoved(record, view))
        return;
    __atomic_store_n(&slot->looked_departure, (uint32_t)view->departure.number, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->looked, tick + 1, __ATOMIC_RELEASE);
}

/* Only writes a changed value, because the BPF programs read it at each switch. */
static void want(uint32_t *wanted, uint32_t value)
{
    if (__atomic_load_n(wanted, __ATOMIC_RELAXED) != value)
        __atomic_store_n(wanted, value, __ATOMIC_RELAXED);
}

void switch_record_want_stack(const struct switch_record *record, uint32_t slot,
                              uint32_t generation, size_t bytes, bool wants_other)
{
    struct switch_slot *wanted = &record->slots[slot];
    if (__atomic_load_n(&wanted->generation, __ATOMIC_ACQUIRE) != generation)
        return;
    want(&wanted->wanted_bytes,
         bytes < SWITCH_STACK_BYTES_MAX ? (uint32_t)bytes : SWITCH_STACK_BYTES_MAX);
    want(&wanted->wants_other, wants_other);
}

void switch_record_want_python(const struct switch_record *record, uint32_t slot,
                               uint32_t generation, const struct python_thread *thread)
{
    struct switch_slot *wanted = &record->slots[slot];
    const struct python_layout *layout = thread->layout;
    struct switch_python *python = &wanted->python;
    uint64_t state = layout ? thread->state : 0;
    if (__atomic_load_n(&wanted->generation, __ATOMIC_ACQUIRE) != generation ||
        (python->state == state && (!state || python->native_id == thread->id)))
        return;
    __atomic_store_n(&python->state, 0, __ATOMIC_RELEASE);
    if (!state)
        return;
    python->native_id = thread->id;
    python->thread_native_id = layout->thread_native_id;
    python->thread_frame = layout->thread_frame;
    python->noted_frame = layout->noted_frame;
    python->frame_code = layout->frame_code;
    python->frame_previous = layout->frame_previous;
    python->frame_instruction = layout->frame_instruction;
    python->frame_owner = layout->frame_owner;
    python->frame_is_entry = layout->frame_is_entry;
    __atomic_store_n(&python->state, state, __ATOMIC_RELEASE);
}

bool switch_record_has_python(struct switch_record *record, pid_t tid)
{
    uint32_t slot = find_slot(record, tid);
    return slot != NO_SLOT && __atomic_load_n(&record->slots[slot].python.state, __ATOMIC_RELAXED);
}

int switch_record_sample_program(const struct switch_record *record)
{
    return bpf_program__fd(record->programs->progs.on_sample);
}

_Static_assert(SWITCH_NO_FIELD == PYTHON_NOWHERE &&
                   SWITCH_FRAMES_MAX * sizeof(struct switch_frame) <= SWITCH_OTHER_BYTES,
               "what the program on switches takes over");

/* ---- CPUs ---- */

void switch_record_watch_cpus(struct switch_record *record, bool is_wanted)
{
    uint64_t since_ns = is_wanted ? monotonic_ns() - record->offsets.monotonic_ns : 0;
    __atomic_store_n(&record->programs->bss->watched_since_ns, since_ns, __ATOMIC_RELEASE);
}

/* Reads the notes about a CPU. Returns false if it switches so often that this fails. */
static bool read_cpu(const struct switch_cpu *cpu, struct switch_cpu *ret_cpu)
{
    for (unsigned i = 0; i < READS_MAX; i++) {
        uint32_t sequence = __atomic_load_n(&cpu->sequence, __ATOMIC_ACQUIRE);
        memcpy(ret_cpu, (const void *)cpu, sizeof *ret_cpu);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (sequence % 2 == 0 && sequence == __atomic_load_n(&cpu->sequence, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static const struct switch_stay *find_stay(const struct switch_cpu *cpu, uint64_t at_ns)
{
    for (unsigned i = 0; i < SWITCH_STAYS; i++) {
        if (cpu->stays[i].since_ns <= at_ns && at_ns < cpu->stays[i].until_ns)
            return &cpu->stays[i];
    }
    return NULL;
}

static bool find_current(const struct switch_record *record, unsigned cpu)
{
    LIBBPF_OPTS(bpf_test_run_opts, once);
    record->programs->bss->wanted_cpu = cpu;
    return !bpf_prog_test_run_opts(bpf_program__fd(record->programs->progs.find_current), &once) &&
           !once.retval;
}

/* The CPU may switch at any time; the thread that left it is then among the noted ones. */
bool switch_record_find_cpu_user(struct switch_record *record, unsigned cpu, uint64_t tick_ns,
                                 struct cpu_user *ret_user)
{
    struct switch_record_bpf__bss *shared = record->programs->bss;
    uint64_t at_ns = tick_ns - record->offsets.monotonic_ns, watched_ns = shared->watched_since_ns;
    struct switch_cpu seen;
    if (cpu >= SWITCH_CPUS || !watched_ns || at_ns < watched_ns)
        return false;
    const struct switch_cpu *own = &shared->cpus[cpu];
    for (unsigned i = 0; i < SWITCH_STAYS && read_cpu(own, &seen); i++) {
        const struct switch_stay *stay = find_stay(&seen, at_ns);
        bool is_current = !stay && seen.since_ns >= watched_ns && seen.since_ns <= at_ns &&
                          find_current(record, cpu) &&
                          seen.since_ns == __atomic_load_n(&own->since_ns, __ATOMIC_ACQUIRE);
        if (stay || is_current) {
            cpu_user_read(stay ? stay : &shared->current_stay, ret_user);
            return true;
        }
        if (seen.since_ns > at_ns)
            return false;
    }
    return false;
}

/* ---- Messages ---- */

int switch_record_drain(struct switch_record *record, switch_take_fn *take, void *argument)
{
    release_left(record);
    record->take = take;
    record->take_argument = argument;
    return ring_buffer__consume(record->ring);
}

struct switch_counters switch_record_counters(const struct switch_record *record)
{
    const struct switch_record_bpf__bss *shared = record->programs->bss;
    bool allocates_at_switch = record->programs->rodata->allocates_at_switch;
    return (struct switch_counters){
        .without_slot = __atomic_load_n(&shared->failures.slots, __ATOMIC_RELAXED),
        .without_memory =
            allocates_at_switch ? __atomic_load_n(&shared->failures.storage, __ATOMIC_RELAXED) : 0,
        .lost_messages = __atomic_load_n(&shared->failures.ring, __ATOMIC_RELAXED),
        .lost_wakes = __atomic_load_n(&shared->failures.wakes, __ATOMIC_RELAXED),
        .hidden_returns = __atomic_load_n(&shared->failures.returns, __ATOMIC_RELAXED),
        .slots_used = __atomic_load_n(&shared->slots_used, __ATOMIC_RELAXED),
    };
}
