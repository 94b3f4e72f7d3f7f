/* Tokens and passwords, which are given in files: others can read a command line. */
#ifndef FGPROF_CLI_SECRET_FILE_H
#define FGPROF_CLI_SECRET_FILE_H

#define SECRET_BYTES 8192

/* Reads a whole file, which may be replaced at any time, without its final line ends, which editors
 * add. Returns NULL, or the reason why not. The caller erases the secret after use. */
const char *secret_file_read(const char *path, char ret_secret[SECRET_BYTES]);

/* Whether a header can hold it. Returns NULL, or the reason why not. */
const char *secret_check(const char *secret);

#endif
