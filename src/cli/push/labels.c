#include "cli/push/labels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The length of the UTF-8 sequence at `s` (RFC 3629), 0 if there is none or if it is a control
 * character. */
static size_t sequence(const unsigned char *s)
{
    if (s[0] < 0x20 || s[0] == 0x7f)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
                  (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ||
                  (s[0] == 0xc2 && s[1] < 0xa0);
    return is_bad ? 0 : length;
}

void label_clean(const char *text, char *to, size_t to_bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0;
    while (*s) {
        size_t length = sequence(s);
        if (used + (length ? length : 1) >= to_bytes)
            break;
        if (length)
            memcpy(to + used, s, length);
        else
            to[used] = '?';
        used += length ? length : 1;
        s += length ? length : 1;
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
