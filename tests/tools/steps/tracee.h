/* A program that is stepped through with ptrace: only its first thread. */
#ifndef FGPROF_STEPS_TRACEE_H
#define FGPROF_STEPS_TRACEE_H

#include "observe/registers.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tracee {
    pid_t pid;
    int signal; /* it is stopped for this signal, and gets it when it continues; 0: none */
};

enum tracee_event {
    TRACEE_STEPPED, /* executed an instruction, or entered a signal handler */
    TRACEE_SIGNAL,  /* a signal came, and it is where it was or where its instruction led */
    TRACEE_ENDED,   /* it has exited, or executes another program */
};

/* Starts a program, which is stopped at its first instruction: the dynamic linker's, if there is
 * one. Returns 0 or a negative errno. */
int tracee_start(char **command, struct tracee *ret_tracee);

/* Runs up to the program's own first instruction. */
enum tracee_event tracee_run_to_entry(struct tracee *tracee);

/* Runs for that long. */
enum tracee_event tracee_run(struct tracee *tracee, unsigned milliseconds);

enum tracee_event tracee_step(struct tracee *tracee);

/* Reads its registers. Returns 0 or a negative errno. */
int tracee_registers(const struct tracee *tracee, struct registers *ret_registers);

/* Kills it, if it still exists. */
void tracee_end(struct tracee *tracee);

#endif
