/* A file that is written completely or not at all: it gets its name when it is complete. Until then
 * it has none or, if the file system has no unnamed files, a temporary one in the same directory.
 * Standard output and devices are written directly. */
#ifndef FGPROF_CLI_OUTPUT_FILE_H
#define FGPROF_CLI_OUTPUT_FILE_H

struct output_file {
    int fd;
    char *path;      /* its final path; NULL: fd is written directly */
    char *temporary; /* its path until then; NULL: it has no name */
};

/* The name for `path` in messages. */
const char *output_file_name(const char *path);

/* Opens `path` for writing, "-" for standard output. Returns 0 or a negative errno. */
int output_file_open(struct output_file *file, const char *path);

/* Creates `path`, or replaces what is there, even if it is a symbolic link: none is followed.
 * Returns 0 or a negative errno. */
int output_file_create(struct output_file *file, const char *path);

/* Gives a file that is not committed yet another name in the same directory. Returns 0, -ENOMEM, or
 * -EINVAL if the file is written directly. */
int output_file_rename(struct output_file *file, const char *name);

/* Moves the written file to its final path. Returns 0 or a negative errno; after an error, the file
 * that was there before is unchanged. */
int output_file_commit(struct output_file *file);

/* Removes the temporary file, which restores the state before output_file_open. Harmless after
 * output_file_commit. */
void output_file_abandon(struct output_file *file);

#endif
