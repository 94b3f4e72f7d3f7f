/* Follows all paths from an instruction to the returns of its function. All paths that return must
 * agree. */
#include "unwind/code/code_return.h"
#include "unwind/aarch64/instruction.h"
#include "unwind/aarch64/values.h"
#include "unwind/code/last_call.h"
#include "unwind/signal_frame.h"

#include <stdlib.h>
#include <string.h>

#define INSTRUCTIONS_MAX 2048u
#define SEEN_SLOTS 4096u /* a power of two, more than the instructions */
#define PATHS_MAX 64

struct path {
    uint64_t address;
    unsigned call; /* the number of the system call that comes next; 0: not known */
    struct values values;
};

struct search {
    struct module *module;
    unsigned instructions_left;
    struct path paths[PATHS_MAX]; /* still to be followed */
    size_t path_count;
    struct seen {
        uint64_t address_plus_1;
        struct code_value sp;
    } seen[SEEN_SLOTS];
    struct code_return found;
    bool has_found, has_contradiction;
};

static void add_path(struct search *search, const struct path *path, uint64_t address)
{
    if (search->path_count == PATHS_MAX)
        return;
    search->paths[search->path_count] = *path;
    search->paths[search->path_count++].address = address;
}

/* A path has reached a return. */
static void note_return(struct search *search, const struct path *path)
{
    struct code_return found = {
        .sp = path->values.sp,
        .frame_pointer = path->values.frame_pointer,
        .return_address = path->values.link,
    };
    if (found.sp.kind != CODE_VALUE_REGISTER || found.return_address.kind == CODE_VALUE_UNKNOWN) {
        search->has_contradiction = true;
        return;
    }
    if (!search->has_found)
        search->found = found;
    else if (!value_is_same(&search->found.sp, &found.sp) ||
             !value_is_same(&search->found.return_address, &found.return_address))
        search->has_contradiction = true;
    else if (!value_is_same(&search->found.frame_pointer, &found.frame_pointer))
        search->found.frame_pointer = unknown_value;
    search->has_found = true;
}

/* Whether a call does not return to the code after it: that is padding, as between functions, or
 * the landing pad (bti c, paciasp) at the beginning of another one. */
static bool is_last_call(struct module *module, uint64_t address)
{
    uint32_t next;
    return call_is_known_last(module, address) ||
           !module_read(module, address, &next, sizeof next) || next == 0xd503201fu || /* nop */
           begins_function(next);
}

/* exit, exit_group and rt_sigreturn do not return. */
static bool call_returns(unsigned call)
{
    return call != 93 && call != 94 && call != 139;
}

/* Tracks x8, which holds the number of a system call: mov w8, #number sets it, other instructions
 * make it unknown. */
static void follow_call_number(struct path *path, uint32_t instruction)
{
    if ((instruction & 0x7fe0001fu) == 0x52800008u)
        path->call = field(instruction, 5, 16);
    else if (field(instruction, 0, 5) == 8)
        path->call = 0;
}

/* br, ret, and those that check a signature. */
static void branch_by_register(struct search *search, struct path *path, uint32_t instruction)
{
    unsigned operation = field(instruction, 21, 2), number = field(instruction, 5, 5);
    bool is_signed_return = (instruction & 0xfffffbffu) == 0xd65f0bffu;
    /* A jump through x16 or x17 leads to another function, as in a linkage stub (AAPCS64, 6.1.1); a
     * jump through another register may be through a jump table. */
    if ((operation == 2 && (number == LINK || is_signed_return)) ||
        (operation == 0 && (number == 16 || number == 17)))
        note_return(search, path);
}

/* Follows branches and other changes of control flow. The path's address is already that of the
 * next instruction. Returns whether the path continues there. */
static bool branch(struct search *search, struct path *path, uint32_t instruction)
{
    uint64_t target;
    if (is_call(instruction))
        return !is_last_call(search->module, path->address);
    if (is_register_branch(instruction)) {
        branch_by_register(search, path, instruction);
        return false;
    }
    if (is_system_call(instruction))
        return call_returns(path->call);
    if (branch_target(instruction, path->address - INSTRUCTION_BYTES, &target)) {
        add_path(search, path, target);
        return !is_unconditional_branch(instruction);
    }
    return !is_trap(instruction);
}

/* Notes that a path has reached this place; returns false if one had before. */
static bool note_seen(struct search *search, const struct path *path)
{
    size_t at = (size_t)((path->address * 0x9e3779b97f4a7c15u) >> 32) & (SEEN_SLOTS - 1);
    while (search->seen[at].address_plus_1 && search->seen[at].address_plus_1 != path->address + 1)
        at = (at + 1) & (SEEN_SLOTS - 1);
    struct seen *seen = &search->seen[at];
    if (!seen->address_plus_1) {
        *seen = (struct seen){path->address + 1, path->values.sp};
        return true;
    }
    if (path->values.sp.kind != CODE_VALUE_UNKNOWN && seen->sp.kind != CODE_VALUE_UNKNOWN &&
        !value_is_same(&path->values.sp, &seen->sp))
        search->has_contradiction = true;
    return false;
}

static void follow_path(struct search *search, struct path *path)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    uint32_t instruction;
    bool goes_on = true;
    while (goes_on && !search->has_contradiction && search->instructions_left &&
           note_seen(search, path) &&
           module_read(search->module, path->address, &instruction, sizeof instruction)) {
        search->instructions_left--;
        /* The kernel's return from a handler, and udf, which is no instruction. */
        if (instruction < 0x10000 ||
            (module_read(search->module, path->address, code, sizeof code) &&
             signal_return_is_at(code)))
            return;
        path->address += INSTRUCTION_BYTES;
        follow_call_number(path, instruction);
        values_follow(&path->values, instruction);
        if ((field(instruction, 25, 4) & 0xe) == 0xa)
            goes_on = branch(search, path, instruction);
    }
}

bool code_return_find(struct module *module, uint64_t address, bool is_after_call,
                      struct code_return *ret_return)
{
    if (address % INSTRUCTION_BYTES || (is_after_call && is_last_call(module, address)))
        return false;
    struct search *search = calloc(1, sizeof *search);
    if (!search)
        return false;
    search->module = module;
    search->instructions_left = INSTRUCTIONS_MAX;
    struct path path = {.address = address, .values = values_begin()};
    if (is_after_call)
        path.values.link = unknown_value;
    add_path(search, &path, address);
    while (search->path_count && search->instructions_left && !search->has_contradiction) {
        path = search->paths[--search->path_count];
        follow_path(search, &path);
    }
    bool is_certain = search->has_found && !search->has_contradiction;
    if (is_certain)
        *ret_return = search->found;
    free(search);
    return is_certain;
}
