/* Drops perf samples before the kernel copies their stacks: samples of processes that are not
 * followed and, for page faults, of pages that are not chosen. See perf_filter.h for its use.
 *
 * Nothing here reads kernel structures, so no BTF is needed. It is compiled for version 2 of the
 * instruction set, because Linux 5.10 lacks newer instructions. */
#include "observe/bpf/perf_filter_format.h"
#include "observe/bpf/process_set.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char licence[] SEC("license") = "Dual MIT/GPL";

/* ---- Set before a program is loaded ---- */

const volatile uint64_t page_seed = 0;
const volatile uint32_t page_bits = 12;
const volatile uint32_t passed_cpus = 1;
/* The loader's PID namespace. 0: it is the first one, in which ids are those that the kernel itself
 * uses. */
const volatile uint64_t namespace_device = 0, namespace_inode = 0;

/* ---- Shared with the loader ---- */

struct process_set followed;
volatile struct page_choice choices[PAGE_GROUPS];

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct passed_faults);
} passed SEC(".maps");

/* The program with which filter_by_process continues, if there is one. */
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, uint32_t);
} next SEC(".maps");

/* ---- The programs ---- */

/* struct bpf_perf_event_data of linux/bpf_perf_event.h, which begins with all user registers. */
struct perf_context {
#ifdef __TARGET_ARCH_arm64
    uint64_t registers[34];
#else
    uint64_t registers[21];
#endif
    uint64_t period, address;
};

/* The ids are 0 if the process is in another PID namespace than the loader, unless the loader's is
 * the first. */
static __always_inline struct bpf_pidns_info current_ids(void)
{
    struct bpf_pidns_info ids;
    if (namespace_inode) {
        bpf_get_ns_current_pid_tgid(namespace_device, namespace_inode, &ids, sizeof ids);
        return ids;
    }
    uint64_t both = bpf_get_current_pid_tgid();
    ids.tgid = both >> 32;
    ids.pid = (uint32_t)both;
    return ids;
}

/* CPUs beyond `passed_cpus` share the notes of others. */
static __always_inline void note(const struct passed_fault *fault)
{
    uint32_t cpu = bpf_get_smp_processor_id() % passed_cpus;
    struct passed_faults *faults = bpf_map_lookup_elem(&passed, &cpu);
    if (!faults)
        return;
    faults->items[faults->count % PASSED_MAX] = *fault;
    barrier();
    faults->count++;
}

/* Several CPUs may halve the limit for the same burst. */
static __always_inline void pay(volatile struct page_choice *choice)
{
    __sync_fetch_and_add(&choice->tokens, -1);
    if (choice->tokens >= 0)
        return;
    choice->limit >>= 1;
    __sync_fetch_and_add(&choice->tokens, choice->more);
}

SEC("perf_event")
int filter_by_process(void *context)
{
    if (!process_set_has(&followed, current_ids().tgid))
        return 0;
    bpf_tail_call(context, &next, 0);
    return 1;
}

SEC("perf_event")
int filter_by_page(const struct perf_context *context)
{
    uint64_t address = context->address;
    volatile struct page_choice *choice = &choices[page_group(address, page_bits)];
    uint64_t limit = choice->limit;
    if (page_rank(page_seed, address, page_bits) > limit)
        return 0;
    struct bpf_pidns_info ids = current_ids();
    if (!process_set_has(&followed, ids.tgid))
        return 0;
    const struct passed_fault fault = {
        .address = address,
        .tid = ids.pid,
        .process_id = ids.tgid,
        .at_ns = bpf_ktime_get_ns(),
        .limit = limit,
    };
    note(&fault);
    pay(choice);
    return 1;
}
