/* Opens the file behind a mapping: that very file, and not one that has its path by now. */
#ifndef FGPROF_MAPPING_MAPPED_FILE_H
#define FGPROF_MAPPING_MAPPED_FILE_H

#include <sys/types.h>

struct maps_entry;

/* For the mapping `entry` of thread `tid` of the process whose /proc directory is `proc_fd`.
 * Returns a descriptor, or
 *   -ENOENT  it has been deleted, and may not be had otherwise
 *   -ESTALE  another file is at its path
 *   -ENXIO   it is no regular file
 *   -EMFILE  as many files are open as may be, but for a reserve that the rest of us needs
 * or another negative errno. */
int mapped_file_open(int proc_fd, pid_t tid, const struct maps_entry *entry);

#endif
