/* What a profile is pushed with: the service's name, host, process, container and tags. */
#ifndef FGPROF_CLI_PUSH_LABELS_H
#define FGPROF_CLI_PUSH_LABELS_H

#include "cli/options/push.h"

#include <stdbool.h>
#include <sys/types.h>

#define CONTAINER_ID_LENGTH 64
#define LABEL_TEXT_BYTES 256 /* of a name of a process or a host */

struct label {
    const char *name, *value;
};

/* The names are those of OpenTelemetry's semantic conventions: "service.name". */
#define PUSH_LABELS_MAX (PUSH_TAGS_MAX + 5)
struct labels {
    struct label items[PUSH_LABELS_MAX];
    size_t count;
    char service[LABEL_TEXT_BYTES], host[LABEL_TEXT_BYTES], process[LABEL_TEXT_BYTES], pid[16];
    char container[CONTAINER_ID_LENGTH + 1];
};

/* The labels of the process `pid`, which has that name. If there are `others`, only the labels that
 * all of them share. The values of tags are not copied. */
void labels_make(const struct push_options *options, pid_t pid, const char *name, bool has_others,
                 struct labels *ret_labels);

/* Copies text so that it is valid UTF-8 without control characters: other bytes become '?'. */
void label_clean(const char *text, char *to, size_t to_bytes);

/* Finds the id of a container in the text of /proc/PID/cgroup, which is not trusted: the last 64
 * hexadecimal digits that stand alone, as in the cgroup names of Docker, containerd, CRI-O and
 * Podman, such as
 *   0::/system.slice/docker-<id>.scope
 *   4:memory:/kubepods/burstable/pod<uid>/<id>
 * Returns false if there is none. */
bool container_id_in(const char *cgroup, char ret_id[CONTAINER_ID_LENGTH + 1]);

#endif
