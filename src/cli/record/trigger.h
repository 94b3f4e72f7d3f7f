/* When a recorder writes a file by itself: the text of --trigger. */
#ifndef FGPROF_CLI_RECORD_TRIGGER_H
#define FGPROF_CLI_RECORD_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum condition_kind {
    CONDITION_SPAN,      /* a thread did one thing for this long: "any in f for 300ms" */
    CONDITION_RUNNABLE,  /* threads waited for CPUs this much: "runnable 20%" */
    CONDITION_CPU_ABOVE, /* the processes used this much of a CPU: "cpu above 180%" */
    CONDITION_CPU_BELOW,
    CONDITION_DEADLOCK, /* another one has been found: "deadlock" */
    CONDITION_EXIT,     /* the processes have ended: "exit" */
    CONDITION_COMMAND,  /* a shell's command exits with 0: "command CMD" */
};

/* Each kind uses some of these. */
struct condition {
    enum condition_kind kind;
    char *thread_name; /* an extended regular expression; NULL: any thread */
    char *function;    /* NULL: it is blocked, wherever that is */
    uint64_t least_ns;
    double percent;
    char *command;
};

/* It fires while all of its conditions hold. */
struct trigger {
    char *text;
    struct condition *conditions;
    size_t count;
};

struct trigger_error {
    size_t character; /* from 1 on */
    char wanted[160]; /* what should be there */
};

/* Reads a trigger:
 *
 *     CONDITION [and CONDITION]...
 *     thread NAME in FUNCTION for TIME    thread NAME blocked TIME
 *     any in FUNCTION for TIME            any blocked TIME
 *     runnable N%    cpu above N%    cpu below N%    deadlock    exit    command CMD
 *
 * NAME ends at the next word "in" or "blocked", FUNCTION at the next "for"; either may be in double
 * quotes. CMD is all the rest. Returns 0, -EINVAL with *ret_error filled in, or -ENOMEM. The caller
 * frees the trigger. */
int trigger_parse(const char *text, struct trigger *ret_trigger, struct trigger_error *ret_error);
void trigger_free(struct trigger *trigger);

/* Whether one of the triggers has a condition of one of these kinds, which are bits. */
bool triggers_have(const struct trigger *triggers, size_t count, unsigned kinds);

/* The longest time that one of its conditions covers. */
uint64_t trigger_needs_ns(const struct trigger *trigger);

#endif
