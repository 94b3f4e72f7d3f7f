/* Unwinding by libunwind, which reads through the accessors below: registers and stack from the
 * snapshot, unwind tables and code from the mapped files. */
#include "unwind/unwind.h"
#include "base/array.h"

#include <errno.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Rows that libunwind keeps per address space. It hashes them to 256 buckets however many they are
 * (v1.6.2, src/dwarf/Gparser.c), so that more than this makes it slower again. */
#define CACHED_ROWS 4096

/* Exported by libunwind for users with accessors of their own, though in no header of it: searches
 * the table of an .eh_frame_hdr (include/dwarf.h of v1.6.2). */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *info,
                                       unw_proc_info_t *ret_info, int need_unwind_info, void *arg);

struct unwinder {
    unw_addr_space_t address_space;
};

/* One stack on its way; what accessors get as `arg`. */
struct walk {
    struct space *space;
    const struct snapshot *snapshot;
    size_t stack_bytes_used;
    bool missed_stack; /* an address behind the snapshot's end was asked for */
    uint64_t missed_address;
    bool missed_frame_pointer;
    uint64_t function, function_sp; /* of the one that needs it */
    bool missed_unwind_info;        /* for an address, in this step */
    bool missed_register;           /* one that is not in the snapshot, in this step */
};

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *ret_info,
                          int need_unwind_info, void *arg)
{
    struct walk *walk = arg;
    const struct mapping *mapping = space_find(walk->space, ip);
    if (!mapping || !mapping->has_bias || !mapping->module->unwind_table.header_address) {
        walk->missed_unwind_info = true;
        return -UNW_ENOINFO;
    }
    const struct unwind_table *table = &mapping->module->unwind_table;
    unw_dyn_info_t info = {
        .start_ip = mapping->start,
        .end_ip = mapping->end,
        .format = UNW_INFO_FORMAT_REMOTE_TABLE,
        .u.rti.segbase = table->header_address + mapping->bias,
        .u.rti.table_data = table->entries_address + mapping->bias,
        .u.rti.table_len =
            table->entry_count, /* an entry has the size of one word: two of 32 bits */
    };
    int err = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &info, ret_info, need_unwind_info, arg);
    if (err < 0)
        walk->missed_unwind_info = true;
    return err;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *info, void *arg)
{
    (void)as, (void)info, (void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *ret_address, void *arg)
{
    (void)as, (void)ret_address, (void)arg;
    return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write,
                      void *arg)
{
    (void)as;
    struct walk *walk = arg;
    const struct snapshot *snapshot = walk->snapshot;
    if (write)
        return -UNW_EREADONLYREG;
    uint64_t at = address - snapshot->stack_address;
    if (at < snapshot->stack_bytes && sizeof *value <= snapshot->stack_bytes - at) {
        memcpy(value, snapshot->stack + at, sizeof *value);
        if (at + sizeof *value > walk->stack_bytes_used)
            walk->stack_bytes_used = at + sizeof *value;
        return 0;
    }
    if (space_read_file(walk->space, address, value, sizeof *value))
        return 0;
    if (address >= snapshot->stack_address) {
        walk->missed_stack = true;
        walk->missed_address = address;
    }
    return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t number, unw_word_t *value, int write,
                      void *arg)
{
    (void)as;
    struct walk *walk = arg;
    const struct registers *registers = &walk->snapshot->registers;
    if (write || number < 0 || number >= REGISTERS_MAX)
        return -UNW_EBADREG;
    if (!registers_has(registers, (unsigned)number)) {
        walk->missed_register = true;
        walk->missed_frame_pointer = (unsigned)number == architecture.frame_pointer;
        return -UNW_EBADREG;
    }
    *value = registers->values[number];
    return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t number, unw_fpreg_t *value, int write,
                        void *arg)
{
    (void)as, (void)number, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
    (void)as, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

int unwinder_new(struct unwinder **ret_unwinder)
{
    static unw_accessors_t accessors = {
        .find_proc_info = find_proc_info,
        .put_unwind_info = put_unwind_info,
        .get_dyn_info_list_addr = get_dyn_info_list_addr,
        .access_mem = access_mem,
        .access_reg = access_reg,
        .access_fpreg = access_fpreg,
        .resume = resume,
    };
    struct unwinder *unwinder = calloc(1, sizeof *unwinder);
    if (!unwinder)
        return -ENOMEM;
    unwinder->address_space = unw_create_addr_space(&accessors, 0);
    if (!unwinder->address_space) {
        free(unwinder);
        return -ENOMEM;
    }
    unw_set_caching_policy(unwinder->address_space, UNW_CACHE_GLOBAL);
    unw_set_cache_size(unwinder->address_space, CACHED_ROWS, 0);
    *ret_unwinder = unwinder;
    return 0;
}

void unwinder_free(struct unwinder *unwinder)
{
    if (!unwinder)
        return;
    unw_destroy_addr_space(unwinder->address_space);
    free(unwinder);
}

static int push(struct stack *stack, uint64_t address)
{
    if (array_reserve((void **)&stack->addresses, &stack->capacity, stack->depth + 1,
                      sizeof *stack->addresses))
        return -ENOMEM;
    stack->addresses[stack->depth++] = address;
    return 0;
}

/* Whether the last frame's end lies in the stack. libunwind also takes a return address that would
 * be at address 0 for the stack's end (DWARF_IS_NULL_LOC). */
static bool ends_in_stack(const struct walk *walk, unw_cursor_t *cursor)
{
    const struct snapshot *snapshot = walk->snapshot;
    uint64_t copied_end = snapshot->stack_address + snapshot->stack_bytes;
    uint64_t end = snapshot->stack_end > copied_end ? snapshot->stack_end : copied_end;
    unw_word_t sp;
    return unw_get_reg(cursor, UNW_REG_SP, &sp) == 0 && sp >= snapshot->stack_address && sp <= end;
}

/* Why a walk that libunwind can't continue ends here. */
static enum stack_cut cut_of(const struct walk *walk, unw_cursor_t *cursor, int step)
{
    if (walk->missed_register)
        return STACK_CUT_NO_REGISTER;
    if (walk->missed_unwind_info)
        return STACK_CUT_NO_UNWIND_INFO;
    if (step == 0 && ends_in_stack(walk, cursor))
        return STACK_WHOLE;
    return step == 0 || walk->missed_stack ? STACK_CUT_UNREADABLE : STACK_CUT_NO_UNWIND_INFO;
}

/* Goes from frame to frame. The frame that a signal interrupted, and the kernel's trampoline that
 * it "returns" to, are at their exact address; other callers are at a return address. */
static int walk_frames(struct walk *walk, unw_cursor_t *cursor, size_t max_depth,
                       struct stack *stack, bool *ret_unknown)
{
    bool is_exact = true;
    for (;;) {
        unw_word_t pc;
        /* A caller at 0 is none: so the first frame of a thread may be marked. */
        if (unw_get_reg(cursor, UNW_REG_IP, &pc) || (!pc && stack->depth))
            return 0;
        if (!space_find(walk->space, pc)) {
            *ret_unknown = true;
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            /* The leaf is where the thread is, known or not; a caller in no code is no caller. */
            return stack->depth ? 0 : push(stack, pc);
        }
        if (stack->depth == max_depth) {
            stack->cut = STACK_CUT_AT_MAX_DEPTH;
            return 0;
        }
        bool is_trampoline = unw_is_signal_frame(cursor) > 0;
        if (push(stack, is_exact || is_trampoline ? pc : pc - 1))
            return -ENOMEM;
        is_exact = is_trampoline;
        walk->missed_unwind_info = false;
        walk->missed_stack = false;
        walk->missed_register = false;
        int step = unw_step(cursor);
        if (step <= 0) {
            stack->cut = cut_of(walk, cursor, step);
            unw_proc_info_t info;
            if (stack->cut == STACK_CUT_NO_REGISTER && walk->missed_frame_pointer &&
                unw_get_reg(cursor, UNW_REG_SP, &walk->function_sp) == 0 &&
                unw_get_proc_info(cursor, &info) == 0)
                walk->function = info.start_ip;
            return 0;
        }
    }
}

int unwind_snapshot(struct unwinder *unwinder, struct space *space, const struct snapshot *snapshot,
                    size_t max_depth, struct stack *stack, struct unwind_hints *ret_hints)
{
    struct walk walk = {.space = space, .snapshot = snapshot};
    unw_cursor_t cursor;
    bool unknown = false;
    stack->depth = 0;
    stack->cut = STACK_WHOLE;
    int err = 0;
    if (unw_init_remote(&cursor, unwinder->address_space, &walk)) {
        stack->cut = STACK_CUT_NO_UNWIND_INFO;
        err = push(stack, registers_pc(&snapshot->registers));
    } else {
        err = walk_frames(&walk, &cursor, max_depth, stack, &unknown);
    }
    *ret_hints = (struct unwind_hints){
        .stack_bytes_used = walk.stack_bytes_used,
        .needs_more_stack =
            stack->cut == STACK_CUT_UNREADABLE &&
            (walk.missed_address < snapshot->stack_end || !snapshot->stack_end_is_known),
        .function = walk.function,
        .function_sp = walk.function_sp,
        .has_unknown_address = unknown,
    };
    return err;
}
