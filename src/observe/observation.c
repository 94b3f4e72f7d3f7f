#include "observe/observation.h"

void observation_release(struct observation *observation)
{
    program_release(observation->program);
    observation->program = NULL;
}

pid_t observation_live_tid(const struct observation *observation)
{
    const struct program *program = observation->program;
    struct proc_stat stat;
    int err = procfs_thread_stat(program->proc_fd, program->process_id, &stat);
    return err || proc_stat_has_exited(&stat) ? observation->tid : program->process_id;
}
