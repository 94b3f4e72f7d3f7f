#include "cli/push/spool.h"
#include "base/clock.h"
#include "base/procfs_file.h"
#include "base/text.h"
#include "cli/push/spool_file.h"
#include "cli/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* If a file can't be read: when it is tried again. */
#define READ_AGAIN_NS 1000000000u
#define BYTES_MAX_DEFAULT (64u << 20)
#define MEMORY_BYTES_MAX (8u << 20)
#define DIRECTORIES_MAX 64
#define ATTEMPTS_IN_A_TURN 10
#define ENDING ".push"

static bool complain(const char *path, const char *why)
{
    return say("can't keep a spool in %s: %s: give --push-spool DIR", path, why);
}

/* A user's programs keep their state in XDG_STATE_HOME (XDG Base Directory Specification), and a
 * service in the directory that systemd names (systemd.exec(5)). */
static bool choose_path(const char *given, char *path, size_t path_bytes)
{
    const char *service = getenv("STATE_DIRECTORY"), *state = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    int length = -1;
    if (given)
        length = snprintf(path, path_bytes, "%s", given);
    else if (service && *service == '/')
        length = snprintf(path, path_bytes, "%.*s/push", (int)strcspn(service, ":"), service);
    else if (state && *state == '/')
        length = snprintf(path, path_bytes, "%s/fgprof-c/push", state);
    else if (home && *home == '/')
        length = snprintf(path, path_bytes, "%s/.local/state/fgprof-c/push", home);
    if (length < 0 || (size_t)length + 8 >= path_bytes)
        return say("there is no directory for the spool: give --push-spool DIR");
    return true;
}

/* The directory and those above it, for nobody else. */
static int make_directories(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, S_IRWXU); /* the last one tells whether it went well */
        *at = '/';
    }
    return mkdir(path, S_IRWXU) && errno != EEXIST ? -errno : 0;
}

/* Opens and locks the directory with this number. Returns 0, or a negative errno: -EWOULDBLOCK if
 * another profiler has it, -EPERM if other users have access to it. */
static int lock_directory(const char *path, unsigned number, int *ret_directory, int *ret_lock)
{
    char name[4200];
    struct stat status;
    snprintf(name, sizeof name, "%s/%u", path, number);
    int directory = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    int lock = -1;
    int err = fstat(directory, &status) ? -errno : 0;
    if (!err && (status.st_uid != geteuid() || status.st_mode & (S_IRWXG | S_IRWXO)))
        err = -EPERM;
    if (!err) {
        lock =
            openat(directory, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
        err = lock < 0 || flock(lock, LOCK_EX | LOCK_NB) ? -errno : 0;
    }
    if (err) {
        if (lock >= 0)
            close(lock);
        close(directory);
        return err;
    }
    *ret_directory = directory;
    *ret_lock = lock;
    return 0;
}

static bool open_directory(struct spool *spool, unsigned *ret_number)
{
    char name[4200];
    int err = make_directories(spool->path);
    if (err)
        return complain(spool->path, strerror(-err));
    for (unsigned number = 0; number < DIRECTORIES_MAX; number++) {
        snprintf(name, sizeof name, "%s/%u", spool->path, number);
        if (mkdir(name, S_IRWXU) && errno != EEXIST)
            return complain(spool->path, strerror(errno));
        err = lock_directory(spool->path, number, &spool->directory_fd, &spool->lock_fd);
        *ret_number = number;
        if (!err)
            return true;
    }
    return complain(spool->path,
                    err == -EWOULDBLOCK ? "too many profilers use it" : strerror(-err));
}

static bool is_request(const char *name)
{
    size_t length = strlen(name);
    return *name != '.' && length > strlen(ENDING) &&
           length < sizeof(((struct spool_entry *)NULL)->name) && text_ends(name, ENDING);
}

/* Calls `found` for each file of the directory. */
static void list(int directory_fd, void (*found)(void *context, const char *name), void *context)
{
    DIR *directory = procfs_open_directory(directory_fd, ".");
    if (!directory)
        return;
    for (const struct dirent *row; (row = readdir(directory));)
        found(context, row->d_name);
    closedir(directory);
}

struct move {
    int from, to;
};

static void move(void *context, const char *name)
{
    const struct move *directories = context;
    if (is_request(name))
        renameat(directories->from, name, directories->to, name);
}

/* Profilers that have ended without a successor left these. */
static void take_over(struct spool *spool, unsigned own)
{
    for (unsigned number = 0; number < DIRECTORIES_MAX; number++) {
        struct move directories = {.to = spool->directory_fd};
        int lock;
        if (number == own || lock_directory(spool->path, number, &directories.from, &lock))
            continue;
        list(directories.from, move, &directories);
        close(directories.from);
        close(lock);
    }
}

static void link_entry(struct spool *spool, struct spool_entry *entry)
{
    struct spool_entry **place = &spool->oldest;
    if (spool->youngest && strcmp(spool->youngest->name, entry->name) <= 0)
        place = &spool->youngest->next;
    while (*place && strcmp((*place)->name, entry->name) <= 0)
        place = &(*place)->next;
    entry->next = *place;
    *place = entry;
    if (!entry->next)
        spool->youngest = entry;
    spool->bytes += entry->bytes;
    spool->count++;
}

static void unlink_entry(struct spool *spool, struct spool_entry *entry)
{
    struct spool_entry **place = &spool->oldest, *before = NULL;
    for (; *place != entry; place = &(*place)->next)
        before = *place;
    *place = entry->next;
    if (spool->youngest == entry)
        spool->youngest = before;
    spool->bytes -= entry->bytes;
    spool->count--;
}

/* Removes the request. */
static void drop(struct spool *spool, struct spool_entry *entry)
{
    unlink_entry(spool, entry);
    if (entry->is_in_memory)
        spool->bytes_in_memory -= entry->bytes;
    else
        unlinkat(spool->directory_fd, entry->name, 0);
    body_free(&entry->body);
    free(entry);
}

static size_t target_named(const struct spool *spool, const char *given)
{
    for (size_t i = 0; i < spool->options->target_count; i++) {
        if (strcmp(spool->targets[i], given) == 0)
            return i;
    }
    return PUSH_TARGETS_MAX;
}

/* Requests to servers that are not pushed to now stay, as long as there is room. */
static void find(void *context, const char *name)
{
    struct spool *spool = context;
    struct spool_file file;
    bool is_left_behind = *name == '.' && is_request(name + 1);
    if (!is_request(name) && !is_left_behind)
        return;
    int err = is_left_behind ? -EBADMSG : spool_file_find(spool->directory_fd, name, &file);
    struct spool_entry *entry = err ? NULL : calloc(1, sizeof *entry);
    if (err == -EBADMSG)
        unlinkat(spool->directory_fd, name, 0);
    if (!entry)
        return;
    strcpy(entry->name, name);
    entry->bytes = file.bytes;
    entry->target = target_named(spool, file.to);
    link_entry(spool, entry);
}

/* Makes room, if that is possible; otherwise drops nothing. Requests that are being sent stay. */
static bool make_room(struct spool *spool, uint64_t bytes)
{
    struct spool_entry *entry = spool->oldest;
    uint64_t staying = 0;
    for (const struct spool_entry *other = entry; other; other = other->next)
        staying += other->is_taken ? other->bytes : 0;
    if (staying + bytes > spool->bytes_max)
        return false;
    while (entry && spool->bytes + bytes > spool->bytes_max) {
        struct spool_entry *next = entry->next;
        if (!entry->is_taken) {
            if (entry->target < PUSH_TARGETS_MAX)
                spool->counts[entry->target].crowded++;
            drop(spool, entry);
        }
        entry = next;
    }
    return true;
}

/* Identifies the account, as far as that is possible without a secret: waiting requests must not go
 * to another account. NULL: no account. */
static const char *identity_of(const struct push_options *options)
{
    const char *user = getenv("FGPROF_PUSH_USER"), *token = getenv("FGPROF_PUSH_TOKEN");
    const char *identity = options->token_file  ? options->token_file
                           : options->user_file ? options->user_file
                           : user && *user      ? user
                           : token && *token    ? "a token"
                                                : NULL;
    return identity && strchr(identity, '\n') ? "a file" : identity;
}

#define HEADERS_BYTES 40

/* The same for headers, which may name a tenant or hold a secret: those from the environment are
 * hashed (FNV-1a, draft-eastlake-fnv). */
static const char *headers_of(const struct push_options *options, char text[HEADERS_BYTES])
{
    const char *headers = getenv("FGPROF_PUSH_HEADERS");
    uint64_t hash = 0xcbf29ce484222325u;
    if (options->header_file)
        return strchr(options->header_file, '\n') ? "a file" : options->header_file;
    if (!headers || !*headers)
        return NULL;
    for (; *headers; headers++)
        hash = (hash ^ (unsigned char)*headers) * 0x100000001b3u;
    snprintf(text, HEADERS_BYTES, "headers %016" PRIx64, hash);
    return text;
}

/* How files name the servers. */
static bool name_targets(struct spool *spool)
{
    char text[HEADERS_BYTES];
    const char *identity = identity_of(spool->options);
    const char *headers = headers_of(spool->options, text);
    for (size_t i = 0; i < spool->options->target_count; i++) {
        if (asprintf(&spool->targets[i], "%s%s%s%s%s", spool->options->targets[i].given,
                     identity ? " as " : "", identity ? identity : "", headers ? " with " : "",
                     headers ? headers : "") < 0) {
            spool->targets[i] = NULL;
            return false;
        }
    }
    return true;
}

bool spool_open(struct spool *spool, const struct push_options *options)
{
    unsigned number;
    *spool = (struct spool){.options = options, .directory_fd = -1, .lock_fd = -1};
    spool->bytes_max = options->spool_bytes ? options->spool_bytes : BYTES_MAX_DEFAULT;
    if (!choose_path(options->spool, spool->path, sizeof spool->path) ||
        !open_directory(spool, &number))
        return false;
    if (!name_targets(spool))
        return complain(spool->path, strerror(ENOMEM));
    pthread_mutex_init(&spool->lock, NULL);
    condition_init(&spool->changed);
    take_over(spool, number);
    list(spool->directory_fd, find, spool);
    make_room(spool, 0);
    return true;
}

void spool_close(struct spool *spool)
{
    while (spool->oldest) {
        struct spool_entry *entry = spool->oldest;
        unlink_entry(spool, entry);
        body_free(&entry->body);
        free(entry);
    }
    for (size_t i = 0; i < PUSH_TARGETS_MAX; i++)
        free(spool->targets[i]);
    close(spool->directory_fd);
    close(spool->lock_fd);
    pthread_cond_destroy(&spool->changed);
    pthread_mutex_destroy(&spool->lock);
}

/* A name that comes after all that were given before. */
static void make_name(struct spool *spool, char *name, size_t name_bytes)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, name_bytes, "%011jd%09ld-%d-%06" PRIu64 ENDING, (intmax_t)now.tv_sec,
             now.tv_nsec, (int)getpid(), spool->number++);
}

/* Under the lock. */
static void keep(struct spool *spool, struct spool_entry *entry, struct body *body)
{
    bool fits = make_room(spool, entry->bytes);
    bool had_room = fits;
    if (fits && entry->is_in_memory) {
        fits = spool->bytes_in_memory + entry->bytes <= MEMORY_BYTES_MAX;
        spool->bytes_in_memory += fits ? entry->bytes : 0;
        spool->counts[entry->target].lost += !fits;
    }
    spool->counts[entry->target].crowded += !had_room;
    if (!fits) {
        if (!entry->is_in_memory)
            unlinkat(spool->directory_fd, entry->name, 0);
        body_free(body);
        free(entry);
        return;
    }
    if (entry->is_in_memory)
        entry->body = *body;
    else
        body_free(body);
    link_entry(spool, entry);
    pthread_cond_broadcast(&spool->changed);
}

static uint64_t crowded_of_all(const struct spool *spool)
{
    uint64_t crowded = 0;
    for (size_t i = 0; i < PUSH_TARGETS_MAX; i++)
        crowded += spool->counts[i].crowded;
    return crowded;
}

void spool_add(struct spool *spool, size_t target, struct body *body)
{
    uint64_t bytes = spool_file_bytes(spool->targets[target], body);
    bool is_too_large = bytes > spool->bytes_max;
    struct spool_entry *entry = is_too_large ? NULL : calloc(1, sizeof *entry);
    if (is_too_large)
        say_once(&spool->has_said_too_large,
                 "a profile of %" PRIu64 " bytes is larger than --push-spool-size: it is dropped",
                 bytes);
    if (!entry) {
        body_free(body);
        spool_count_lost(spool, target);
        return;
    }
    entry->target = target;
    entry->bytes = bytes;
    make_name(spool, entry->name, sizeof entry->name);
    /* Makes room before it is needed, because the disk may be full, too. */
    pthread_mutex_lock(&spool->lock);
    make_room(spool, bytes);
    pthread_mutex_unlock(&spool->lock);
    int err = spool_file_write(spool->directory_fd, entry->name, spool->targets[target], body);
    if (err) {
        say_once(&spool->has_said_unwritable,
                 "can't write to the spool in %s: %s: up to 8 MiB of profiles are kept in memory",
                 spool->path, strerror(-err));
        entry->is_in_memory = true;
        entry->bytes = body->length;
    }
    pthread_mutex_lock(&spool->lock);
    keep(spool, entry, body);
    bool was_full = crowded_of_all(spool) > 0;
    pthread_mutex_unlock(&spool->lock);
    if (was_full)
        say_once(&spool->has_said_full, "the spool in %s is full: the oldest profiles are dropped",
                 spool->path);
}

void spool_count_lost(struct spool *spool, size_t target)
{
    pthread_mutex_lock(&spool->lock);
    spool->counts[target].lost++;
    pthread_mutex_unlock(&spool->lock);
}

static unsigned turns_of(const struct spool_entry *entry)
{
    return entry->attempts / ATTEMPTS_IN_A_TURN;
}

/* The oldest of those that have had the fewest turns: a request that the server never takes, for
 * example because a filter stops it, must not hold up the others. */
static struct spool_entry *next_to(const struct spool *spool, size_t target)
{
    struct spool_entry *next = NULL;
    for (struct spool_entry *entry = spool->oldest; entry; entry = entry->next) {
        if (entry->target == target && !entry->is_taken &&
            (!next || turns_of(entry) < turns_of(next)))
            next = entry;
    }
    return next;
}

/* Under the lock. */
static struct spool_entry *wait_for_one(struct spool *spool, size_t target)
{
    struct spool_entry *entry;
    while (!(entry = next_to(spool, target)) && !spool->is_ending)
        pthread_cond_wait(&spool->changed, &spool->lock);
    return entry;
}

/* Waits this long, or until the end. The caller holds the lock. */
static void wait_for(struct spool *spool, uint64_t wait_ns)
{
    const struct timespec until = timespec_of_ns(monotonic_ns() + wait_ns);
    int err = 0;
    while (!spool->is_ending && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&spool->changed, &spool->lock, &until);
}

/* Whether a file can't be read for want of descriptors or memory. */
static bool is_for_now(int err)
{
    return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EINTR;
}

struct spool_entry *spool_take(struct spool *spool, size_t target)
{
    struct spool_entry *entry;
    pthread_mutex_lock(&spool->lock);
    while ((entry = wait_for_one(spool, target))) {
        entry->is_taken = true;
        if (entry->is_in_memory)
            break;
        pthread_mutex_unlock(&spool->lock);
        int err = spool_file_read(spool->directory_fd, entry->name, &entry->body);
        pthread_mutex_lock(&spool->lock);
        if (!err)
            break;
        if (!is_for_now(err)) {
            spool->counts[target].lost++;
            drop(spool, entry);
            continue;
        }
        entry->is_taken = false;
        if (spool->is_ending) {
            entry = NULL;
            break;
        }
        wait_for(spool, READ_AGAIN_NS);
    }
    pthread_mutex_unlock(&spool->lock);
    return entry;
}

void spool_settle(struct spool *spool, struct spool_entry *entry, enum spool_fate fate)
{
    struct spool_counts *counts = &spool->counts[entry->target];
    pthread_mutex_lock(&spool->lock);
    counts->sent += fate == SPOOL_SENT;
    counts->refused += fate == SPOOL_REFUSED;
    counts->retries += fate == SPOOL_KEPT;
    entry->attempts += fate == SPOOL_KEPT;
    entry->is_taken = false;
    if (fate != SPOOL_KEPT)
        drop(spool, entry);
    else if (!entry->is_in_memory)
        body_free(&entry->body);
    pthread_mutex_unlock(&spool->lock);
}

bool spool_wait(struct spool *spool, uint64_t wait_ns)
{
    pthread_mutex_lock(&spool->lock);
    wait_for(spool, wait_ns);
    bool is_ending = spool->is_ending;
    pthread_mutex_unlock(&spool->lock);
    return is_ending;
}

void spool_end(struct spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    spool->is_ending = true;
    pthread_cond_broadcast(&spool->changed);
    pthread_mutex_unlock(&spool->lock);
}
