#include "cli/secret_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

_Static_assert(SECRET_BYTES == 8192, "the message names the limit");

const char *secret_file_read(const char *path, char ret_secret[SECRET_BYTES])
{
    size_t length = 0;
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "its file can't be read";
    while (length < SECRET_BYTES &&
           (got = read(fd, ret_secret + length, SECRET_BYTES - length)) > 0)
        length += (size_t)got;
    close(fd);
    if (got < 0)
        return "its file can't be read";
    while (length && (ret_secret[length - 1] == '\n' || ret_secret[length - 1] == '\r'))
        length--;
    if (length >= SECRET_BYTES)
        return "it is longer than 8191 bytes";
    ret_secret[length] = '\0';
    return strlen(ret_secret) == length ? NULL : "it has control characters";
}

const char *secret_check(const char *secret)
{
    if (!*secret)
        return "it is empty";
    for (const char *at = secret; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "it has control characters";
    }
    return NULL;
}
