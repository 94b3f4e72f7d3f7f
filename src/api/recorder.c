/* The functions of fgprof.h for recorders: they choose processes and sample them. */
#include "recorder/recorder.h"
#include "proc/kernel_stack.h"
#include "sampler/processes.h"

#include <errno.h>

int fgprof_recorder_new(const fgprof_options *options, fgprof_recorder **ret_recorder)
{
    int err = options->sampler.has_kernel_stacks ? kernel_stack_check() : 0;
    return err ? err : recorder_new(options, ret_recorder);
}

void fgprof_recorder_free(fgprof_recorder *recorder)
{
    recorder_free(recorder);
}

int fgprof_recorder_attach(fgprof_recorder *recorder, pid_t pid)
{
    return processes_add(&recorder->sampler, pid);
}

bool fgprof_recorder_has_thread(const fgprof_recorder *recorder, pid_t tid)
{
    const struct sampler *sampler = &recorder->sampler;
    for (size_t i = 0; i < sampler->process_count; i++) {
        if (process_has_thread(&sampler->processes[i]->process, tid))
            return true;
    }
    return false;
}

const char *fgprof_recorder_kept_memory(const fgprof_recorder *recorder, size_t kind,
                                        uint64_t *ret_bytes)
{
    if (kind >= KEPT_KIND_COUNT)
        return NULL;
    *ret_bytes = recorder->worker ? worker_kept_bytes(recorder->worker, (enum kept_kind)kind) : 0;
    return kept_kind_name((enum kept_kind)kind);
}

void fgprof_recorder_stop(fgprof_recorder *recorder)
{
    sampler_stop(&recorder->sampler);
}

int fgprof_recorder_run(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    if (recorder->has_run)
        return -EALREADY;
    if (!recorder->sampler.process_count && !atomic_load(&recorder->child))
        return -ESRCH;
    recorder->has_run = true;
    int err = recorder_sample(recorder);
    return err ? err : recorder_profile(recorder, ret_profile);
}

int fgprof_recorder_profile_so_far(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    return recorder_profile_since(recorder, NULL, ret_profile);
}

int fgprof_recorder_moment(fgprof_recorder *recorder, fgprof_moment **ret_checkpoint)
{
    return recorder_checkpoint(recorder, ret_checkpoint);
}

int fgprof_recorder_profile_since(fgprof_recorder *recorder, const fgprof_moment *checkpoint,
                                  fgprof_profile **ret_profile)
{
    return recorder_profile_since(recorder, checkpoint, ret_profile);
}

int fgprof_recorder_profile_last(fgprof_recorder *recorder, uint64_t last_ns,
                                 fgprof_profile **ret_profile)
{
    return recorder_profile_last(recorder, last_ns, ret_profile);
}

int fgprof_recorder_profile_next(fgprof_recorder *recorder, fgprof_moment **checkpoint,
                                 fgprof_profile **ret_profile)
{
    return recorder_profile_next(recorder, checkpoint, ret_profile);
}

int fgprof_recorder_objects(fgprof_recorder *recorder, enum fgprof_kind kind, const char *name,
                            fgprof_profile **ret_profile)
{
    return recorder_objects(recorder, kind, name, ret_profile);
}

int fgprof_recorder_count_objects(fgprof_recorder *recorder, enum fgprof_kind kind,
                                  const char *name, uint64_t *ret_count)
{
    return recorder_count_objects(recorder, kind, name, ret_count);
}

int fgprof_recorder_check_objects(fgprof_recorder *recorder, enum fgprof_kind kind)
{
    return recorder_check_objects(recorder, kind);
}

void fgprof_moment_free(fgprof_moment *checkpoint)
{
    checkpoints_drop(checkpoint);
}
