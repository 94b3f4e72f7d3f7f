#include "cli/serve/listen.h"
#include "cli/options/values.h"
#include "cli/serve/address.h"
#include "cli/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define PORT_MAX 65535

static bool complain_of(const char *address, const char *why)
{
    return say("can't listen at %s: %s", address, why);
}

/* Whether a server that has ended left the socket behind. */
static bool is_left_behind(const struct sockaddr_un *name)
{
    struct stat status;
    if (lstat(name->sun_path, &status) || !S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_refused = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) &&
                      errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return is_refused;
}

static bool open_unix(const char *address, const char *path, bool allows_local_users,
                      struct listener *listener)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof name.sun_path)
        return complain_of(address, "give a path of at most 107 bytes");
    strcpy(name.sun_path, path);
    if (is_left_behind(&name))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t before = umask(allows_local_users ? 0111 : 0177);
    bool is_bound = fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof name) == 0;
    int error = errno;
    umask(before);
    if (is_bound && listen(fd, BACKLOG)) {
        error = errno;
        unlink(path);
        is_bound = false;
    }
    if (is_bound) {
        listener->fd = fd;
        listener->is_loopback = true;
        strcpy(listener->path, path);
        snprintf(listener->shown, sizeof listener->shown, "unix:%s", path);
        return true;
    }
    if (fd >= 0)
        close(fd);
    return complain_of(address, strerror(error));
}

static bool is_loopback(const struct sockaddr *name)
{
    in_port_t port;
    const struct in6_addr address = address_of(name, &port);
    return address_is_loopback(&address);
}

static int bind_and_listen(const struct addrinfo *found)
{
    int one = 1;
    int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

#define OTHERS_COULD_REACH_IT 1

/* Listens on the first of a name's addresses that is free. Returns 0, a negative errno, or
 * OTHERS_COULD_REACH_IT if none was tried. */
static int bind_first(const struct addrinfo *found, bool allows_remote, struct listener *listener)
{
    int err = OTHERS_COULD_REACH_IT;
    for (; found; found = found->ai_next) {
        if (!is_loopback(found->ai_addr) && !allows_remote)
            continue;
        listener->is_loopback = is_loopback(found->ai_addr);
        err = bind_and_listen(found);
        if (err < 0)
            continue;
        listener->fd = err;
        return 0;
    }
    return err;
}

/* Shows the port that the kernel chose, if 0 was given. */
static void show(struct listener *listener)
{
    struct sockaddr_storage name;
    socklen_t bytes = sizeof name;
    char port[16] = "";
    bool is_v6 = strchr(listener->host, ':');
    if (getsockname(listener->fd, (struct sockaddr *)&name, &bytes) == 0)
        getnameinfo((struct sockaddr *)&name, bytes, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    snprintf(listener->shown, sizeof listener->shown, "http://%s%s%s:%s/", is_v6 ? "[" : "",
             listener->host, is_v6 ? "]" : "", port);
}

static bool open_inet(const char *address, bool allows_remote, struct listener *listener)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    const char *port;
    uint64_t number;
    if (!host_parse(address, listener->host, sizeof listener->host, &port) || !port ||
        strchr(port, ':'))
        return complain_of(address, "give HOST:PORT, [IPV6]:PORT or unix:PATH");
    if (!number_parse(port, 0, PORT_MAX, &number))
        return complain_of(address, "the port is a number, 0 to 65535");
    int failure = getaddrinfo(listener->host, port, &hints, &found);
    if (failure)
        return complain_of(address, gai_strerror(failure));
    int err = bind_first(found, allows_remote, listener);
    freeaddrinfo(found);
    if (err == OTHERS_COULD_REACH_IT)
        return complain_of(address, "others could reach it: give a loopback address or unix:PATH, "
                                    "or --allow-remote with --token-file FILE");
    if (err == -EACCES)
        return complain_of(address, "permission denied: give a port from 1024 on, or run with "
                                    "CAP_NET_BIND_SERVICE");
    if (err)
        return complain_of(address, strerror(-err));
    show(listener);
    return true;
}

bool listener_open(const struct cli_options *options, struct listener *ret_listener)
{
    const char *address = options->listen;
    *ret_listener = (struct listener){.fd = -1};
    if (strncmp(address, "unix:", 5) == 0)
        return open_unix(address, address + 5, options->allows_local_users, ret_listener);
    return open_inet(address, options->allows_remote, ret_listener);
}

void listener_close(struct listener *listener)
{
    if (listener->fd >= 0)
        close(listener->fd);
    if (*listener->path)
        unlink(listener->path);
}

static bool parse_number(const char *host, bool *ret_is_loopback)
{
    struct in_addr v4;
    struct in6_addr address;
    bool is_v4 = inet_pton(AF_INET, host, &v4) == 1;
    bool is_number = is_v4 || inet_pton(AF_INET6, host, &address) == 1;
    if (is_v4)
        address = address_of_v4(v4);
    *ret_is_loopback =
        is_number ? address_is_loopback(&address) : strcasecmp(host, "localhost") == 0;
    return is_number;
}

bool listener_is_named(const struct listener *listener, const char *host_header)
{
    char host[256], machine[256] = "";
    const char *port;
    bool names_loopback;
    if (*listener->path)
        return true; /* no page can make a browser connect to it */
    if (!host_header || !host_parse(host_header, host, sizeof host, &port) ||
        (port && port[strspn(port, "0123456789")]))
        return false;
    bool is_numeric = parse_number(host, &names_loopback);
    if (names_loopback || strcasecmp(host, listener->host) == 0)
        return true;
    if (listener->is_loopback)
        return false;
    gethostname(machine, sizeof machine - 1);
    return is_numeric || strcasecmp(host, machine) == 0;
}
