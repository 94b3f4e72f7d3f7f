/* A dump: the stack of each thread, once, and what it waits for. */
#ifndef FGPROF_PROFILE_DUMP_H
#define FGPROF_PROFILE_DUMP_H

#include "profile/profile.h"
#include "wait/facts.h"
#include "wait/lock.h"

struct dump_thread {
    const struct profile_sample *sample;
    const struct wait_facts *facts;
    struct lock lock;   /* where it waits for a futex */
    size_t owner;       /* the thread that holds that, or is to end: its number; or DUMP_NOBODY */
    bool is_owner_gone; /* it is a thread that the process does not have any more */
    size_t deadlock;    /* the number of the deadlock that it is in, from 1; 0: none */
};

#define DUMP_NOBODY SIZE_MAX

struct fgprof_dump {
    struct fgprof_profile *profile; /* by thread id, with one sample for each thread */
    struct wait_list waits;
    struct dump_thread *threads; /* by process, then by id */
    size_t thread_count;
    size_t deadlock_count;
};

/* Once the profile and the facts are there: puts them together. Returns 0 or -ENOMEM. */
int dump_complete(struct fgprof_dump *dump);

/* Takes NULL. */
void dump_free(struct fgprof_dump *dump);

#endif
