/* A file that is written whole or not at all: beside its place under another name, and put in place
 * when it is complete. Standard output and devices are written directly. */
#ifndef FGPROF_CLI_OUTPUT_FILE_H
#define FGPROF_CLI_OUTPUT_FILE_H

struct output_file {
    int fd;
    char *path;      /* where it is to be; NULL: fd is written directly */
    char *temporary; /* where it is until then */
};

/* What `path` is called in a message. */
const char *output_file_name(const char *path);

/* Opens `path` for writing, "-" for standard output. Returns 0 or a negative errno. */
int output_file_open(struct output_file *file, const char *path);

/* Puts what was written to file->fd in its place. Returns 0 or a negative errno, and then what was
 * there before is unharmed. */
int output_file_commit(struct output_file *file);

/* Leaves everything as it was before output_file_open. Harmless after output_file_commit. */
void output_file_abandon(struct output_file *file);

#endif
