/* /proc/PID/maps, a line at a time. */
#ifndef FGPROF_PROC_MAPS_H
#define FGPROF_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* One line, as
 *   7f12a1e00000-7f12a1f55000 r-xp 00026000 fe:01 2097 /usr/lib/libc.so.6 (deleted)
 */
struct maps_entry {
    uint64_t start, end; /* 7f12a1e00000, 7f12a1f55000 */
    bool readable;       /* the r of r-xp */
    bool executable;     /* the x of r-xp */
    uint64_t offset;     /* 00026000: of the file, in bytes */
    unsigned dev_major;  /* fe */
    unsigned dev_minor;  /* 01 */
    uint64_t inode;      /* 2097; 0: no file */
    const char *path;    /* "/usr/lib/libc.so.6", "[vdso]", "": points into the line */
    bool deleted;        /* the kernel's " (deleted)", which it takes off the path */
};

/* Parses `line`, without its line feed, which it changes: the path is unescaped in place. Returns
 * false where it is no such line. */
bool maps_parse_line(char *line, struct maps_entry *ret_entry);

/* Whether a link of /proc to the file of the entry may read `path`: of a file that was deleted or
 * replaced it says so behind the path, as maps does. */
bool maps_entry_is_at(const struct maps_entry *entry, const char *path);

typedef int maps_visit_fn(void *context, const struct maps_entry *entry);

/* Reads the maps file `fd` from its start and calls `visit` for each line, as long as that returns
 * 0. Returns what the last visit did, or a negative errno. A process that has exited or executed
 * another program since `fd` was opened has no lines. */
int maps_read(int fd, maps_visit_fn *visit, void *context);

#endif
