/* Counts the objects of a recording: how many code made, and how many of them have gone since.
 *
 * Two tables. Makers: process, stack, kind, name, thread and size of the objects, and how many of
 * these were made and are gone. Objects: the live ones, by process, kind and key, with their maker
 * and how many objects each stands for; a row is removed when its object goes.
 *
 * Code that makes objects of any size would make a row for each. So once there are many rows, sizes
 * are rounded, by less than 1 %: then there are at most some thousand rows for each stack. */
#ifndef FGPROF_COUNT_OBJECTS_H
#define FGPROF_COUNT_OBJECTS_H

#include "base/index.h"
#include "base/renumber.h"

/* What made objects, and which. */
struct object_maker {
    uint32_t process; /* in stack_table.processes */
    uint32_t stack;   /* in stack_table.stacks */
    uint16_t kind;    /* the caller's */
    uint16_t origin;  /* the caller's */
    uint32_t name;    /* in the recording's strings; "": none */
    uint32_t tid;     /* 0: threads are not distinguished */
    uint32_t maker;   /* of a thread: the one that made it; 0: not known, or as tid */
    uint64_t bytes;   /* the size of each; 0: they have none */
};

struct counted_maker {
    struct object_maker maker;
    uint64_t made, gone; /* those that are gone are among those that were made */
    uint64_t kept;       /* how many were there at a moment: see objects_keep */
};

struct live_object {
    uint64_t key;
    uint32_t process;
    uint16_t kind, level;
    uint32_t maker_plus_1; /* 0: the slot is free */
    uint32_t weight;
};

/* A copy of an object's row. */
struct listed_object {
    uint64_t key, bytes;
    uint32_t weight;
    uint16_t level; /* the caller's: see objects_weigh */
};

#define OBJECT_KINDS_MAX 8u

/* Zeroed at first. */
struct objects {
    struct counted_maker *makers;
    size_t maker_count, maker_capacity;
    struct index maker_index;
    struct live_object *slots;                    /* open addressing with linear probing */
    size_t slot_count;                            /* a power of two, or 0 */
    size_t live_count, live_of[OBJECT_KINDS_MAX]; /* of all kinds, and of each */
    uint64_t lost[OBJECT_KINDS_MAX]; /* by kind: made when there were too many, and not counted */
};

/* Counts an object that stands for `weight`. Another object of its process and kind with the same
 * key counts as gone. Returns 0, even if there are too many, or -ENOMEM, and then nothing is
 * counted. */
int objects_made(struct objects *objects, const struct object_maker *maker, uint64_t key,
                 uint32_t weight);

/* The object's maker, if it is there; else NULL. Valid until the next call. */
const struct object_maker *objects_find(const struct objects *objects, uint32_t process,
                                        uint32_t kind, uint64_t key);

/* Moves an object to another maker. Returns 0 or -ENOMEM; then nothing has changed. */
int objects_move(struct objects *objects, uint64_t key, const struct object_maker *maker);

/* Gives an object a new key, which no other has. */
void objects_rekey(struct objects *objects, uint32_t process, uint32_t kind, uint64_t key,
                   uint64_t new_key);

/* The object is gone, if it was made while recording. */
void objects_gone(struct objects *objects, uint32_t process, uint32_t kind, uint64_t key);

/* All objects of the process and kind are gone. */
void objects_forget(struct objects *objects, uint32_t process, uint32_t kind);

/* The process's objects of this kind stay counted as they are. */
void objects_leave(struct objects *objects, uint32_t process, uint32_t kind);

/* Stores how many objects of the process and kind there are now. */
void objects_keep(struct objects *objects, uint32_t process, uint32_t kind);

/* Like objects_leave, with the number of objects at the last objects_keep. */
void objects_leave_kept(struct objects *objects, uint32_t process, uint32_t kind);

/* Changes the weight of an object, if it is live. `level`: see struct listed_object; 0 for a new
 * object. */
void objects_weigh(struct objects *objects, uint32_t process, uint32_t kind, uint64_t key,
                   uint32_t weight, unsigned level);

/* Lists the live objects of the process and kind by ascending key. *items is reallocated as needed.
 * Returns 0 or -ENOMEM. */
int objects_list(const struct objects *objects, uint32_t process, uint32_t kind,
                 struct listed_object **items, size_t *capacity, size_t *ret_count);

/* Changes a maker, before its row is put into the table again. */
typedef void objects_rewrite_fn(void *context, struct objects *objects, size_t number,
                                struct counted_maker *row);

/* Changes all makers, and merges those that become equal. Makers that made nothing are dropped. A
 * maker with live objects must keep its process and kind. Returns 0, or -ENOMEM, and then nothing
 * has changed. */
int objects_rewrite(struct objects *objects, objects_rewrite_fn *rewrite, void *context);

/* Merges the rows of this kind whose objects are all gone, except those in `stay`: they lose their
 * ids, and beyond `names_max` rows their names become `other`. Rows that made nothing are dropped.
 * Returns 0, or -ENOMEM, and then nothing has changed. */
int objects_join_gone(struct objects *objects, uint32_t kind, const struct renumber *stay,
                      size_t names_max, uint32_t other);

/* Renumbers stacks and names; those of makers were all kept. */
void objects_renumber(struct objects *objects, const struct renumber *stacks,
                      const struct renumber *names);

size_t objects_table_bytes(const struct objects *objects);

/* Copies the makers. `to` may hold an earlier copy. Returns 0 or -ENOMEM. */
int objects_copy(const struct objects *objects, struct objects *to);

void objects_free(struct objects *objects);

#endif
