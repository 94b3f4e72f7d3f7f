/* Reads /proc/PID/maps line by line. */
#ifndef FGPROF_PROC_MAPS_H
#define FGPROF_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* One line, such as
 *   7f12a1e00000-7f12a1f55000 r-xp 00026000 fe:01 2097 /usr/lib/libc.so.6 (deleted)
 */
struct maps_entry {
    uint64_t start, end; /* 7f12a1e00000, 7f12a1f55000 */
    bool readable;       /* the r of r-xp */
    bool writable;       /* rw-p has a w there */
    bool executable;     /* the x of r-xp */
    uint64_t offset;     /* 00026000: offset in the file, in bytes */
    unsigned dev_major;  /* fe */
    unsigned dev_minor;  /* 01 */
    uint64_t inode;      /* 2097; 0: no file */
    const char *path;    /* "/usr/lib/libc.so.6", "[vdso]", "": points into the line */
    bool deleted;        /* the kernel's " (deleted)", which is removed from the path */
};

/* Parses `line`, given without its line feed, and unescapes the path in place. Returns false if it
 * is not such a line. */
bool maps_parse_line(char *line, struct maps_entry *ret_entry);

/* Whether a /proc link to the entry's file may read `path`: such a link, like maps, marks a deleted
 * or replaced file after the path. */
bool maps_entry_is_at(const struct maps_entry *entry, const char *path);

typedef int maps_visit_fn(void *context, const struct maps_entry *entry);

/* Reads the maps file `fd` from its start and calls `visit` for each line, as long as it returns 0.
 * Returns what the last visit returned, or a negative errno. A process that has exited or executed
 * another program since `fd` was opened has no lines. */
int maps_read(int fd, maps_visit_fn *visit, void *context);

#endif
