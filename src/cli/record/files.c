#include "cli/record/files.h"
#include "base/text.h"
#include "cli/say.h"
#include "cli/options/formats.h"
#include "cli/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "fgprof-"
#define STAMP_FORMAT "%Y%m%dT%H%M%SZ"
#define STAMP_BYTES sizeof "20260131T235959Z"
/* How many of the oldest files may go for one that finds the disk full. */
#define FILES_FOR_ROOM 3
#define NAME_BYTES 64 /* of a process, escaped: its 15 characters at most thrice as long */

/* The names that files_path makes: process, id, time, number, ending. */
#define PATTERN "^" PREFIX "[A-Za-z0-9._%-]*-[0-9]+-([0-9]{8}T[0-9]{6}Z)(-([0-9]{1,9}))?(\\..*)$"
enum { GROUP_STAMP = 1, GROUP_NUMBER = 3, GROUP_ENDING = 4, GROUPS };

struct found_file {
    char *name;
    char stamp[STAMP_BYTES];
    unsigned long number;
};

struct found_files {
    struct found_file *items;
    size_t count, capacity;
};

bool files_check(const char *directory)
{
    struct stat status;
    int err = stat(directory, &status) ? errno : S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
    if (!err && access(directory, W_OK | X_OK))
        err = errno;
    return !err || say("files can't be written to %s: %s: give a directory with -o DIR", directory,
                       strerror(err));
}

/* The name of a process may have any character. */
static void escape_name(const char *name, char text[NAME_BYTES])
{
    size_t length = 0;
    text[0] = '\0';
    for (const char *c = name; *c && length + 4 <= NAME_BYTES; c++) {
        length += (size_t)snprintf(text + length, NAME_BYTES - length,
                                   text_is_plain(*c, "._-") ? "%c" : "%%%02x", (unsigned char)*c);
    }
}

static char *path_of(const struct files *files, const char *name, pid_t pid, const char *stamp,
                     unsigned number)
{
    char counter[16] = "", *path;
    if (number)
        snprintf(counter, sizeof counter, "-%u", number);
    int length = asprintf(&path, "%s/" PREFIX "%s-%d-%s%s%s", files->directory, name, (int)pid,
                          stamp, counter, format_of(files->format)->endings[0]);
    return length < 0 ? NULL : path;
}

char *files_path(struct files *files, const char *process_name, pid_t pid, time_t now)
{
    char name[NAME_BYTES], stamp[STAMP_BYTES];
    struct tm time;
    struct stat status;
    escape_name(process_name, name);
    gmtime_r(&now, &time);
    strftime(stamp, sizeof stamp, STAMP_FORMAT, &time);
    /* Does not start at 0: the first files of this second may have been removed as the oldest. */
    unsigned number = now == files->last_time ? files->last_number + 1 : 0;
    char *path = path_of(files, name, pid, stamp, number);
    while (path && !lstat(path, &status)) {
        free(path);
        path = path_of(files, name, pid, stamp, ++number);
    }
    files->last_time = now;
    files->last_number = number;
    return path;
}

static void copy_group(const char *name, const regmatch_t *group, char *text, size_t text_bytes)
{
    int length = group->rm_so < 0 ? 0 : (int)(group->rm_eo - group->rm_so);
    snprintf(text, text_bytes, "%.*s", length, name + (length ? group->rm_so : 0));
}

/* Whether the name is one of those that we give. */
static bool is_ours(const regex_t *pattern, const char *name, struct found_file *file)
{
    regmatch_t groups[GROUPS];
    char number[16];
    if (regexec(pattern, name, GROUPS, groups, 0) ||
        !format_has_ending(name + groups[GROUP_ENDING].rm_so))
        return false;
    copy_group(name, &groups[GROUP_STAMP], file->stamp, sizeof file->stamp);
    copy_group(name, &groups[GROUP_NUMBER], number, sizeof number);
    file->number = strtoul(number, NULL, 10);
    return true;
}

static int add(struct found_files *found, const struct found_file *file, const char *name)
{
    if (array_reserve(&found->items, &found->capacity, found->count + 1))
        return -ENOMEM;
    found->items[found->count] = *file;
    found->items[found->count].name = strdup(name);
    if (!found->items[found->count].name)
        return -ENOMEM;
    found->count++;
    return 0;
}

/* Lists the regular files with our names. */
static int list(DIR *directory, const regex_t *pattern, struct found_files *found)
{
    const struct dirent *entry;
    struct found_file file = {0};
    struct stat status;
    int err = 0;
    while (!err && (entry = readdir(directory))) {
        if (is_ours(pattern, entry->d_name, &file) &&
            !fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(status.st_mode))
            err = add(found, &file, entry->d_name);
    }
    return err;
}

static int compare(const void *a, const void *b)
{
    const struct found_file *left = a, *right = b;
    int order = strcmp(left->stamp, right->stamp); /* by time */
    if (!order)
        order = ORDER(left->number, right->number);
    return order ? order : strcmp(left->name, right->name);
}

/* By the time in their names. */
static int remove_oldest(DIR *directory, struct found_files *found, size_t max, const char *spared)
{
    size_t left = found->count;
    int err = 0;
    if (left > max)
        array_sort(found->items, found->count, compare);
    for (size_t i = 0; i < found->count && left > max; i++) {
        if (spared && strcmp(found->items[i].name, spared) == 0)
            continue;
        if (unlinkat(dirfd(directory), found->items[i].name, 0) && errno != ENOENT)
            err = -errno;
        left--; /* newer ones need not be removed instead of one that can't be */
    }
    return err;
}

/* Finds our files in the directory, which the caller closes, even after an error. */
static int find(const struct files *files, DIR **ret_directory, struct found_files *found)
{
    regex_t pattern;
    *ret_directory = opendir(files->directory);
    if (!*ret_directory)
        return -errno;
    int err = regcomp(&pattern, PATTERN, REG_EXTENDED) ? -ENOMEM : 0;
    if (!err) {
        err = list(*ret_directory, &pattern, found);
        regfree(&pattern);
    }
    return err;
}

static void release(DIR *directory, struct found_files *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->items[i].name);
    free(found->items);
    if (directory)
        closedir(directory);
}

int files_remove_oldest(const struct files *files, const char *spared)
{
    struct found_files found = {0};
    DIR *directory;
    int err = find(files, &directory, &found);
    if (!err)
        err = remove_oldest(directory, &found, files->max, spared);
    release(directory, &found);
    return err;
}

/* Removes the oldest file. Returns whether there was one. */
static bool make_room(const struct files *files)
{
    struct found_files found = {0};
    DIR *directory;
    bool is_made = !find(files, &directory, &found) && found.count &&
                   !remove_oldest(directory, &found, found.count - 1, NULL);
    release(directory, &found);
    return is_made;
}

static int write_to(const struct files *files, const fgprof_profile *profile, const char *path)
{
    struct output_file file;
    int err = output_file_open(&file, path);
    if (err)
        return err;
    err = fgprof_profile_write(profile, files->format, file.fd);
    if (!err)
        err = output_file_commit(&file);
    if (err)
        output_file_abandon(&file);
    return err;
}

static bool is_full(int err)
{
    return err == -ENOSPC || err == -EDQUOT;
}

/* The latest events matter more than the oldest file, which would be removed soon in any case. If
 * removing it did not help the last time, something else is filling the disk: then no more files
 * are removed. */
static int write_in_any_case(const struct files *files, const fgprof_profile *profile,
                             const char *path)
{
    int err = write_to(files, profile, path);
    int most = is_full(files->failure) ? 0 : FILES_FOR_ROOM;
    for (int i = 0; i < most && is_full(err) && make_room(files); i++) {
        say("the disk is full: the oldest file was removed");
        err = write_to(files, profile, path);
    }
    return err;
}

bool files_write(struct files *files, const fgprof_profile *profile, const char *process_name,
                 pid_t pid)
{
    char *path = files_path(files, process_name, pid, time(NULL));
    int err = path ? write_in_any_case(files, profile, path) : -ENOMEM;
    const char *reason = fgprof_profile_reason(profile);
    if (!err)
        say("wrote %s: %s", path, reason ? reason : "");
    else if (files->failure != err)
        say("no file can be written to %s: %s; recording continues", files->directory,
            strerror(-err));
    files->written += !err;
    files->failure = err;
    int unremoved = err ? 0 : files_remove_oldest(files, basename(path));
    if (unremoved && !files->has_kept)
        say("old files can't be removed: %s", strerror(-unremoved));
    files->has_kept = unremoved;
    free(path);
    return !err;
}
