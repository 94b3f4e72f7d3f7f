#include "cli/push/container.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_BYTES_MAX 65536

static bool is_hex(char letter)
{
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
}

bool container_id_in(const char *cgroup, char ret_id[CONTAINER_ID_LENGTH + 1])
{
    bool is_found = false;
    for (const char *at = cgroup; *at;) {
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
        size_t digits = 0;
        while (digits < length && is_hex(at[digits]))
            digits++;
        if (length == CONTAINER_ID_LENGTH && digits == length) {
            memcpy(ret_id, at, length);
            ret_id[length] = '\0';
            is_found = true;
        }
        at += length ? length : 1;
    }
    return is_found;
}

bool container_id_of(pid_t pid, char ret_id[CONTAINER_ID_LENGTH + 1])
{
    char path[32], text[CGROUP_BYTES_MAX];
    size_t length = 0;
    ssize_t got = 0;
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (length + 1 < sizeof text &&
           (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    text[length] = '\0';
    return container_id_in(text, ret_id);
}
