#include "observe/filter.h"

#include "base/random.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PROCESSES_FIRST 4096 /* the map has room for; it grows */
/* The inode of the first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu
#define CPUS_MAX 256 /* a power of two; CPUs beyond share what others have */

/* What the program for pages shares with us. */
struct shared {
    struct page_choice choices[PAGE_GROUPS];
    struct passed_faults passed[]; /* by CPU */
};

static int bpf(int command, union bpf_attr *attr)
{
    long fd = syscall(SYS_bpf, command, attr, sizeof *attr);
    return fd < 0 ? -errno : (int)fd;
}

/* In the first PID namespace process ids are those that the kernel has everywhere. */
static bool is_first_pid_namespace(void)
{
    struct stat namespace;
    return stat("/proc/self/ns/pid", &namespace) == 0 && namespace.st_ino == FIRST_PID_NAMESPACE;
}

static int create_map(uint32_t capacity)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_HASH,
        .key_size = sizeof(uint32_t),
        .value_size = sizeof(uint8_t),
        .max_entries = capacity,
    };
    return bpf(BPF_MAP_CREATE, &attr);
}

/* ---- The program: instructions as in the kernel's
 * Documentation/bpf/standardization/instruction-set.rst ---- */

#define INSTRUCTIONS_MAX 128

struct code {
    struct bpf_insn items[INSTRUCTIONS_MAX];
    uint32_t count;
};

enum { R0, R1, R2, R3, R4, R6 = 6, R7, R8, R9, R10 = 10 };

static void add(struct code *code, struct bpf_insn instruction)
{
    code->items[code->count++] = instruction;
}

/* An instruction of two words. `kind`: what the number is. */
static void add_load(struct code *code, unsigned to, unsigned kind, uint64_t number)
{
    add(code, (struct bpf_insn){.code = BPF_LD | BPF_DW | BPF_IMM,
                                .dst_reg = to & 15,
                                .src_reg = kind & 15,
                                .imm = (int32_t)(uint32_t)number});
    add(code, (struct bpf_insn){.imm = (int32_t)(uint32_t)(number >> 32)});
}

static void add_operation(struct code *code, unsigned operation, unsigned to, int32_t number)
{
    add(code, (struct bpf_insn){.code = (uint8_t)(BPF_ALU64 | operation | BPF_K),
                                .dst_reg = to & 15,
                                .imm = number});
}

static void add_operation_of(struct code *code, unsigned operation, unsigned to, unsigned from)
{
    add(code, (struct bpf_insn){.code = (uint8_t)(BPF_ALU64 | operation | BPF_X),
                                .dst_reg = to & 15,
                                .src_reg = from & 15});
}

static void add_return(struct code *code, int32_t value)
{
    add_operation(code, BPF_MOV, R0, value);
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
}

/* to = *(uint64_t *)(from + offset); */
static void add_read(struct code *code, unsigned to, unsigned from, int32_t offset)
{
    add(code, (struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_DW,
                                .dst_reg = to & 15,
                                .src_reg = from & 15,
                                .off = (int16_t)offset});
}

/* *(uint64_t *)(to + offset) = from; */
static void add_write(struct code *code, unsigned to, int32_t offset, unsigned from)
{
    add(code, (struct bpf_insn){.code = BPF_STX | BPF_MEM | BPF_DW,
                                .dst_reg = to & 15,
                                .src_reg = from & 15,
                                .off = (int16_t)offset});
}

static void add_call(struct code *code, int32_t function)
{
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = function});
}

/* r2 ^= r2 >> bits; */
static void add_fold(struct code *code, int32_t bits)
{
    add_operation_of(code, BPF_MOV, R3, R2);
    add_operation(code, BPF_RSH, R3, bits);
    add_operation_of(code, BPF_XOR, R2, R3);
}

static void add_multiply(struct code *code, uint64_t factor)
{
    add_load(code, R3, 0, factor);
    add_operation_of(code, BPF_MUL, R2, R3);
}

static int32_t page_bits(void)
{
    return __builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
}

/* A page of the lowest page table maps as much as one entry of the table above, and so does a huge
 * page: its entries are of 8 bytes. */
static int32_t huge_bits(void)
{
    return page_bits() + page_bits() - 3;
}

/* `to` = address of what is at `offset` in struct shared. */
static void add_shared(struct code *code, unsigned to, int shared_fd, size_t offset)
{
    add_load(code, to, BPF_PSEUDO_MAP_VALUE, (uint64_t)offset << 32 | (uint32_t)shared_fd);
}

/* r6 = context->addr; r2 = r6 >> page_bits;
 * r7 = choices; if (r2 has no bits below those of a huge page) r7++; */
static void add_group(struct code *code, int shared_fd)
{
    add_read(code, R6, R1, offsetof(struct bpf_perf_event_data, addr));
    add_operation_of(code, BPF_MOV, R2, R6);
    add_operation(code, BPF_RSH, R2, page_bits());
    add_shared(code, R7, shared_fd, offsetof(struct shared, choices));
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JSET | BPF_K,
                                .dst_reg = R2,
                                .imm = (1 << (huge_bits() - page_bits())) - 1,
                                .off = 1});
    add_operation(code, BPF_ADD, R7, sizeof(struct page_choice));
}

/* r2 = filter_page_rank(seed, context->addr): see base/random.h. */
static void add_rank(struct code *code, uint64_t seed)
{
    add_operation(code, BPF_ADD, R2, 1);
    add_multiply(code, RANDOM_STEP);
    add_load(code, R3, 0, seed);
    add_operation_of(code, BPF_ADD, R2, R3);
    add_fold(code, RANDOM_FOLD_1);
    add_multiply(code, RANDOM_FACTOR_1);
    add_fold(code, RANDOM_FOLD_2);
    add_multiply(code, RANDOM_FACTOR_2);
    add_fold(code, RANDOM_FOLD_3);
}

/* r7 = the page's choice; if (rank > r7->limit) return 0; */
static void add_page_check(struct code *code, uint64_t seed, int shared_fd)
{
    add_group(code, shared_fd);
    add_rank(code, seed);
    add_read(code, R3, R7, offsetof(struct page_choice, limit));
    add(code, (struct bpf_insn){
                  .code = BPF_JMP | BPF_JLE | BPF_X, .dst_reg = R2, .src_reg = R3, .off = 2});
    add_return(code, 0);
}

/* `to` = address of what is at `offset` on the program's stack. */
static void add_place(struct code *code, unsigned to, int32_t offset)
{
    add_operation_of(code, BPF_MOV, to, R10);
    add_operation(code, BPF_ADD, to, offset);
}

/* if (!bpf_map_lookup_elem(&map, &process_id)) return 0; with the id at `offset` on the stack. */
static void add_lookup(struct code *code, int map_fd, int32_t offset)
{
    add_place(code, R2, offset);
    add_load(code, R1, BPF_PSEUDO_MAP_FD, (uint32_t)map_fd);
    add_call(code, BPF_FUNC_map_lookup_elem);
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = R0, .off = 2});
    add_return(code, 0);
}

/* Where the ids of the thread are on the stack: tid, then process id. */
#define IDS_OFFSET (-(int32_t)sizeof(struct bpf_pidns_info))
#define PROCESS_ID_OFFSET (IDS_OFFSET + (int32_t)offsetof(struct bpf_pidns_info, tgid))

/* ids = bpf_get_current_pid_tgid(): the process id is in the upper half. */
static void add_process_check(struct code *code, int map_fd)
{
    add_call(code, BPF_FUNC_get_current_pid_tgid);
    add_write(code, R10, IDS_OFFSET, R0);
    add_lookup(code, map_fd, PROCESS_ID_OFFSET);
}

/* The same in another PID namespace than the first, by the ids in that one. A process of any other
 * namespace has the id 0, as the helper then clears what it was to fill. From Linux 5.7 on. */
static void add_process_check_in(struct code *code, int map_fd, const struct stat *namespace)
{
    /* As the kernel keeps it (MKDEV in its include/linux/kdev_t.h). */
    uint64_t device = (uint64_t)major(namespace->st_dev) << 20 | minor(namespace->st_dev);
    add_load(code, R1, 0, device);
    add_load(code, R2, 0, namespace->st_ino);
    add_place(code, R3, IDS_OFFSET);
    add_operation(code, BPF_MOV, R4, sizeof(struct bpf_pidns_info));
    add_call(code, BPF_FUNC_get_ns_current_pid_tgid);
    add_lookup(code, map_fd, PROCESS_ID_OFFSET);
}

/* r7->tokens += r3, at once for all CPUs. */
static void add_tokens(struct code *code)
{
    add(code, (struct bpf_insn){.code = BPF_STX | BPF_XADD | BPF_DW,
                                .dst_reg = R7,
                                .src_reg = R3,
                                .off = offsetof(struct page_choice, tokens)});
}

/* if (--r7->tokens < 0) { r7->limit >>= 1; r7->tokens += r7->more; }
 * Several CPUs may halve it for the same cause. */
static void add_payment(struct code *code)
{
    add_operation(code, BPF_MOV, R3, -1);
    add_tokens(code);
    add_read(code, R3, R7, offsetof(struct page_choice, tokens));
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JSGE | BPF_K, .dst_reg = R3, .off = 5});
    add_read(code, R3, R7, offsetof(struct page_choice, limit));
    add_operation(code, BPF_RSH, R3, 1);
    add_write(code, R7, offsetof(struct page_choice, limit), R3);
    add_read(code, R3, R7, offsetof(struct page_choice, more));
    add_tokens(code);
}

/* r8 = &passed[bpf_get_smp_processor_id() % cpu_count];
 * r9 = &r8->items[r8->count % PASSED_MAX]; *r9 = {r6, ids, bpf_ktime_get_ns(), r7->limit};
 * r8->count++;
 * Only from Linux 5.8 on the clock is for all programs. */
static void add_note(struct code *code, const struct filter *filter)
{
    add_call(code, BPF_FUNC_get_smp_processor_id);
    add_operation(code, BPF_AND, R0, (int32_t)filter->cpu_count - 1);
    add_operation(code, BPF_MUL, R0, sizeof(struct passed_faults));
    add_shared(code, R8, filter->shared_fd, offsetof(struct shared, passed));
    add_operation_of(code, BPF_ADD, R8, R0);
    add_read(code, R3, R8, offsetof(struct passed_faults, count));
    add_operation(code, BPF_AND, R3, PASSED_MAX - 1);
    add_operation(code, BPF_MUL, R3, sizeof(struct passed_fault));
    add_operation_of(code, BPF_MOV, R9, R8);
    add_operation_of(code, BPF_ADD, R9, R3);
    add_operation(code, BPF_ADD, R9, offsetof(struct passed_faults, items));
    add_write(code, R9, offsetof(struct passed_fault, address), R6);
    add_read(code, R3, R10, IDS_OFFSET);
    add_write(code, R9, offsetof(struct passed_fault, tid), R3);
    add_call(code, BPF_FUNC_ktime_get_ns);
    add_write(code, R9, offsetof(struct passed_fault, at_ns), R0);
    add_read(code, R3, R7, offsetof(struct page_choice, limit));
    add_write(code, R9, offsetof(struct passed_fault, limit), R3);
    add_read(code, R3, R8, offsetof(struct passed_faults, count));
    add_operation(code, BPF_ADD, R3, 1);
    add_write(code, R8, offsetof(struct passed_faults, count), R3);
}

static int load_program(const struct code *code)
{
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_PERF_EVENT,
        .insns = (uint64_t)(uintptr_t)code->items,
        .insn_cnt = code->count,
        .license = (uint64_t)(uintptr_t) "MIT", /* no helper asks for the GPL */
    };
    return bpf(BPF_PROG_LOAD, &attr);
}

static const struct filter no_filter = {
    .map_fd = -1, .program_fd = -1, .shared_fd = -1, .capacity = PROCESSES_FIRST};

static int load_for_processes(const struct filter *filter)
{
    struct code code = {0};
    add_process_check(&code, filter->map_fd);
    add_return(&code, 1);
    return load_program(&code);
}

int filter_open(struct filter *ret_filter)
{
    struct filter filter = no_filter;
    *ret_filter = no_filter;
    if (!is_first_pid_namespace())
        return -ENOTSUP;
    filter.map_fd = create_map(filter.capacity);
    if (filter.map_fd < 0)
        return filter.map_fd;
    filter.program_fd = load_for_processes(&filter);
    if (filter.program_fd < 0) {
        int err = filter.program_fd;
        filter_close(&filter);
        return err;
    }
    filter.is_exact = true;
    *ret_filter = filter;
    return 0;
}

static unsigned count_cpus(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    unsigned count = 1;
    while (count < CPUS_MAX && count < (unsigned long)cpus)
        count *= 2;
    return count;
}

static size_t shared_bytes(const struct filter *filter)
{
    return sizeof(struct shared) + filter->cpu_count * sizeof(struct passed_faults);
}

/* A map with one value, which the program finds without a call, and we have in memory. */
static int create_shared(struct filter *filter)
{
    filter->cpu_count = count_cpus();
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY,
        .key_size = sizeof(uint32_t),
        .value_size = (uint32_t)shared_bytes(filter),
        .max_entries = 1,
        .map_flags = BPF_F_MMAPABLE,
    };
    filter->shared_fd = bpf(BPF_MAP_CREATE, &attr);
    if (filter->shared_fd < 0)
        return filter->shared_fd;
    void *memory =
        mmap(NULL, shared_bytes(filter), PROT_READ | PROT_WRITE, MAP_SHARED, filter->shared_fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    struct shared *shared = memory;
    filter->choices = shared->choices;
    filter->passed = shared->passed;
    for (size_t i = 0; i < PAGE_GROUPS; i++)
        filter->choices[i].limit = UINT64_MAX;
    return 0;
}

/* Loads the program, with as much of it as the filter says. */
static int load_for_pages(const struct filter *filter)
{
    struct stat namespace;
    struct code code = {0};
    bool has_map = filter->map_fd >= 0;
    add_page_check(&code, filter->seed, filter->shared_fd);
    if (has_map && is_first_pid_namespace())
        add_process_check(&code, filter->map_fd);
    else if (has_map && stat("/proc/self/ns/pid", &namespace) == 0)
        add_process_check_in(&code, filter->map_fd, &namespace);
    else if (has_map)
        return -errno;
    if (filter->passed)
        add_note(&code, filter);
    add_payment(&code);
    add_return(&code, 1);
    return load_program(&code);
}

static int open_for_pages(struct filter *filter)
{
    int err = create_shared(filter);
    if (err)
        return err;
    filter->map_fd = create_map(filter->capacity);
    if (filter->map_fd < 0)
        return filter->map_fd;
    filter->is_exact = true;
    filter->program_fd = load_for_pages(filter);
    if (filter->program_fd < 0) {
        filter->passed = NULL;
        filter->program_fd = load_for_pages(filter);
    }
    if (filter->program_fd < 0 && !is_first_pid_namespace()) {
        close(filter->map_fd);
        filter->map_fd = -1;
        filter->is_exact = false;
        filter->program_fd = load_for_pages(filter);
    }
    return filter->program_fd < 0 ? filter->program_fd : 0;
}

int filter_open_for_pages(uint64_t seed, struct filter *ret_filter)
{
    struct filter filter = no_filter;
    filter.seed = seed;
    int err = open_for_pages(&filter);
    if (err)
        filter_close(&filter);
    *ret_filter = filter;
    return err;
}

enum page_group filter_page_group(uint64_t address)
{
    uint64_t page = address >> page_bits(), mask = (1u << (huge_bits() - page_bits())) - 1;
    return page & mask ? PAGES_INSIDE : PAGES_OF_BEGINS;
}

uint64_t filter_page_rank(uint64_t seed, uint64_t address)
{
    return random_number(seed, address >> page_bits());
}

bool filter_find_fault(const struct filter *filter, int cpu, uint64_t address, uint64_t *number,
                       struct passed_fault *ret_fault)
{
    if (!filter->passed)
        return false;
    const volatile struct passed_faults *passed =
        &filter->passed[(unsigned)cpu & (filter->cpu_count - 1)];
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

int filter_apply(const struct filter *filter, int event_fd)
{
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, filter->program_fd) ? -errno : 0;
}

static int change(int map_fd, int command, uint32_t process_id)
{
    uint8_t value = 1;
    union bpf_attr attr = {.map_fd = (uint32_t)map_fd};
    attr.key = (uint64_t)(uintptr_t)&process_id;
    attr.value = (uint64_t)(uintptr_t)&value;
    return bpf(command, &attr);
}

static int copy_map(int from_fd, int to_fd)
{
    uint32_t key, next;
    union bpf_attr attr = {.map_fd = (uint32_t)from_fd};
    attr.next_key = (uint64_t)(uintptr_t)&next;
    int err = 0;
    while (!err && bpf(BPF_MAP_GET_NEXT_KEY, &attr) >= 0) {
        err = change(to_fd, BPF_MAP_UPDATE_ELEM, next);
        key = next;
        attr.key = (uint64_t)(uintptr_t)&key;
    }
    return err;
}

static int grow(struct filter *filter)
{
    struct filter larger = *filter;
    larger.capacity *= 2;
    larger.map_fd = create_map(larger.capacity);
    if (larger.map_fd < 0)
        return larger.map_fd;
    int err = copy_map(filter->map_fd, larger.map_fd);
    if (!err) {
        larger.program_fd = filter->choices ? load_for_pages(&larger) : load_for_processes(&larger);
        err = larger.program_fd < 0 ? larger.program_fd : 0;
    }
    if (err) {
        close(larger.map_fd);
        return err;
    }
    close(filter->program_fd);
    close(filter->map_fd);
    *filter = larger;
    return 0;
}

/* The process's id as the program sees it. */
static pid_t seen_id(pid_t process_id)
{
    struct stat own, others;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/ns/pid", process_id);
    bool is_other = !is_first_pid_namespace() && stat("/proc/self/ns/pid", &own) == 0 &&
                    stat(path, &others) == 0 && own.st_ino != others.st_ino;
    return is_other ? 0 : process_id;
}

int filter_add(struct filter *filter, pid_t process_id, bool *ret_has_grown)
{
    *ret_has_grown = false;
    if (filter->map_fd < 0)
        return 0;
    pid_t id = seen_id(process_id);
    filter->is_exact = filter->is_exact && id;
    int err = change(filter->map_fd, BPF_MAP_UPDATE_ELEM, (uint32_t)id);
    if (err != -E2BIG)
        return err;
    err = grow(filter);
    *ret_has_grown = !err;
    return err ? err : change(filter->map_fd, BPF_MAP_UPDATE_ELEM, (uint32_t)id);
}

void filter_remove(const struct filter *filter, pid_t process_id)
{
    if (filter->map_fd >= 0)
        change(filter->map_fd, BPF_MAP_DELETE_ELEM, (uint32_t)process_id);
}

void filter_close(struct filter *filter)
{
    if (filter->choices)
        munmap((void *)filter->choices, shared_bytes(filter));
    if (filter->shared_fd >= 0)
        close(filter->shared_fd);
    if (filter->program_fd >= 0)
        close(filter->program_fd);
    if (filter->map_fd >= 0)
        close(filter->map_fd);
    *filter = no_filter;
}
