#include "wait/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read of one table: some hundred thousand sockets. Those beyond are not found. */
#define TABLE_BYTES_MAX (64u << 20)
#define LINE_BYTES 512

#define STATE_LISTEN 0x0a /* TCP_LISTEN of the kernel's include/net/tcp_states.h */

/* Takes the hex digits of one or four 32-bit words, each as it lies in this machine's memory
 * (get_tcp4_sock, get_tcp6_sock in the kernel's net/ipv4/tcp_ipv4.c and ipv6/tcp_ipv6.c). */
static bool append_address(char *text, size_t text_bytes, const char *hex, unsigned port)
{
    uint32_t words[4];
    size_t digits = strlen(hex);
    char address[INET6_ADDRSTRLEN];
    if (digits != 8 && digits != 32)
        return false;
    for (size_t i = 0; i < digits / 8; i++) {
        if (sscanf(hex + 8 * i, "%8" SCNx32, &words[i]) != 1)
            return false;
    }
    bool is_six = digits == 32;
    if (!inet_ntop(is_six ? AF_INET6 : AF_INET, words, address, sizeof address))
        return false;
    size_t used = strlen(text);
    snprintf(text + used, text_bytes - used, is_six ? "[%s]:%u" : "%s:%u", address, port);
    return true;
}

bool socket_parse_inet(const char *protocol, const char *line, struct socket_text *ret_socket)
{
    char local[33], remote[33];
    unsigned local_port, remote_port, state;
    struct socket_text found = {0};
    int fields = sscanf(line,
                        " %*[0-9]: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*[0-9A-Fa-f]:%*x "
                        "%*x:%*x %*x %*u %*u %" SCNu64,
                        local, &local_port, remote, &remote_port, &state, &found.inode);
    if (fields != 6)
        return false;
    snprintf(found.text, sizeof found.text, "%s ", protocol);
    if (!append_address(found.text, sizeof found.text, local, local_port))
        return false;
    bool is_tcp = strncmp(protocol, "tcp", 3) == 0;
    if (is_tcp && state == STATE_LISTEN) {
        strcat(found.text, " listening");
    } else if (remote_port) {
        strcat(found.text, " -> ");
        if (!append_address(found.text, sizeof found.text, remote, remote_port))
            return false;
    }
    *ret_socket = found;
    return true;
}

bool socket_parse_unix(const char *line, struct socket_text *ret_socket)
{
    unsigned type;
    int path = 0;
    struct socket_text found = {0};
    if (sscanf(line, "%*[0-9A-Fa-f]: %*x %*x %*x %x %*x %" SCNu64 "%n", &type, &found.inode,
               &path) != 2 ||
        !path)
        return false;
    line += path;
    line += strspn(line, " ");
    snprintf(found.text, sizeof found.text, "unix %s%s%s",
             type == 1   ? "stream"
             : type == 2 ? "datagram"
                         : "seqpacket",
             *line ? " " : "", line);
    *ret_socket = found;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct socket_text *left = a, *right = b;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

/* Returns how many were found. */
static size_t find_in(FILE *table, const char *protocol, struct socket_text *sockets, size_t count)
{
    char line[LINE_BYTES];
    size_t found_count = 0, bytes = 0;
    while (bytes < TABLE_BYTES_MAX && found_count < count && fgets(line, sizeof line, table)) {
        struct socket_text found;
        bytes += strlen(line);
        line[strcspn(line, "\n")] = '\0';
        bool is_socket = strcmp(protocol, "unix") == 0 ? socket_parse_unix(line, &found)
                                                       : socket_parse_inet(protocol, line, &found);
        struct socket_text *wanted =
            is_socket ? bsearch(&found, sockets, count, sizeof *sockets, compare) : NULL;
        if (wanted && !*wanted->text) {
            *wanted = found;
            found_count++;
        }
    }
    return found_count;
}

void sockets_find(int proc_fd, struct socket_text *sockets, size_t count)
{
    static const char *const protocols[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
    size_t left = count;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols && left; i++) {
        char path[16];
        snprintf(path, sizeof path, "net/%s", protocols[i]);
        int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
        FILE *table = fd < 0 ? NULL : fdopen(fd, "r");
        if (table) {
            left -= find_in(table, protocols[i], sockets, count);
            fclose(table);
        } else if (fd >= 0) {
            close(fd);
        }
    }
}
