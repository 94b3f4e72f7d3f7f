/* Opens the file behind a mapping: that very file, and not another one that now has its path. */
#ifndef FGPROF_MAPPING_MAPPED_FILE_H
#define FGPROF_MAPPING_MAPPED_FILE_H

#include <sys/types.h>

struct maps_entry;

/* Opens the file of the mapping `entry` of thread `tid` of the process whose /proc directory is
 * `proc_fd`. Returns a descriptor, or
 *   -ENOENT  it has been deleted, and can't be reached otherwise
 *   -ESTALE  another file is at its path
 *   -ENXIO   it is not a regular file
 *   -EMFILE  the open-file limit, less our reserve, is reached
 * or another negative errno. */
int mapped_file_open(int proc_fd, pid_t tid, const struct maps_entry *entry);

#endif
