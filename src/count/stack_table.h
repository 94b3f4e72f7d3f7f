/* Counts stacks while sampling.
 *
 * Three tables. Processes: id and name. Their rows keep their numbers, but may be reused for
 * another process. Stacks: address space, addresses (leaf first), and how the stack was cut; each
 * distinct stack occurs once. Samples: stack, labels (which thread it was, and what the thread was
 * doing), and what was counted: ticks, sleeps, nanoseconds, and two figures from which elapsed time
 * is computed (count/elapsed.h).
 *
 * Stacks and samples can be forgotten: the others then get new numbers, and keep their order. */
#ifndef FGPROF_COUNT_STACK_TABLE_H
#define FGPROF_COUNT_STACK_TABLE_H

#include "base/index.h"
#include "base/renumber.h"
#include "proc/thread_state.h"
#include "unwind/stack.h"

#include <sys/types.h>

struct counted_process {
    uint32_t number; /* in the order in which they were added, from 0 */
    uint32_t pid;    /* 0: of all that have ended and had this name */
    uint32_t name;   /* in the recording's strings: the last name of its first thread */
    bool is_free;    /* nothing refers to the row: the next process takes it */
};
#define PROCESS_NONE UINT32_MAX

#define NO_SPACE UINT32_MAX /* the space of a stack that was not captured, or is not kept */

struct counted_stack {
    uint32_t space;
    uint32_t cut;         /* enum stack_cut */
    size_t first_address; /* in stack_table.addresses */
    size_t depth;
};

/* Whose time it is. */
enum task_kind {
    TASK_THREAD,
    TASK_GOROUTINE, /* which is parked */
    TASK_PYTHON,    /* a task of asyncio, which is suspended */
    TASK_NONE,      /* a thread that had no goroutine to run: it is not shown */
};

/* What distinguishes samples of one stack. All fields have 32 bits, so that labels can be compared
 * as bytes. */
struct sample_labels {
    uint32_t thread_name;      /* in the recording's strings */
    uint32_t tid;              /* or the id of a task; 0: threads are not distinguished */
    uint32_t goroutine;        /* that the thread runs, by its id; 0: none, or not known */
    uint32_t state;            /* enum thread_state */
    int32_t syscall_number;    /* of the call that the thread waits in; -1: none */
    uint32_t wait_channel;     /* in the recording's strings; "": not known */
    uint32_t kernel_stack;     /* the kernel functions of the stack, as from kernel_stack_parse, in
                                  the recording's strings; "": not known */
    uint32_t process;          /* in stack_table.processes */
    uint32_t wait_plus_1;      /* the row of struct waits that it waits for; 0: not known */
    uint32_t label_set_plus_1; /* in the recording's label sets; 0: it has no labels */
    uint32_t has_ended;        /* 1: it is of threads or processes that have ended: see
                                  stack_table_join_ended */
    uint32_t task;             /* enum task_kind */
    uint32_t wait_reason;      /* of a goroutine, in the recording's strings; "": none */
    uint32_t aside; /* it is not to be shown, at least not yet: see worker/spans.h; 0: it is */
};
/* The id of the thread that a sample is of; 0: threads are not distinguished, or it is of a task,
 * whose id may be that of a thread, too. */
static inline uint32_t sample_labels_thread(const struct sample_labels *labels)
{
    return labels->task == TASK_GOROUTINE || labels->task == TASK_PYTHON ? 0 : labels->tid;
}

/* sample_labels.aside of a sample that is never shown; other numbers are small. */
#define ASIDE_FOR_GOOD UINT32_MAX

struct counted_sample {
    uint32_t stack;
    struct sample_labels labels;
    uint32_t epoch;         /* the table's, when it was last counted */
    uint32_t next_aside;    /* in the list of stack_table.asides; 0: it is in none */
    uint32_t joined_plus_1; /* everything in it was moved to this row, and it may be in use again:
                               stack_table_join_ended, stack_table_move; 0: it was not */
    uint64_t serial; /* never changes, even when rows are forgotten: greater than that of the row
                        before */
    uint64_t sleeps; /* that began here: an estimate, and no more than fit */
    uint64_t count;  /* ticks */
    uint64_t time_ns;
    uint64_t part_ns;    /* while awake, the thread's part of its process's time */
    double waited_ticks; /* that found no thread awake, and this wait */
};

struct stack_table {
    struct counted_process *processes;
    size_t process_count, process_capacity;
    uint32_t processes_added; /* ever */
    uint32_t first_free;      /* no row before it is free */
    size_t free_process_count;
    struct index process_index;
    uint64_t *addresses;
    size_t address_count, address_capacity;
    struct counted_stack *stacks;
    size_t stack_count, stack_capacity;
    struct index stack_index;
    bool is_full; /* set by the owner: stacks that are not there yet are all one */
    struct counted_sample *samples;
    size_t sample_count, sample_capacity;
    struct index sample_index;
    uint32_t *asides; /* by sample_labels.aside: a list of the samples that were counted */
    size_t aside_capacity;
    uint64_t samples_added; /* ever */
    uint32_t epoch;         /* raised by the owner, to mark everything counted from then on */
    uint32_t times_renumbered;
};

/* Adds a process in a new row, because an id may be reused. Returns 0 or -ENOMEM. */
int stack_table_add_process(struct stack_table *table, pid_t pid, uint32_t name,
                            uint32_t *ret_process);

/* The row of the process that was added with this number; PROCESS_NONE: it has none any more. */
uint32_t stack_table_find_process(const struct stack_table *table, uint32_t number);

/* Frees these rows. */
void stack_table_free_processes(struct stack_table *table, const struct renumber *rows);

/* Finds the equal stack, or adds it; if the table is full, uses a stack that is cut before its
 * first frame (STACK_CUT_NOT_KEPT). Returns 0 or -ENOMEM. */
int stack_table_add_stack(struct stack_table *table, uint32_t space, const struct stack *stack,
                          uint32_t *ret_stack);

/* Counts `count` ticks and `time_ns` for a stack, and sets *ret_sample to its sample. Returns 0 or
 * -ENOMEM, and then nothing is counted. */
int stack_table_add(struct stack_table *table, uint32_t space, const struct stack *stack,
                    const struct sample_labels *labels, uint64_t count, uint64_t time_ns,
                    uint32_t *ret_sample);

/* Finds the sample that differs from `sample` only in the thread's state (and, if that is no wait,
 * has no labels of a wait), or adds it with a count of 0. Returns 0 or -ENOMEM. */
int stack_table_in_state(struct stack_table *table, uint32_t sample, enum thread_state state,
                         uint32_t *ret_sample);

/* The same for a sample that differs only in what the thread waits for. */
int stack_table_in_wait(struct stack_table *table, uint32_t sample, uint32_t wait_plus_1,
                        uint32_t *ret_sample);

/* The same for a sample that differs only in what it is set aside for. */
int stack_table_aside(struct stack_table *table, uint32_t sample, uint32_t aside,
                      uint32_t *ret_sample);

/* Moves everything counted for the sample to a row for ended threads, with this stack and otherwise
 * these labels, and notes which row that is. Returns 0, or -ENOMEM, and then nothing is moved. */
int stack_table_join_ended(struct stack_table *table, uint32_t sample, uint32_t stack,
                           const struct sample_labels *labels);

/* Whether it is set aside for a while. */
static inline bool counted_sample_is_aside(const struct counted_sample *sample)
{
    return sample->labels.aside && sample->labels.aside != ASIDE_FOR_GOOD;
}

/* Forgets all that was counted for the sample; and whether that is nothing. */
void counted_sample_empty(struct counted_sample *sample);
bool counted_sample_is_empty(const struct counted_sample *sample);

/* Takes a sample that is set aside with that number and was counted since the last call. Returns
 * false if there is none. */
bool stack_table_take_aside(struct stack_table *table, uint32_t aside, uint32_t *ret_sample);

void stack_table_count(struct stack_table *table, uint32_t sample, uint64_t count, uint64_t time_ns,
                       uint64_t part_ns);

/* Moves what was counted for a sample to another one, as far as it has that much. */
void stack_table_move(struct stack_table *table, uint32_t from, uint32_t to, uint64_t count,
                      uint64_t time_ns, uint64_t part_ns);

/* Count sleeps that began there, or take some back. */
void stack_table_count_sleeps(struct stack_table *table, uint32_t sample, uint64_t sleeps);
void stack_table_take_sleeps(struct stack_table *table, uint32_t sample, uint64_t sleeps);

/* Counts ticks at which no thread was awake. */
void stack_table_count_waited(struct stack_table *table, uint32_t sample, double ticks);

/* Keeps only these stacks and samples, and renumbers them, the waits that their labels refer to,
 * and their label sets. Each sample's stack must be kept. */
void stack_table_keep(struct stack_table *table, const struct renumber *stacks,
                      const struct renumber *samples, const struct renumber *waits,
                      const struct renumber *label_sets);

size_t stack_table_bytes(const struct stack_table *table);

void stack_table_free(struct stack_table *table);

#endif
