/* Unwinding with libunwind, which reads through the accessors below: registers and stack from the
 * snapshot, code from the mapped files, and unwind tables from what is shown to it: one entry at a
 * time, which was checked and copied. It does that in this process, as it goes back and forth
 * between tables and the stack. */
#include "unwind/walk.h"
#include "unwind/code_address.h"

#include <errno.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Exported by libunwind for users with accessors of their own, though none of its headers has it:
 * searches the table of an .eh_frame_hdr (include/dwarf.h of v1.6.2). */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *info,
                                       unw_proc_info_t *ret_info, int need_unwind_info, void *arg);

/* How often libunwind may read memory for one stack: a thousand frames need less. */
#define READS_MAX (4u << 20)
/* Where a search table is shown to it: no process has memory there. */
#define TABLE_ADDRESS (UINT64_C(1) << 63)
#define HEAD_BYTES 8 /* of an entry in the 32-bit format: its length, and where its CIE is */

struct libunwind {
    unw_addr_space_t address_space;
    struct cfi_entry entry; /* the one that is shown */
};

/* Bytes that libunwind reads in place of what the file has there now. */
struct shown {
    uint64_t address;
    const void *bytes;
    size_t count;
};

enum { SHOWN_TABLE, SHOWN_HEAD, SHOWN_BODY, SHOWN_COMMON_HEAD, SHOWN_COMMON_BODY, SHOWN_COUNT };

/* The state of unwinding one stack; accessors get it as `arg`. */
struct progress {
    struct walk *walk;
    struct libunwind *libunwind;
    uint32_t reads_left;
    /* In this step: */
    const struct mapping *mapping; /* of the frame's code */
    int32_t table[2];              /* an offset of code, and of its FDE */
    uint32_t head[2], common_head[2];
    struct shown shown[SHOWN_COUNT];
    bool missed_stack;       /* the copy of the stack does not reach an address */
    bool missed_unwind_info; /* an address has none */
    bool was_refused;        /* the entry that it has */
    bool missed_register;    /* a register is not in the snapshot */
    bool missed_frame_pointer;
};

/* libunwind believes what it reads: it does not compare a register's number with how many there
 * are, an expression may loop, and rows are put aside without limit. So the entry is checked first,
 * and shown as it was then: the file may be written to. */
static bool show(struct progress *progress, uint64_t ip)
{
    const struct mapping *mapping = progress->mapping;
    struct cfi_entry *entry = &progress->libunwind->entry;
    if (!cfi_find_in_table(mapping->module, ip - mapping->bias, entry))
        return false;
    const struct cfi_part *own = &entry->own, *common = &entry->common;
    uint64_t address = own->position + mapping->bias;
    uint64_t common_address = common->position + mapping->bias;
    int64_t offset = (int64_t)(ip - address);
    progress->was_refused = offset != (int32_t)offset || !cfi_is_bounded(entry);
    if (progress->was_refused)
        return false;
    /* All code from any offset on is of the FDE, which is where offsets are from. */
    progress->table[0] = INT32_MIN;
    progress->table[1] = 0;
    progress->head[0] = (uint32_t)own->bytes + sizeof(uint32_t);
    progress->head[1] = (uint32_t)(own->position + sizeof(uint32_t) - common->position);
    progress->common_head[0] = (uint32_t)common->bytes + sizeof(uint32_t);
    progress->common_head[1] = 0;
    const struct shown shown[SHOWN_COUNT] = {
        [SHOWN_TABLE] = {TABLE_ADDRESS, progress->table, sizeof progress->table},
        [SHOWN_HEAD] = {address, progress->head, HEAD_BYTES},
        [SHOWN_BODY] = {address + HEAD_BYTES, entry->buffers.own, own->bytes},
        [SHOWN_COMMON_HEAD] = {common_address, progress->common_head, HEAD_BYTES},
        [SHOWN_COMMON_BODY] = {common_address + HEAD_BYTES, entry->buffers.common, common->bytes},
    };
    memcpy(progress->shown, shown, sizeof shown);
    return true;
}

/* Copies the word's bytes that are shown; others are 0. Returns false if there are none. */
static bool read_shown(const struct progress *progress, uint64_t address, unw_word_t *ret_word)
{
    uint8_t bytes[sizeof *ret_word] = {0};
    bool is_shown = false;
    for (unsigned i = 0; i < SHOWN_COUNT; i++) {
        const struct shown *shown = &progress->shown[i];
        for (unsigned j = 0; j < sizeof bytes; j++) {
            uint64_t at = address + j - shown->address;
            if (at >= shown->count)
                continue;
            bytes[j] = ((const uint8_t *)shown->bytes)[at];
            is_shown = true;
        }
    }
    memcpy(ret_word, bytes, sizeof bytes);
    return is_shown;
}

/* Whether one address is the same part of the same file to both. */
static bool lie_alike(const struct mapping *left, const struct mapping *right)
{
    return left->module == right->module && left->bias == right->bias;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *ret_info,
                          int need_unwind_info, void *arg)
{
    struct progress *progress = arg;
    const struct mapping *mapping = space_find(progress->walk->space, ip);
    if (!mapping || !mapping->has_bias || !mapping->module->unwind_table.header_address ||
        mapping->module->unread || !progress->mapping || !lie_alike(mapping, progress->mapping) ||
        !show(progress, ip)) {
        progress->missed_unwind_info = true;
        return -UNW_ENOINFO;
    }
    unw_dyn_info_t info = {
        .start_ip = mapping->start,
        .end_ip = mapping->end,
        .format = UNW_INFO_FORMAT_REMOTE_TABLE,
        .u.rti.segbase = progress->shown[SHOWN_HEAD].address,
        .u.rti.table_data = TABLE_ADDRESS,
        .u.rti.table_len = 1, /* in words: two numbers of 32 bits */
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
    if (!progress->reads_left)
        return -UNW_EINVAL;
    progress->reads_left--;
    /* Before the stack: a stack pointer may claim that it is there. Code is read in the same way.
     */
    if (read_shown(progress, address, value) || walk_read_stack(walk, address, value) ||
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
        progress->missed_frame_pointer = (unsigned)number == architecture.frame_pointer;
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
    /* A row that it knows would lead to the file's bytes. */
    unw_set_caching_policy(libunwind->address_space, UNW_CACHE_NONE);
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

/* Whether the last frame ends in the stack. libunwind also takes a return address that would be at
 * address 0 for the stack's end (DWARF_IS_NULL_LOC). */
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

static void note_end(const struct progress *progress, unw_cursor_t *cursor, int step)
{
    struct walk *walk = progress->walk;
    struct unwind_hints *hints = walk->hints;
    unw_proc_info_t info;
    unw_word_t sp;
    walk->stack->cut = cut_of(progress, cursor, step);
    if (walk->stack->cut != STACK_CUT_UNREADABLE)
        hints->needs_more_stack = false, hints->missing_address = 0;
    if (walk->stack->cut == STACK_CUT_NO_REGISTER && progress->missed_frame_pointer &&
        unw_get_reg(cursor, UNW_REG_SP, &sp) == 0 && unw_get_proc_info(cursor, &info) == 0) {
        hints->function = info.start_ip;
        hints->function_address = walk->stack->addresses[walk->stack->depth - 1];
        hints->function_sp = sp;
    }
}

/* Goes from frame to frame. The frame that a signal interrupted, and the kernel's trampoline that
 * the handler "returns" to, are at their exact address; other callers are at a return address. */
static int walk_frames(struct progress *progress, unw_cursor_t *cursor)
{
    struct walk *walk = progress->walk;
    struct stack *stack = walk->stack;
    bool is_exact = true;
    for (;;) {
        unw_word_t pc;
        /* A caller at 0 is none: the first frame of a thread may be marked so. */
        if (unw_get_reg(cursor, UNW_REG_IP, &pc) || (!pc && stack->depth))
            return 0;
        const struct mapping *mapping = space_find(walk->space, pc);
        if (!mapping) {
            walk->hints->has_unknown_address = true;
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            /* The leaf is where the thread is, known or not; a caller outside all code is none. */
            return stack->depth ? 0 : walk_push(walk, pc);
        }
        if (stack->depth == walk->max_depth) {
            stack->cut = STACK_CUT_AT_MAX_DEPTH;
            return 0;
        }
        bool is_trampoline = unw_is_signal_frame(cursor) > 0;
        if (walk_push(walk, lookup_address(pc, is_exact || is_trampoline)))
            return -ENOMEM;
        /* Without unwind tables libunwind would guess. */
        if (mapping->has_bias && mapping->module->unread) {
            stack->cut = STACK_CUT_UNREAD;
            return 0;
        }
        /* libunwind may know the frame, and by either address. */
        const struct mapping *before = space_find(walk->space, address_of_call(pc));
        if (before && !lie_alike(before, mapping)) {
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            return 0;
        }
        is_exact = is_trampoline;
        *progress = (struct progress){
            .walk = walk,
            .libunwind = progress->libunwind,
            .reads_left = progress->reads_left,
            .mapping = mapping,
        };
        int step = unw_step(cursor);
        /* Where it gets no entry, it guesses. */
        if (progress->was_refused) {
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            return 0;
        }
        if (step <= 0) {
            note_end(progress, cursor, step);
            return 0;
        }
    }
}

int walk_by_libunwind(struct walk *walk, struct libunwind *libunwind)
{
    struct progress progress = {.walk = walk, .libunwind = libunwind, .reads_left = READS_MAX};
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, libunwind->address_space, &progress) == 0)
        return walk_frames(&progress, &cursor);
    walk->stack->cut = STACK_CUT_NO_UNWIND_INFO;
    return walk_push(walk, registers_pc(&walk->snapshot->registers));
}
