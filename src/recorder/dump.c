/* The public dump: a recording of one round. */
#include "recorder/recorder.h"
#include "profile/dump.h"

#include <errno.h>
#include <stdlib.h>

int fgprof_recorder_dump(fgprof_recorder *recorder, fgprof_dump **ret_dump)
{
    fgprof_dump *dump = calloc(1, sizeof *dump);
    if (!dump)
        return -ENOMEM;
    recorder->options.sampling.threads = FGPROF_THREADS_BY_ID;
    recorder->recording.waits = &dump->waits;
    int err = fgprof_recorder_run(recorder, &dump->profile);
    recorder->recording.waits = NULL;
    if (!err)
        err = fgprof_profile_summary(dump->profile)->error;
    if (!err)
        err = dump_complete(dump);
    if (err) {
        fgprof_dump_free(dump);
        return err;
    }
    *ret_dump = dump;
    return 0;
}
