#include "cli/push/body.h"
#include "base/protobuf.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define SPY "fgprof-c"

/* How each kind is written, and the name that Pyroscope gives its profiles. */
static const struct {
    const char *name;
    enum fgprof_kind kind;
    unsigned times;
} kinds[PUSH_KIND_COUNT] = {
    [PUSH_WALL] = {"wall", FGPROF_KIND_WALL, FGPROF_TIME_WALL},
    [PUSH_CPU] = {"process_cpu", FGPROF_KIND_WALL, FGPROF_TIME_CPU},
    [PUSH_OFF_CPU] = {"off_cpu", FGPROF_KIND_WALL, FGPROF_TIME_OFF_CPU},
    [PUSH_MUTEX] = {"mutex", FGPROF_KIND_MUTEX, FGPROF_TIME_WALL},
    [PUSH_BLOCK] = {"block", FGPROF_KIND_BLOCK, FGPROF_TIME_WALL},
};

void body_free(struct body *body)
{
    free(body->bytes);
    free(body->query);
    *body = (struct body){0};
}

static bool is_wanted(const struct pushed *pushed, unsigned kind)
{
    return pushed->kinds & 1u << kind;
}

/* A profile's kind can be set but once: this makes another one of the same content. */
static int copy(const fgprof_profile *profile, fgprof_profile **ret_copy)
{
    char path[32];
    int fd = memfd_create("profile", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int err = fgprof_profile_write(profile, FGPROF_RAW, fd);
    if (!err)
        err = fgprof_profile_read(path, ret_copy);
    close(fd);
    return err;
}

static int set_attributes(const struct pushed *pushed, fgprof_profile *profile)
{
    int err = fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME);
    for (size_t i = 0; i < pushed->labels->count && !err; i++) {
        const struct label *label = &pushed->labels->items[i];
        /* The library knows each process. */
        if (strncmp(label->name, "process.", 8) != 0)
            err = fgprof_profile_set_attribute(profile, label->name, label->value);
    }
    return err;
}

/* Appends the file's bytes. */
static int add_file(struct buffer *buffer, int fd)
{
    off_t length = lseek(fd, 0, SEEK_END);
    if (length < 0)
        return -errno;
    int err = buffer_reserve(buffer, (size_t)length);
    for (off_t at = 0; at < length && !err;) {
        ssize_t got = pread(fd, buffer->bytes + buffer->length, (size_t)(length - at), at);
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        buffer->length += (size_t)got;
        at += got;
    }
    return err;
}

/* Appends the profile in this format. */
static void add_profile(struct buffer *buffer, const fgprof_profile *profile,
                        enum fgprof_format format)
{
    if (buffer->error)
        return;
    int fd = memfd_create("profile", MFD_CLOEXEC);
    if (fd < 0) {
        buffer->error = -errno;
        return;
    }
    int err = fgprof_profile_write(profile, format, fd);
    if (!err)
        err = add_file(buffer, fd);
    buffer->error = err;
    close(fd);
}

/* Adds the profile as one of this kind, without leaving it changed for the next. */
static void add_kind(struct buffer *buffer, const struct pushed *pushed, enum fgprof_kind kind,
                     unsigned times, enum fgprof_format format)
{
    fgprof_profile *profile = pushed->profile, *made = NULL;
    int err = 0;
    if (kind != FGPROF_KIND_WALL) {
        err = copy(pushed->profile, &made);
        profile = made;
        if (!err)
            err = fgprof_profile_set_kind(profile, kind);
    }
    if (!err && format == FGPROF_OTLP)
        err = set_attributes(pushed, profile);
    if (!err)
        err = fgprof_profile_set_times(profile, times);
    if (!err)
        add_profile(buffer, profile, format);
    else if (!buffer->error)
        buffer->error = err;
    fgprof_profile_free(made);
}

/* Field numbers of push/v1/push.proto and types/v1/types.proto
 * (github.com/grafana/pyroscope/tree/main/api). */
enum {
    PUSH_REQUEST_SERIES = 1,
    SERIES_LABELS = 1,
    SERIES_SAMPLES = 2,
    LABEL_PAIR_NAME = 1,
    LABEL_PAIR_VALUE = 2,
    RAW_SAMPLE_PROFILE = 1,
    RAW_SAMPLE_ID = 2,
};

static void add_pair(struct buffer *series, const char *name, const char *value)
{
    size_t pair = protobuf_begin(series, SERIES_LABELS);
    protobuf_string(series, LABEL_PAIR_NAME, name);
    protobuf_string(series, LABEL_PAIR_VALUE, value);
    protobuf_end(series, pair);
}

/* "host.name" as Prometheus would have it: "host_name". */
static void underscored(const char *name, char to[], size_t to_bytes)
{
    snprintf(to, to_bytes, "%s", name);
    for (char *at = to; *at; at++)
        *at = *at == '.' ? '_' : *at;
}

/* A random UUID (RFC 9562, version 4). */
static void make_id(char text[37])
{
    unsigned char bytes[16] = {0};
    ssize_t got = getrandom(bytes, sizeof bytes, 0);
    (void)got;
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof bytes; i++)
        text += sprintf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

/* `__delta__` says that the values do not include those of the previous profile
 * (pkg/phlaredb/head.go). */
static void add_series(struct buffer *request, const struct pushed *pushed, unsigned kind)
{
    char name[LABEL_TEXT_BYTES], id[37];
    size_t series = protobuf_begin(request, PUSH_REQUEST_SERIES);
    add_pair(request, "__name__", kinds[kind].name);
    add_pair(request, "__delta__", "false");
    add_pair(request, "pyroscope_spy", SPY);
    for (size_t i = 0; i < pushed->labels->count; i++) {
        underscored(pushed->labels->items[i].name, name, sizeof name);
        add_pair(request, name, pushed->labels->items[i].value);
    }
    size_t sample = protobuf_begin(request, SERIES_SAMPLES);
    size_t profile = protobuf_begin(request, RAW_SAMPLE_PROFILE);
    add_kind(request, pushed, kinds[kind].kind, kinds[kind].times, FGPROF_PPROF);
    protobuf_end(request, profile);
    make_id(id);
    protobuf_string(request, RAW_SAMPLE_ID, id);
    protobuf_end(request, sample);
    protobuf_end(request, series);
}

static int add_body(struct bodies *bodies, struct buffer *buffer, const char *type)
{
    if (buffer->error) {
        free(buffer->bytes);
        return buffer->error;
    }
    bodies->items[bodies->count++] =
        (struct body){.bytes = buffer->bytes, .length = buffer->length, .type = type};
    return 0;
}

/* A request with a series for each kind, by the Connect protocol (connectrpc.com/docs/protocol). */
static int make_push(const struct pushed *pushed, struct bodies *bodies)
{
    struct buffer request = {0};
    for (unsigned kind = 0; kind < PUSH_KIND_COUNT && !request.error; kind++) {
        if (is_wanted(pushed, kind))
            add_series(&request, pushed, kind);
    }
    return add_body(bodies, &request, BODY_CONNECT);
}

/* Appends text to a query, percent-encoded (RFC 3986). */
static void add_encoded(struct buffer *query, const char *text)
{
    for (; *text; text++) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                        (*text >= '0' && *text <= '9') || strchr("-._~", *text);
        if (is_plain)
            buffer_write(query, text, 1);
        else
            buffer_print(query, "%%%02X", (unsigned char)*text);
    }
}

/* "service{host_name=h,region=eu}", without characters that would end a name or value there
 * (api/model/labelset). */
static void add_name(struct buffer *query, const struct labels *labels)
{
    struct buffer name = {0};
    buffer_puts(&name, labels->service);
    if (name.bytes)
        text_make_plain(name.bytes, "-._/");
    buffer_puts(&name, "{");
    bool is_first = true;
    for (size_t i = 0; i < labels->count; i++) {
        char key[LABEL_TEXT_BYTES];
        if (labels->items[i].value == labels->service)
            continue;
        underscored(labels->items[i].name, key, sizeof key);
        buffer_print(&name, "%s%s=", is_first ? "" : ",", key);
        is_first = false;
        for (const char *at = labels->items[i].value; *at; at++)
            buffer_write(&name, strchr(",{}=", *at) ? "_" : at, 1);
    }
    buffer_puts(&name, "}");
    if (!name.error)
        add_encoded(query, name.bytes);
    query->error = query->error ? query->error : name.error;
    free(name.bytes);
}

/* The server takes contentions for a mutex profile unless it is told otherwise. It reads only parts
 * that have a file name (pkg/og/convert/pprof). */
static void add_form(struct buffer *form, const struct buffer *profile)
{
    buffer_puts(form, "--" BODY_BOUNDARY "\r\nContent-Disposition: form-data; name=\"profile\"; "
                      "filename=\"profile.pprof\"\r\n\r\n");
    buffer_write(form, profile->bytes, profile->length);
    buffer_puts(form, "\r\n--" BODY_BOUNDARY "\r\nContent-Disposition: form-data; "
                      "name=\"sample_type_config\"; filename=\"sample_type_config.json\"\r\n\r\n"
                      "{\"contentions\":{\"display-name\":\"block_count\",\"units\":"
                      "\"lock_samples\"},\"delay\":{\"display-name\":\"block_duration\","
                      "\"units\":\"lock_nanoseconds\"}}\r\n--" BODY_BOUNDARY "--\r\n");
}

/* The body is the profile itself. With format=pprof the server takes even a form for a profile, so
 * forms are sent without it (pkg/ingester/pyroscope/ingest_handler.go). */
static int make_ingest(const struct pushed *pushed, unsigned kind, struct bodies *bodies)
{
    struct buffer profile = {0}, form = {0}, query = {0};
    bool is_form = kind == PUSH_BLOCK;
    buffer_puts(&query, "name=");
    add_name(&query, pushed->labels);
    buffer_print(&query, "&from=%jd&until=%jd&spyName=" SPY "%s", (intmax_t)pushed->from,
                 (intmax_t)pushed->until, is_form ? "" : "&format=pprof");
    add_kind(&profile, pushed, kinds[kind].kind, kinds[kind].times, FGPROF_PPROF);
    if (is_form && !profile.error)
        add_form(&form, &profile);
    int err = profile.error ? profile.error : query.error ? query.error : form.error;
    if (is_form)
        free(profile.bytes);
    if (err) {
        free(is_form ? form.bytes : profile.bytes);
        free(query.bytes);
        return err;
    }
    add_body(bodies, is_form ? &form : &profile, is_form ? BODY_FORM : BODY_PPROF);
    bodies->items[bodies->count - 1].query = query.bytes;
    return 0;
}

static int make_ingests(const struct pushed *pushed, struct bodies *bodies)
{
    int err = 0;
    for (unsigned kind = 0; kind < PUSH_KIND_COUNT && !err; kind++) {
        if (is_wanted(pushed, kind))
            err = make_ingest(pushed, kind, bodies);
    }
    return err;
}

static int add_otlp(const struct pushed *pushed, enum fgprof_kind kind, unsigned times,
                    struct bodies *bodies)
{
    struct buffer buffer = {0};
    add_kind(&buffer, pushed, kind, times, FGPROF_OTLP);
    int err = add_body(bodies, &buffer, BODY_OTLP);
    if (!err)
        bodies->items[bodies->count - 1].is_gzip = true;
    return err;
}

/* All times are in one request, because they share stacks; other kinds are in one request each. */
static int make_otlp(const struct pushed *pushed, struct bodies *bodies)
{
    unsigned times = 0;
    for (unsigned kind = PUSH_WALL; kind <= PUSH_OFF_CPU; kind++)
        times |= is_wanted(pushed, kind) ? kinds[kind].times : 0;
    int err = times ? add_otlp(pushed, FGPROF_KIND_WALL, times, bodies) : 0;
    for (unsigned kind = PUSH_MUTEX; kind < PUSH_KIND_COUNT && !err; kind++) {
        if (is_wanted(pushed, kind))
            err = add_otlp(pushed, kinds[kind].kind, kinds[kind].times, bodies);
    }
    return err;
}

int bodies_make(const struct pushed *pushed, enum push_api api, struct bodies *ret_bodies)
{
    *ret_bodies = (struct bodies){.count = 0};
    return api == PUSH_OTLP     ? make_otlp(pushed, ret_bodies)
           : api == PUSH_INGEST ? make_ingests(pushed, ret_bodies)
                                : make_push(pushed, ret_bodies);
}
