#include "cli/push/labels.h"
#include "base/procfs_file.h"
#include "base/utf8.h"

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

/* The id of the container that the process is in. */
static bool container_id_of(pid_t pid, char ret_id[CONTAINER_ID_LENGTH + 1])
{
    char path[32], text[CGROUP_BYTES_MAX];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    return procfs_read(AT_FDCWD, path, text, sizeof text) >= 0 && container_id_in(text, ret_id);
}

void label_clean(const char *text, char *to, size_t to_bytes)
{
    size_t used = 0;
    while (*text) {
        size_t length = utf8_printable_bytes(text);
        if (used + (length ? length : 1) >= to_bytes)
            break;
        if (length)
            memcpy(to + used, text, length);
        else
            to[used] = '?';
        used += length ? length : 1;
        text += length ? length : 1;
    }
    to[used] = '\0';
}

static void add(struct labels *labels, const char *name, const char *value)
{
    if (*value)
        labels->items[labels->count++] = (struct label){name, value};
}

void labels_make(const struct push_options *options, pid_t pid, const char *name, bool has_others,
                 struct labels *ret_labels)
{
    struct labels *labels = ret_labels;
    char host[LABEL_TEXT_BYTES] = "";
    *labels = (struct labels){.count = 0};
    label_clean(options->service ? options->service : name, labels->service,
                sizeof labels->service);
    if (!*labels->service)
        strcpy(labels->service, "unknown_service"); /* OpenTelemetry's word for it */
    gethostname(host, sizeof host - 1);
    label_clean(host, labels->host, sizeof labels->host);
    if (!container_id_of(pid, labels->container))
        *labels->container = '\0';
    add(labels, "service.name", labels->service);
    add(labels, "host.name", labels->host);
    add(labels, "container.id", labels->container);
    if (!has_others) {
        label_clean(name, labels->process, sizeof labels->process);
        snprintf(labels->pid, sizeof labels->pid, "%d", (int)pid);
        add(labels, "process.executable.name", labels->process);
        add(labels, "process.pid", labels->pid);
    }
    for (size_t i = 0; i < options->tag_count; i++)
        add(labels, options->tags[i].key, options->tags[i].value);
}
