/* Custom profiles, as a program's memory has them for fgprof-c: names, and each value with the
 * stack that added it, as long as it exists.
 *
 * It is a memfd of this name that the agent maps once, as a whole; its pages are allocated when
 * they are first used. fgprof-c finds it in /proc/PID/maps and reads it like other memory of the
 * process, so that no descriptor has to stay open in the program, and a copy can't change while it
 * is being read.
 *
 * After the header come slabs of VALUES_SLAB_BYTES. Each is divided into slots with room for a
 * stack of one class: 256 bytes, 512 and so on up to 16 KiB. A slot holds a value or is free. Its
 * `sequence` is odd while it changes, and raised by 2 with each change: a copy is consistent if it
 * was even, and the same before and after.
 *
 * Values beyond the last slab are counted in their profile, and have no slot. fgprof-c trusts
 * nothing in here. */
#ifndef FGPROF_AGENT_VALUES_FORMAT_H
#define FGPROF_AGENT_VALUES_FORMAT_H

#include "agent/format.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

#define VALUES_MEMFD "FGPROF-VALUES"
#define VALUES_MAGIC "FGPROFV" /* 8 bytes */
#define VALUES_VERSION 1       /* of this layout, with all sizes in it */
#define VALUES_PROFILES_MAX 1000u
#define VALUES_NAME_BYTES 64u /* with the NUL */
#define VALUES_SLAB_BYTES (256u << 10)
#define VALUES_SLABS_MAX 255u
#define VALUES_HEADER_BYTES VALUES_SLAB_BYTES
#define VALUES_BYTES_MAX (VALUES_HEADER_BYTES + VALUES_SLABS_MAX * VALUES_SLAB_BYTES)
#define VALUES_CLASSES 7u
#define VALUES_SLOT_ALIGNMENT 64u

struct values_profile {
    char name[VALUES_NAME_BYTES];
    _Atomic uint64_t count;
    _Atomic uint64_t without_slot; /* of these, those that have none */
};

struct values_slab {
    _Atomic uint32_t class_plus_1; /* 0: it has no slots yet */
    _Atomic uint32_t used;         /* slots behind these were never used */
};

struct values_header {
    char magic[8]; /* all 0 until the rest is written */
    uint32_t version;
    uint32_t pid;     /* in the program's own PID namespace */
    uint64_t bytes;   /* of the whole: a limit of the program's may make it smaller */
    char release[16]; /* of the agent, such as "0.1.0" */
    _Atomic uint32_t profile_count, slab_count;
    struct values_profile profiles[VALUES_PROFILES_MAX];
    struct values_slab slabs[VALUES_SLABS_MAX];
};

_Static_assert(sizeof(struct values_header) <= VALUES_HEADER_BYTES, "the header has room");

/* At a multiple of VALUES_SLOT_ALIGNMENT. */
struct values_slot {
    _Atomic uint32_t sequence;
    uint32_t profile_plus_1; /* 0: the slot is free */
    uint64_t value;
    uint32_t tid;         /* of the thread that added it, in the program's own PID namespace */
    uint32_t skip;        /* leaf frames to leave out, behind the agent's own, which is one */
    uint32_t stack_bytes; /* from the stack pointer on */
    uint32_t is_cut;      /* the stack continues after the copy */
    uint64_t next_free;   /* for the agent */
    uint64_t registers[AGENT_REGISTER_COUNT]; /* AGENT_REGISTERS; behind them the stack's bytes */
};

/* Whether a profile may have this name: a word of UTF-8 without control characters, so that it can
 * be in a line of text and in a URL's path. `name` ends in NUL. */
static inline bool values_name_is_valid(const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    size_t length = strlen(name), bytes;
    if (!length || length >= VALUES_NAME_BYTES)
        return false;
    for (; *at; at += bytes) {
        bool is_control = *at <= ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0); /* C0, C1 */
        bytes = utf8_bytes(at, length - (size_t)(at - (const unsigned char *)name));
        if (is_control || !bytes)
            return false;
    }
    return true;
}

static inline uint32_t values_class_stack_bytes(uint32_t size_class)
{
    return 256u << size_class;
}

static inline uint32_t values_class_slot_bytes(uint32_t size_class)
{
    uint32_t bytes = (uint32_t)sizeof(struct values_slot) + values_class_stack_bytes(size_class);
    return (bytes + VALUES_SLOT_ALIGNMENT - 1) & ~(VALUES_SLOT_ALIGNMENT - 1);
}

static inline uint32_t values_class_slots(uint32_t size_class)
{
    return VALUES_SLAB_BYTES / values_class_slot_bytes(size_class);
}

_Static_assert(AGENT_STACK_BYTES_MAX == 256u << (VALUES_CLASSES - 1), "any stack has a class");

#endif
