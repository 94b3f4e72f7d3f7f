/* Whether a trigger fires, poll by poll. */
#ifndef FGPROF_CLI_RECORD_JUDGE_H
#define FGPROF_CLI_RECORD_JUDGE_H

#include "cli/record/trigger.h"
#include "fgprof.h"

#include <stdio.h>

/* What a poll sees. */
struct evidence {
    const fgprof_profile *profile; /* of the last seconds; NULL: there is none */
    uint64_t since_ns;             /* how long ago the last poll was */
    bool has_rates;                /* of about the last second: */
    double cpu_percent;            /* of one CPU */
    double wanted_percent;         /* the same with the waits for CPUs */
    double runnable_percent;       /* waits for CPUs, of that */
    bool has_ended;                /* the processes have */
    /* Whether the shell's command exits with 0. It is only called if all else holds. */
    bool (*command)(const char *command, void *context);
    void *context;
};

/* A time of a thread that a file was written for, or is about to be. */
struct judged_span {
    pid_t tid;
    unsigned missed; /* at how many of the last polls it was not seen */
    uint64_t end_ns; /* since 1970 */
};

struct judged_spans {
    struct judged_span *items;
    size_t count, capacity;
};

/* What is remembered of a condition. Zeroed at first. */
struct judged_condition {
    struct judged_spans told;  /* files were written for these, and they may go on */
    struct judged_spans found; /* new ones, at this poll */
    uint64_t deadlocks_told, deadlocks;
};

struct judge {
    const struct trigger *trigger;
    struct judged_condition *conditions; /* one for each of the trigger's */
};

/* Returns 0 or -ENOMEM. */
int judge_init(struct judge *judge, const struct trigger *trigger);
void judge_free(struct judge *judge);

/* Whether all conditions hold. If so, writes the reason to `reason`. Call this at each poll: a
 * continuing stall of a thread is recognized by being seen at each. */
bool judge_holds(struct judge *judge, const struct evidence *evidence, FILE *reason);

/* A file was written for what held at this poll: that does not fire again. */
void judge_tell(struct judge *judge);

/* Another recording begins: nothing of it is known. */
void judge_forget(struct judge *judge);

#endif
