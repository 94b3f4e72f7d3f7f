#include "wait/peers.h"
#include "base/array.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

int peers_add_process(struct peers *peers, pid_t process_id, int proc_fd)
{
    return open_files_add(&peers->files, process_id, proc_fd);
}

void peers_finish(struct peers *peers)
{
    open_files_sort(&peers->files);
}

void peers_forget_processes(struct peers *peers)
{
    open_files_free(&peers->files);
}

void peers_forget_sockets(struct peers *peers)
{
    for (size_t i = 0; i < peers->namespace_count; i++)
        sockets_free(&peers->namespaces[i].sockets);
    peers->namespace_count = 0;
}

void peers_free(struct peers *peers)
{
    peers_forget_processes(peers);
    peers_forget_sockets(peers);
    file_locks_free(&peers->locks);
    free(peers->namespaces);
    *peers = (struct peers){0};
}

int peers_read_locks(struct peers *peers)
{
    file_locks_free(&peers->locks);
    peers->has_locks = true;
    return file_locks_read(&peers->locks) == -ENOMEM ? -ENOMEM : 0;
}

/* The sockets of the process's network namespace. Returns 0, -ENOENT or -ENOMEM. */
static int sockets_of(struct peers *peers, int proc_fd, const struct sockets **ret_sockets)
{
    struct namespace_sockets new = {0};
    ssize_t length = readlinkat(proc_fd, "ns/net", new.name, sizeof new.name - 1);
    if (length < 0)
        return -ENOENT;
    for (size_t i = 0; i < peers->namespace_count; i++) {
        if (strcmp(peers->namespaces[i].name, new.name) == 0) {
            *ret_sockets = &peers->namespaces[i].sockets;
            return 0;
        }
    }
    if (array_reserve(&peers->namespaces, &peers->namespace_capacity, peers->namespace_count + 1))
        return -ENOMEM;
    int err = sockets_read(&new.sockets, proc_fd);
    if (err) {
        sockets_free(&new.sockets);
        return err;
    }
    peers->namespaces[peers->namespace_count] = new;
    *ret_sockets = &peers->namespaces[peers->namespace_count++].sockets;
    return 0;
}

/* A line that the name of a Unix socket forges in the kernel's table (see sockets_finish) may claim
 * the inode of a socket that is in no table, such as a netlink socket. The kernel has the name of
 * a socket's protocol as an attribute (sockfs_xattr_get in its net/socket.c): "UNIX", and later
 * "UNIX-STREAM" for stream sockets. */
static bool may_be_unix(const struct waited_file *file)
{
    char path[64], protocol[32] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d/fd/%d", file->proc_fd, file->fd);
    return getxattr(path, "system.sockprotoname", protocol, sizeof protocol) < 0 ||
           text_begins(protocol, "UNIX");
}

static int find_socket(struct peers *peers, const struct waited_file *file,
                       struct peer_answer *answer)
{
    const struct sockets *sockets;
    int err = sockets_of(peers, file->proc_fd, &sockets);
    if (err)
        return err == -ENOENT ? 0 : err;
    const struct socket *socket = sockets_find(sockets, answer->resource.key);
    if (!socket || (socket->protocol == SOCKET_UNIX && !may_be_unix(file)))
        return 0;
    answer->is_known = true;
    answer->resource.kind = socket_resource_kind(socket);
    socket_text(socket, answer->text);
    sockets_service(sockets, socket, answer->service);
    const struct socket *peer = sockets_peer(sockets, socket);
    if (!peer)
        return 0;
    const struct resource wanted = {.kind = RESOURCE_SOCKET, .key = peer->inode};
    answer->process_id = open_files_process(&peers->files, &wanted, NULL);
    return 0;
}

static bool is_readable(const struct descriptor_info *info)
{
    return info->is_readable;
}

static bool is_writable(const struct descriptor_info *info)
{
    return info->is_writable;
}

/* A reader waits for a process that can write, a writer for one that can read. */
static pid_t other_end_of_pipe(const struct peers *peers, const struct resource *resource,
                               enum file_use use)
{
    switch (use) {
    case FILE_USE_READ:
        return open_files_process(&peers->files, resource, is_writable);
    case FILE_USE_WRITE:
        return open_files_process(&peers->files, resource, is_readable);
    default:
        return 0;
    }
}

/* Reads the file's attributes without opening it or asking a remote server. */
static bool look_at(const struct waited_file *file, struct statx *ret_status)
{
    char path[32];
    snprintf(path, sizeof path, "fd/%d", file->fd);
    return !file->is_uninterruptible &&
           statx(file->proc_fd, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, ret_status) == 0;
}

static bool is_fifo(const struct waited_file *file)
{
    struct statx status;
    return look_at(file, &status) && S_ISFIFO(status.stx_mode);
}

static void find_in_file(const struct peers *peers, const struct waited_file *file,
                         struct peer_answer *answer)
{
    if ((file->use != FILE_USE_READ && file->use != FILE_USE_WRITE) || *file->link != '/' ||
        !is_fifo(file))
        return;
    answer->process_id = other_end_of_pipe(peers, &answer->resource, file->use);
    answer->resource.kind = RESOURCE_FIFO;
}

static bool owns_flock(const struct descriptor_info *info)
{
    return info->locks & 1u << FILE_USE_FLOCK;
}

static bool owns_ofd_lock(const struct descriptor_info *info)
{
    return info->locks & 1u << FILE_USE_OFD_LOCK;
}

/* The process that took a lock of an open file description may have exited since, and passed the
 * descriptor on. A lock taken by fcntl(F_OFD_SETLK) has no process at all. */
static pid_t holder_of(const struct peers *peers, const struct waited_file *file,
                       const struct resource *resource, uint64_t inode)
{
    char path[32];
    pid_t holder = file_locks_holder(&peers->locks, file->use, inode, file->process_id);
    snprintf(path, sizeof path, "/proc/%d", holder);
    if (holder && (file->use == FILE_USE_POSIX_LOCK || access(path, F_OK) == 0))
        return holder;
    return file->use == FILE_USE_POSIX_LOCK
               ? 0
               : open_files_process(&peers->files, resource,
                                    file->use == FILE_USE_FLOCK ? owns_flock : owns_ofd_lock);
}

static int find_lock(struct peers *peers, const struct waited_file *file,
                     struct peer_answer *answer)
{
    struct descriptor_info info;
    struct statx status;
    struct resource open_file = answer->resource;
    answer->resource.kind = RESOURCE_FILE_LOCK;
    if (!peers->has_locks && peers_read_locks(peers))
        return -ENOMEM;
    if (descriptor_info_read(file->proc_fd, file->fd, &info))
        return 0;
    if (!info.inode && look_at(file, &status))
        info.inode = status.stx_ino;
    if (!info.inode)
        return 0;
    answer->process_id = holder_of(peers, file, &open_file, info.inode);
    return 0;
}

int peers_find(struct peers *peers, const struct waited_file *file, struct peer_answer *ret_answer)
{
    *ret_answer = (struct peer_answer){
        .resource = resource_of_link(file->link, file->process_id, file->fd),
        .is_known = true,
    };
    if (file->use >= FILE_USE_FLOCK)
        return find_lock(peers, file, ret_answer);
    switch (ret_answer->resource.kind) {
    case RESOURCE_SOCKET:
        ret_answer->is_known = false;
        return find_socket(peers, file, ret_answer);
    case RESOURCE_PIPE:
        ret_answer->is_known = open_files_have(&peers->files, &ret_answer->resource);
        ret_answer->process_id = other_end_of_pipe(peers, &ret_answer->resource, file->use);
        return 0;
    case RESOURCE_FILE:
        find_in_file(peers, file, ret_answer);
        return 0;
    default:
        return 0;
    }
}
