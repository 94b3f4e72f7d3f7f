/* Reads a recording (write.c describes the format). It is untrusted: its contents are checked, and
 * memory is allocated only for what is in the file. */
#include "recording/recording.h"
#include "recording/columns.h"
#include "base/array.h"
#include "base/bytes.h"
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* A small file may inflate without end. A one-hour recording of 10,000 threads has some tens of MB.
 */
#define INFLATED_MAX ((size_t)256 << 20)

/* The limit for all strings and rows in memory. A number takes a byte in the file, and columns may
 * be missing, so a row may take many times its bytes in the file; so may a short string. */
#define MEMORY_BYTES_MAX ((uint64_t)1 << 30)

#define GZIP_WINDOW (15 + 16) /* the largest window; 16 asks for a gzip header (zlib.h) */

struct sections {
    struct bytes contents[COLUMN_NUMBER_MAX + 1];
    bool is_there[COLUMN_NUMBER_MAX + 1];
};

static int find_sections(struct bytes *file, struct sections *ret_sections)
{
    *ret_sections = (struct sections){0};
    while (bytes_left(file)) {
        uint64_t number = bytes_uleb(file);
        uint64_t length = bytes_uleb(file);
        struct bytes contents = {.at = file->at};
        bytes_skip(file, length);
        contents.end = file->at;
        if (file->failed)
            return -EBADMSG;
        if (number > COLUMN_NUMBER_MAX)
            continue;
        if (ret_sections->is_there[number])
            return -EBADMSG;
        ret_sections->contents[number] = contents;
        ret_sections->is_there[number] = true;
    }
    return 0;
}

static int read_strings(struct strings *strings, struct bytes *contents)
{
    int err = 0;
    char *text = NULL;
    size_t capacity = 0;
    for (size_t i = 0; bytes_left(contents) && !err; i++) {
        uint32_t id;
        uint64_t length = bytes_uleb(contents);
        const uint8_t *at = contents->at;
        bytes_skip(contents, length);
        if (contents->failed || memchr(at, '\0', length))
            err = -EBADMSG;
        else
            err = array_reserve(&text, &capacity, length + 1);
        if (!err) {
            memcpy(text, at, length);
            text[length] = '\0';
            err = strings_intern(strings, text, &id);
        }
        /* Each string occurs once, "" first: its position is its number. */
        if (!err && id != i)
            err = -EBADMSG;
        if (!err && strings_bytes(strings) > MEMORY_BYTES_MAX)
            err = -EFBIG;
    }
    free(text);
    return err;
}

/* "" if the section is missing, as in files of the first programs. */
static int read_text(const struct bytes *contents, char **ret_text)
{
    size_t length = bytes_left(contents);
    if (length && memchr(contents->at, '\0', length))
        return -EBADMSG;
    *ret_text = strndup(length ? (const char *)contents->at : "", length);
    return *ret_text ? 0 : -ENOMEM;
}

/* Counts the numbers: each ends with a byte below 0x80. */
static size_t count_numbers(const struct bytes *contents)
{
    size_t count = 0;
    for (const uint8_t *at = contents->at; at < contents->end; at++)
        count += *at < 0x80;
    return count;
}

static int make_tables(struct fgprof_profile *profile, const struct sections *sections)
{
    size_t rows[TABLE_COUNT] = {[TABLE_RECORDING] = 1};
    bool is_known[TABLE_COUNT] = {[TABLE_RECORDING] = true};
    for (size_t i = 0; i < profile_column_count(); i++) {
        const struct profile_column *column = profile_column(i);
        if (!sections->is_there[column->number]) {
            if (profile_column_is_optional(column))
                continue;
            return -EBADMSG;
        }
        size_t count = count_numbers(&sections->contents[column->number]);
        if (is_known[column->table] && rows[column->table] != count)
            return -EBADMSG;
        rows[column->table] = count;
        is_known[column->table] = true;
    }
    int err = 0;
    uint64_t bytes = strings_bytes(&profile->strings);
    for (int table = TABLE_FUNCTIONS; table < TABLE_COUNT; table++) {
        if (rows[table] >= UINT32_MAX)
            return -EBADMSG;
        bytes += rows[table] * profile_row_bytes((enum profile_table)table);
    }
    if (bytes > MEMORY_BYTES_MAX)
        return -EFBIG;
    for (int table = TABLE_FUNCTIONS; table < TABLE_COUNT && !err; table++) {
        err = profile_make_rows(profile, (enum profile_table)table, rows[table]);
    }
    return err;
}

static int fill_column(struct fgprof_profile *profile, const struct profile_column *column,
                       struct bytes *contents)
{
    size_t rows = profile_rows(profile, column->table);
    for (size_t row = 0; row < rows; row++) {
        if (!profile_set_cell(profile, column, row, bytes_uleb(contents)))
            return -EBADMSG;
    }
    return contents->failed || bytes_left(contents) ? -EBADMSG : 0;
}

/* Takes a part of a table of `rows` rows, `left` of which are not taken yet. Returns false if the
 * part is not within the table, or is larger than what is left. */
static bool take_part(size_t *left, size_t rows, size_t first, size_t count)
{
    if (count > *left || first > rows - count)
        return false;
    *left -= count;
    return true;
}

/* Checks constraints that span columns: the parts of another table that rows refer to lie within it
 * and together are no larger than it. */
static bool parts_are_right(const struct fgprof_profile *profile)
{
    size_t lines = profile->line_count, stack_locations = profile->stack_location_count,
           runs = profile->run_count, tick_runs = profile->tick_run_count,
           labels = profile->label_count;
    bool ok = true;
    for (size_t i = 0; i < profile->location_count && ok; i++) {
        const struct profile_location *location = &profile->locations[i];
        ok = take_part(&lines, profile->line_count, location->first_line, location->line_count);
    }
    for (size_t i = 0; i < profile->stack_count && ok; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        ok = take_part(&stack_locations, profile->stack_location_count, stack->first_location,
                       stack->depth);
    }
    for (size_t i = 0; i < profile->timeline_count && ok; i++) {
        const struct profile_timeline *timeline = &profile->timelines[i];
        ok = take_part(&runs, profile->run_count, timeline->first_run, timeline->run_count) &&
             take_part(&tick_runs, profile->tick_run_count, timeline->first_tick_run,
                       timeline->tick_run_count);
    }
    for (size_t i = 0; i < profile->tick_run_count && ok; i++) {
        uint32_t sample = profile->tick_runs[i].sample; /* also if the column is missing */
        ok = sample == PROFILE_NO_SAMPLE || sample < profile->sample_count;
    }
    for (size_t i = 0; i < profile->label_set_count && ok; i++) {
        const struct profile_label_set *set = &profile->label_sets[i];
        ok = take_part(&labels, profile->label_count, set->first_label, set->label_count);
    }
    /* Chains of owners lead to earlier rows, so that they end. */
    for (size_t i = 0; i < profile->wait_count && ok; i++)
        ok = profile->waits[i].owner_wait_plus_1 <= i;
    return ok && profile->summary.modules_unreadable == profile->unreadable_count;
}

static int read_sections(struct fgprof_profile *profile, struct bytes *file)
{
    struct sections sections;
    int err = find_sections(file, &sections);
    if (!err && !sections.is_there[COLUMN_STRINGS])
        err = -EBADMSG;
    if (!err)
        err = read_strings(&profile->strings, &sections.contents[COLUMN_STRINGS]);
    if (!err)
        err = read_text(&sections.contents[COLUMN_RECORDED_BY], &profile->recorded_by);
    if (!err && bytes_left(&sections.contents[COLUMN_REASON]))
        err = read_text(&sections.contents[COLUMN_REASON], &profile->reason);
    if (!err && bytes_left(&sections.contents[COLUMN_HOST]))
        err = read_text(&sections.contents[COLUMN_HOST], &profile->host);
    if (!err)
        err = make_tables(profile, &sections);
    for (size_t i = 0; i < profile_column_count() && !err; i++) {
        const struct profile_column *column = profile_column(i);
        if (sections.is_there[column->number])
            err = fill_column(profile, column, &sections.contents[column->number]);
    }
    if (!err && !parts_are_right(profile))
        err = -EBADMSG;
    return err;
}

/* The version is in the first bytes. Returns 0 or -EILSEQ. */
static int parse_version(const uint8_t *data, size_t bytes, uint32_t *ret_version)
{
    struct bytes version = {.at = data + RECORDING_MAGIC_BYTES, .end = data + RECORDING_HEAD_BYTES};
    if (bytes < RECORDING_HEAD_BYTES || memcmp(data, RECORDING_MAGIC, RECORDING_MAGIC_BYTES) != 0)
        return -EILSEQ;
    *ret_version = (uint32_t)bytes_unsigned(&version, RECORDING_HEAD_BYTES - RECORDING_MAGIC_BYTES);
    return 0;
}

int recording_parse(const uint8_t *data, size_t bytes, struct fgprof_profile **ret_profile)
{
    struct fgprof_profile *profile;
    uint32_t version;
    int err = parse_version(data, bytes, &version);
    if (err)
        return err;
    if (version > FGPROF_RECORDING_VERSION)
        return -EPROTONOSUPPORT;
    if (version != RECORDING_VERSION_TIME && version != RECORDING_VERSION_OBJECTS)
        return -EBADMSG;
    err = profile_new(&profile);
    if (err)
        return err;
    struct bytes sections = {.at = data + RECORDING_HEAD_BYTES, .end = data + bytes};
    err = read_sections(profile, &sections);
    if (!err && profile_is_of_objects(profile) != (version == RECORDING_VERSION_OBJECTS))
        err = -EBADMSG;
    if (err)
        profile_free(profile);
    else
        *ret_profile = profile;
    return err;
}

struct inflated {
    uint8_t *bytes;
    size_t length, capacity;
};

/* Whether what has been inflated so far may become a recording. */
static bool begins_well(const struct inflated *out)
{
    size_t known = out->length < RECORDING_MAGIC_BYTES ? out->length : RECORDING_MAGIC_BYTES;
    return !known || memcmp(out->bytes, RECORDING_MAGIC, known) == 0;
}

/* Inflates the input of `stream`. Returns 0, 1 at the end, or an error. */
static int inflate_part(z_stream *stream, struct inflated *out)
{
    for (;;) {
        int err = array_reserve(&out->bytes, &out->capacity, out->length + 4096);
        if (err)
            return err;
        size_t room = out->capacity - out->length;
        stream->next_out = out->bytes + out->length;
        stream->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
        uInt before = stream->avail_out;
        int result = inflate(stream, Z_NO_FLUSH);
        out->length += before - stream->avail_out;
        if (!begins_well(out))
            return -EILSEQ;
        if (out->length > INFLATED_MAX)
            return -EFBIG;
        if (result == Z_STREAM_END)
            return stream->avail_in ? -EBADMSG : 1;
        if (result == Z_BUF_ERROR || (result == Z_OK && !stream->avail_in && stream->avail_out))
            return 0;
        if (result != Z_OK)
            return result == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
    }
}

static bool is_gzip(const uint8_t *begin, size_t length)
{
    static const uint8_t magic[] = {0x1f, 0x8b, Z_DEFLATED};
    return memcmp(begin, magic, length < sizeof magic ? length : sizeof magic) == 0;
}

/* Inflates the file until there is enough. */
static int inflate_file(int fd, z_stream *stream, size_t enough, struct inflated *out)
{
    uint8_t part[65536];
    bool is_first = true, has_ended = false;
    for (;;) {
        ssize_t got = read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return has_ended ? 0 : -ENODATA;
        if (has_ended)
            return -EBADMSG;
        if (is_first && !is_gzip(part, (size_t)got))
            return -EILSEQ;
        is_first = false;
        stream->next_in = part;
        stream->avail_in = (uInt)got;
        int result = inflate_part(stream, out);
        if (result < 0 || out->length >= enough)
            return result < 0 ? result : 0;
        has_ended = result > 0;
    }
}

static int read_inflated(int fd, size_t enough, struct inflated *out)
{
    z_stream stream = {0};
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return -ENOMEM;
    int err = inflate_file(fd, &stream, enough, out);
    inflateEnd(&stream);
    return err;
}

int fgprof_recording_version(const char *path, unsigned *ret_version)
{
    struct inflated out = {0};
    uint32_t version;
    int fd = open_regular_file(AT_FDCWD, path, 0);
    if (fd < 0)
        return fd;
    int err = read_inflated(fd, RECORDING_HEAD_BYTES, &out);
    if (!err)
        err = parse_version(out.bytes, out.length, &version);
    if (!err)
        *ret_version = version;
    free(out.bytes);
    close(fd);
    return err;
}

int fgprof_profile_read_fd(int fd, const char *name, unsigned *ret_version,
                           struct fgprof_profile **ret_profile)
{
    struct inflated out = {0};
    struct fgprof_profile *profile;
    uint32_t version;
    int err = read_inflated(fd, SIZE_MAX, &out);
    if (!err)
        err = recording_parse(out.bytes, out.length, &profile);
    if (ret_version && !parse_version(out.bytes, out.length, &version))
        *ret_version = version;
    free(out.bytes);
    if (err)
        return err;
    profile->read_from = strdup(name);
    if (!profile->read_from) {
        profile_free(profile);
        return -ENOMEM;
    }
    *ret_profile = profile;
    return 0;
}

int fgprof_profile_read(const char *path, struct fgprof_profile **ret_profile)
{
    int fd = open_regular_file(AT_FDCWD, path, 0);
    if (fd < 0)
        return fd;
    int err = fgprof_profile_read_fd(fd, path, NULL, ret_profile);
    close(fd);
    return err;
}
