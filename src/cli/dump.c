#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/select_pids.h"
#include "cli/run_recorder.h"
#include "cli/say.h"

#include <string.h>

static bool write_dump(const struct cli_options *options, const fgprof_dump *dump,
                       struct output_file *file)
{
    bool has_threads = fgprof_dump_threads(dump) > 0;
    int err = has_threads ? fgprof_dump_write(dump, options->dump_format, file->fd) : 0;
    if (!err && has_threads)
        err = output_file_commit(file);
    if (!has_threads)
        say("no thread to dump: the process has exited");
    if (err)
        say("%s can't be written: %s", output_file_name(options->output), strerror(-err));
    return !err && has_threads;
}

static int dump(const struct cli_options *options, fgprof_recorder *recorder,
                struct output_file *file)
{
    fgprof_dump *dump;
    if (!select_pids(options, recorder))
        return EXIT_NOT_WRITTEN;
    int err = fgprof_recorder_dump(recorder, &dump);
    if (err) {
        say("the dump failed: %s", strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    bool written = write_dump(options, dump, file);
    fgprof_dump_free(dump);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}

int command_dump(const struct cli_options *options)
{
    return record_to_output(options, dump, EXIT_NOT_WRITTEN);
}
