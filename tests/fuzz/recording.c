/* Recordings without gzip and its checksum: arbitrary bytes after the version, read as a recording
 * of time and as one of objects. Whatever can be read is written in all formats, and again as a
 * recording, which must read the same. */
#include "input.h"
#include "recording/recording.h"
#include "output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAMES_MAX 4096 /* written at most: many samples may share one stack */

static size_t frames_of(const struct fgprof_profile *profile)
{
    size_t frames = 0;
    for (size_t i = 0; i < profile->sample_count; i++)
        frames += profile->stacks[profile->samples[i].stack].depth;
    return frames;
}

static void write_formats(struct fgprof_profile *profile, int fd)
{
    fgprof_profile_set_folded_flags(profile, 15);
    fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME);
    for (int format = 0; format <= FGPROF_OTLP; format++) {
        int err = fgprof_profile_write(profile, (enum fgprof_format)format, fd);
        bool may_refuse = format == FGPROF_SPEEDSCOPE;
        must(err == 0 || (err == -ENODATA && may_refuse && !profile->has_timelines) ||
             (err == -EINVAL && may_refuse && profile_is_of_objects(profile)));
    }
    must(fgprof_profile_write_difference(profile, profile, FGPROF_FOLDED, true, fd) == 0);
    must(fgprof_profile_write_difference(profile, profile, FGPROF_HTML, true, fd) == 0);
}

static void read_again(const struct fgprof_profile *profile)
{
    char path[64];
    struct fgprof_profile *again;
    int fd = memfd_create("recording", MFD_CLOEXEC);
    must(fd >= 0 && fgprof_profile_write(profile, FGPROF_RAW, fd) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    must(fgprof_profile_read(path, &again) == 0);
    must(again->sample_count == profile->sample_count);
    must(!again->sample_count || memcmp(again->samples, profile->samples,
                                        again->sample_count * sizeof *again->samples) == 0);
    fgprof_profile_free(again);
    close(fd);
}

static void subtract(const struct fgprof_profile *profile, int fd)
{
    struct fgprof_profile *difference;
    int err = fgprof_profile_subtract(profile, profile, &difference);
    must(err == (profile_is_of_objects(profile) ? 0 : -EINVAL));
    if (err)
        return;
    must(fgprof_profile_write(difference, FGPROF_REPORT, fd) == 0);
    fgprof_profile_free(difference);
}

static void read_as(uint8_t version, const uint8_t *data, size_t bytes)
{
    const uint8_t begin[] = {'f', 'g', 'p', 'r', 'o', 'f', '-', 'c', version, 0, 0, 0};
    struct fgprof_profile *profile;
    uint8_t *file = malloc(sizeof begin + bytes);
    if (!file)
        abort();
    memcpy(file, begin, sizeof begin);
    if (bytes)
        memcpy(file + sizeof begin, data, bytes);
    int err = recording_parse(file, sizeof begin + bytes, &profile);
    free(file);
    must(err == 0 || err == -EBADMSG);
    if (err)
        return;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    must(nowhere >= 0);
    if (frames_of(profile) <= FRAMES_MAX) {
        write_formats(profile, nowhere);
        subtract(profile, nowhere);
    }
    read_again(profile);
    close(nowhere);
    fgprof_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_as(1, data, bytes);
    read_as(2, data, bytes);
    return 0;
}
