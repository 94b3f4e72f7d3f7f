/* Reads through the accessors below: registers and stack from the snapshot, unwind tables and code
 * from the mapped files, which it trusts: this tool is for harmless programs only. */
#include "walk_libunwind.h"
#include "base/array.h"
#include "unwind/code_address.h"

#include <errno.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Searches the table of an .eh_frame_hdr. Exported by libunwind for users with their own accessors,
 * but declared in none of its installed headers (include/dwarf.h of v1.6.2). */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *info,
                                       unw_proc_info_t *ret_info, int need_unwind_info, void *arg);

/* Rows that libunwind caches per address space. It always hashes them to 256 buckets (v1.6.2,
 * src/dwarf/Gparser.c), so more rows would make it slower again. */
#define CACHED_ROWS 4096

struct libunwind {
    unw_addr_space_t address_space;
};

/* The state of unwinding one stack; accessors get it as `arg`. */
struct progress {
    struct walk *walk;
    /* In the current step: */
    bool missed_stack;       /* the copy of the stack does not contain an address */
    bool missed_unwind_info; /* an address has none */
    bool missed_register;    /* a register is not in the snapshot */
};

static int push(struct stack *stack, uint64_t address)
{
    return array_append(&stack->addresses, &stack->depth, &stack->capacity, address);
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *ret_info,
                          int need_unwind_info, void *arg)
{
    struct progress *progress = arg;
    const struct mapping *mapping = space_find(progress->walk->space, ip);
    if (!mapping || !mapping->has_bias || !mapping->module->unwind_table.header_address ||
        mapping->module->unread) {
        progress->missed_unwind_info = true;
        return -UNW_ENOINFO;
    }
    const struct unwind_table *table = &mapping->module->unwind_table;
    unw_dyn_info_t info = {
        .start_ip = mapping->start,
        .end_ip = mapping->end,
        .format = UNW_INFO_FORMAT_REMOTE_TABLE,
        .u.rti.segbase = table->header_address + mapping->bias,
        .u.rti.table_data = table->entries_address + mapping->bias,
        .u.rti.table_len = table->entry_count, /* in words: two 32-bit numbers each */
    };
    int err = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &info, ret_info, need_unwind_info, arg);
    if (err < 0)
        progress->missed_unwind_info = true;
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
    struct progress *progress = arg;
    struct walk *walk = progress->walk;
    if (write)
        return -UNW_EREADONLYREG;
    if (walk_read_stack(walk, address, value) ||
        space_read_file(walk->space, address, value, sizeof *value))
        return 0;
    progress->missed_stack = true;
    return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t number, unw_word_t *value, int write,
                      void *arg)
{
    (void)as;
    struct progress *progress = arg;
    const struct registers *registers = &progress->walk->snapshot->registers;
    if (write || number < 0 || number >= REGISTERS_MAX)
        return -UNW_EBADREG;
    if (!registers_has(registers, (unsigned)number)) {
        progress->missed_register = true;
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

int libunwind_new(struct libunwind **ret_libunwind)
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
    struct libunwind *libunwind = calloc(1, sizeof *libunwind);
    if (!libunwind)
        return -ENOMEM;
    libunwind->address_space = unw_create_addr_space(&accessors, 0);
    if (!libunwind->address_space) {
        free(libunwind);
        return -ENOMEM;
    }
    unw_set_caching_policy(libunwind->address_space, UNW_CACHE_GLOBAL);
    unw_set_cache_size(libunwind->address_space, CACHED_ROWS, 0);
    *ret_libunwind = libunwind;
    return 0;
}

void libunwind_free(struct libunwind *libunwind)
{
    if (!libunwind)
        return;
    unw_destroy_addr_space(libunwind->address_space);
    free(libunwind);
}

/* Whether the last frame ends in the stack. libunwind also reports the stack's end if a return
 * address would be at address 0 (DWARF_IS_NULL_LOC). */
static bool ends_in_stack(const struct walk *walk, unw_cursor_t *cursor)
{
    const struct snapshot *snapshot = walk->snapshot;
    uint64_t copied_end = snapshot->stack.address + snapshot->stack.bytes;
    uint64_t end = snapshot->stack.end > copied_end ? snapshot->stack.end : copied_end;
    unw_word_t sp;
    return unw_get_reg(cursor, UNW_REG_SP, &sp) == 0 && sp >= snapshot->stack.address && sp <= end;
}

/* Why a walk that libunwind can't continue ends here. */
static enum stack_cut cut_of(const struct progress *progress, unw_cursor_t *cursor, int step)
{
    if (progress->missed_register)
        return STACK_CUT_NO_REGISTER;
    if (progress->missed_unwind_info)
        return STACK_CUT_NO_UNWIND_INFO;
    if (step == 0 && ends_in_stack(progress->walk, cursor))
        return STACK_WHOLE;
    return step == 0 || progress->missed_stack ? STACK_CUT_UNREADABLE : STACK_CUT_NO_UNWIND_INFO;
}

/* Walks the frames. A frame that a signal interrupted, and the kernel's trampoline that the handler
 * "returns" to, are at their exact address; other callers are at a return address. */
static int walk_frames(struct progress *progress, unw_cursor_t *cursor)
{
    struct walk *walk = progress->walk;
    struct stack *stack = walk->stack;
    bool is_exact = true;
    for (;;) {
        unw_word_t pc;
        /* A caller at 0 means the end: the first frame of a thread may be marked so. */
        if (unw_get_reg(cursor, UNW_REG_IP, &pc) || (!pc && stack->depth))
            return 0;
        const struct mapping *mapping = space_find(walk->space, pc);
        if (!mapping) {
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            /* The leaf is the thread's pc, mapped or not; a caller outside all code is no frame. */
            return stack->depth ? 0 : push(stack, pc);
        }
        if (stack->depth == walk->max_depth) {
            stack->cut = STACK_CUT_AT_MAX_DEPTH;
            return 0;
        }
        bool is_trampoline = unw_is_signal_frame(cursor) > 0;
        if (push(stack, lookup_address(pc, is_exact || is_trampoline)))
            return -ENOMEM;
        /* Without unwind tables, libunwind would guess. */
        if (mapping->has_bias && mapping->module->unread) {
            stack->cut = STACK_CUT_UNREAD;
            return 0;
        }
        is_exact = is_trampoline;
        *progress = (struct progress){.walk = walk};
        int step = unw_step(cursor);
        if (step <= 0) {
            stack->cut = cut_of(progress, cursor, step);
            return 0;
        }
    }
}

int walk_by_libunwind(struct walk *walk, struct libunwind *libunwind)
{
    struct progress progress = {.walk = walk};
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, libunwind->address_space, &progress) == 0)
        return walk_frames(&progress, &cursor);
    walk->stack->cut = STACK_CUT_NO_UNWIND_INFO;
    return push(walk->stack, registers_pc(&walk->snapshot->registers));
}
