/* The files of a flight recorder, in one directory: each is written completely or not at all, and
 * the oldest are removed. They are named fgprof-NAME-PID-YYYYMMDDTHHMMSSZ.ENDING, with a number
 * before the ending if there are several in a second. */
#ifndef FGPROF_CLI_RECORD_FILES_H
#define FGPROF_CLI_RECORD_FILES_H

#include "fgprof.h"

#include <time.h>

struct files {
    const char *directory;
    enum fgprof_format format;
    size_t max;
    size_t written;       /* so far */
    time_t last_time;     /* in the name of the last one, */
    unsigned last_number; /* and its number there */
    int failure;          /* the errno that was last said, and not worked since; 0: none */
    bool has_kept;        /* said that an old file can't be removed */
};

/* Whether files can be written to the directory. If not, prints the reason on stderr. */
bool files_check(const char *directory);

/* Writes the profile of this process, and removes the oldest of all such files if there are more
 * than files->max, or a few of them while the disk is full. Prints what it did on stderr, and a
 * failure only if it differs from the last one. Returns whether the file was written. */
bool files_write(struct files *files, const fgprof_profile *profile, const char *process_name,
                 pid_t pid);

/* Parts of that, for tests. files_path returns the path of a file that does not exist yet; the
 * caller frees it. NULL: no memory. */
char *files_path(struct files *files, const char *process_name, pid_t pid, time_t now);
/* Removes the oldest files, but not `spared`, until there are at most files->max. Returns 0 or a
 * negative errno. */
int files_remove_oldest(const struct files *files, const char *spared);

#endif
