#include "profile/name_deadlocks.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a recording says of one deadlock, and of all others like it. */
struct naming {
    const struct fgprof_profile *profile;
    const struct named_rows *named;
    const uint32_t *waits;
    uint64_t begin_ns;
};

static void put_thread(const struct naming *naming, FILE *text,
                       const struct deadlock_thread *thread)
{
    fprintf(text, "\"%s\" (%u)", strings_get(naming->named->strings, thread->name), thread->tid);
}

/* "waits for mutex g_lock of ", or "waits for the end of " of which the thread is all that there is
 * to name. */
static void put_wait(const struct naming *naming, FILE *text, const struct deadlock_thread *thread)
{
    const struct strings *strings = &naming->profile->strings;
    uint32_t number = thread->wait_plus_1 ? naming->waits[thread->wait_plus_1 - 1] : 0;
    const struct profile_wait *wait = number ? &naming->profile->waits[number - 1] : NULL;
    bool is_for_end =
        wait && strcmp(strings_get(strings, wait->kind), resource_kind_name(RESOURCE_THREAD)) == 0;
    fprintf(text, " waits for %s",
            is_for_end ? "the end"
            : wait     ? strings_get(strings, wait->resource)
                       : "a lock");
}

/* Of `count` threads. */
static void put_deadlock(const struct naming *naming, FILE *text,
                         const struct deadlock_thread *threads, size_t count)
{
    uint64_t since_ns =
        threads->since_ns > naming->begin_ns ? threads->since_ns - naming->begin_ns : 0;
    fprintf(text, "deadlock since %.1f s: ", (double)since_ns / 1e9);
    put_thread(naming, text, threads);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", which" : "", text);
        put_wait(naming, text, &threads[i]);
        fputs(count == 1 ? ", which it has itself" : " of ", text);
        if (count > 1)
            put_thread(naming, text, &threads[(i + 1) % count]);
    }
}

static int add(const struct naming *naming, struct fgprof_profile *profile,
               const struct deadlock_thread *threads, size_t count)
{
    char *line = NULL;
    size_t bytes;
    FILE *text = open_memstream(&line, &bytes);
    if (!text)
        return -ENOMEM;
    put_deadlock(naming, text, threads, count);
    bool failed = ferror(text);
    failed |= fclose(text) != 0;
    if (failed ||
        array_reserve(&profile->deadlocks, &profile->deadlock_capacity,
                      profile->deadlock_count + 1) ||
        strings_intern(&profile->strings, line, &profile->deadlocks[profile->deadlock_count])) {
        free(line);
        return -ENOMEM;
    }
    profile->deadlock_count++;
    free(line);
    return 0;
}

int name_deadlocks(struct fgprof_profile *profile, const struct deadlocks *deadlocks,
                   uint64_t begin_ns, const struct named_rows *named, const uint32_t *waits)
{
    const struct naming naming = {profile, named, waits, begin_ns};
    int err = 0;
    for (size_t i = 0, next; i < deadlocks->row_count && !err; i = next) {
        for (next = i; next < deadlocks->row_count &&
                       deadlocks->rows[next].deadlock == deadlocks->rows[i].deadlock;)
            next++;
        err = add(&naming, profile, &deadlocks->rows[i], next - i);
    }
    return err;
}
