#include "observe/filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROCESSES_MAX 4096
/* The inode of the first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

static int bpf(int command, union bpf_attr *attr)
{
    long fd = syscall(SYS_bpf, command, attr, sizeof *attr);
    return fd < 0 ? -errno : (int)fd;
}

/* In the first PID namespace process ids are those that the program below gets. In another one they
 * are not, and samples are told apart when they are read. */
static bool is_first_pid_namespace(void)
{
    struct stat namespace;
    return stat("/proc/self/ns/pid", &namespace) == 0 && namespace.st_ino == FIRST_PID_NAMESPACE;
}

static int create_map(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_HASH,
        .key_size = sizeof(uint32_t),
        .value_size = sizeof(uint8_t),
        .max_entries = PROCESSES_MAX,
    };
    return bpf(BPF_MAP_CREATE, &attr);
}

/* Returns 1 to keep a sample, 0 to drop it:
 *
 *     uint32_t process_id = bpf_get_current_pid_tgid() >> 32;
 *     return bpf_map_lookup_elem(&map, &process_id) != NULL;
 *
 * Instructions as in the kernel's Documentation/bpf/standardization/instruction-set.rst. */
static int load_program(int map_fd)
{
    const struct bpf_insn instructions[] = {
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid},
        {.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = 32},
        /* *(uint32_t *)(r10 - 4) = r0; r2 = r10 - 4 */
        {.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .src_reg = BPF_REG_0, .off = -4},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4},
        /* r1 = map, an instruction of two words */
        {.code = BPF_LD | BPF_DW | BPF_IMM,
         .dst_reg = BPF_REG_1,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = map_fd},
        {.code = 0},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
        /* if (r0 == 0) skip the next instruction */
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 1},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_PERF_EVENT,
        .insns = (uint64_t)(uintptr_t)instructions,
        .insn_cnt = sizeof instructions / sizeof *instructions,
        .license = (uint64_t)(uintptr_t) "MIT", /* neither helper asks for the GPL */
    };
    return bpf(BPF_PROG_LOAD, &attr);
}

int filter_open(struct filter *ret_filter)
{
    *ret_filter = (struct filter){-1, -1};
    if (!is_first_pid_namespace())
        return -ENOTSUP;
    int map_fd = create_map();
    if (map_fd < 0)
        return map_fd;
    int program_fd = load_program(map_fd);
    if (program_fd < 0) {
        close(map_fd);
        return program_fd;
    }
    *ret_filter = (struct filter){map_fd, program_fd};
    return 0;
}

int filter_apply(const struct filter *filter, int event_fd)
{
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, filter->program_fd) ? -errno : 0;
}

static int change(const struct filter *filter, int command, pid_t process_id)
{
    uint32_t key = (uint32_t)process_id;
    uint8_t value = 1;
    union bpf_attr attr = {.map_fd = (uint32_t)filter->map_fd};
    attr.key = (uint64_t)(uintptr_t)&key;
    attr.value = (uint64_t)(uintptr_t)&value;
    return bpf(command, &attr);
}

int filter_add(const struct filter *filter, pid_t process_id)
{
    return change(filter, BPF_MAP_UPDATE_ELEM, process_id);
}

void filter_remove(const struct filter *filter, pid_t process_id)
{
    change(filter, BPF_MAP_DELETE_ELEM, process_id);
}

void filter_close(struct filter *filter)
{
    if (filter->program_fd >= 0)
        close(filter->program_fd);
    if (filter->map_fd >= 0)
        close(filter->map_fd);
    *filter = (struct filter){-1, -1};
}
