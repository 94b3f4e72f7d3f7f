/* What a profile is pushed with: the service's name, host, process, container and tags. */
#ifndef FGPROF_CLI_PUSH_LABELS_H
#define FGPROF_CLI_PUSH_LABELS_H

#include "cli/options/push.h"
#include "cli/push/container.h"

#include <sys/types.h>

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

/* Of the process `pid`, which has that name. If there are `others`, they are what all have in
 * common. The values of tags are not copied. */
void labels_make(const struct push_options *options, pid_t pid, const char *name, bool has_others,
                 struct labels *ret_labels);

/* Copies text so that it is valid UTF-8 without control characters: other bytes become '?'. */
void label_clean(const char *text, char *to, size_t to_bytes);

#endif
