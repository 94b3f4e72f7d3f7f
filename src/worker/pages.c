#include "worker/pages.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/random.h"
#include "observe/bpf/perf_filter.h"
#include "proc/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define CHECK_EACH_NS 50000000u
#define CHECK_PART_OF_TIME 100
/* Memory in which there can't be more than is resident: see limit_block. */
#define BLOCK_BYTES (32u << 20)
#define DEVIATIONS_MAX 2
/* Beyond this many pages, fewer of them are chosen. */
#define ROWS_MAX 200000

/* The check of one process. */
struct check {
    struct page_checks *checks;
    struct objects *objects;
    uint32_t process;
    const struct page_check *how;
    struct pages pages;
    size_t count; /* of rows */
};

static enum page_extent extent_of(const struct listed_object *row)
{
    return (enum page_extent)(row->key & PAGE_EXTENTS);
}

static uint64_t start_of(const struct listed_object *row)
{
    return row->key & ~(uint64_t)PAGE_EXTENTS;
}

/* Rows that are gone weigh nothing. */
static void drop(struct listed_object *row)
{
    row->weight = 0;
}

/* ---- Fewer pages are chosen than before ---- */

/* Keeps a row only if its page would be chosen now; it then also stands for those that are dropped.
 * A page's rank has at least as many leading zeros as its level, but for a huge page or a window it
 * was the rank of another page. */
static void thin(const struct check *check, struct listed_object *row)
{
    unsigned level = check->how->levels.of[filter_page_group(start_of(row))];
    if (row->level >= level)
        return;
    unsigned fewer = level - row->level;
    uint64_t rank = filter_page_rank(check->how->seed, start_of(row)) << row->level;
    uint64_t weight = (uint64_t)row->weight << fewer;
    if (rank > UINT64_MAX >> fewer) {
        drop(row);
        return;
    }
    row->weight = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
    row->level = (uint16_t)level;
}

static void thin_all(const struct check *check)
{
    for (size_t i = 0; i < check->count; i++)
        thin(check, &check->checks->rows[i]);
}

/* ---- What is resident ---- */

static int find_singles(const struct check *check)
{
    struct page_checks *checks = check->checks;
    size_t count = 0;
    if (array_reserve(&checks->addresses, &checks->address_capacity, check->count) ||
        array_reserve(&checks->present, &checks->present_capacity, check->count))
        return -ENOMEM;
    for (size_t i = 0; i < check->count; i++) {
        if (extent_of(&checks->rows[i]) == PAGE_SINGLE)
            checks->addresses[count++] = checks->rows[i].key;
    }
    int err = pages_find(&check->pages, checks->addresses, count, checks->present);
    for (size_t i = 0, single = 0; i < check->count && !err; i++) {
        if (extent_of(&checks->rows[i]) == PAGE_SINGLE && !checks->present[single++])
            drop(&checks->rows[i]);
    }
    return err;
}

static int find_window(const struct check *check, struct listed_object *row)
{
    size_t present;
    int err = pages_count(&check->pages, start_of(row), PAGES_PER_WINDOW, &present);
    if (!err && !present)
        drop(row);
    return err;
}

/* How much of a huge page is resident. Its pages that were freed, and now belong to other objects,
 * do not count. */
static int find_huge(const struct check *check, size_t number)
{
    struct listed_object *rows = check->checks->rows, *row = &rows[number];
    uint64_t start = start_of(row), end = start + check->pages.huge_bytes;
    size_t present, bytes = page_bytes();
    int err = pages_count(&check->pages, start, check->pages.huge_bytes / bytes, &present);
    if (err)
        return err;
    double others = 0;
    size_t first = number && rows[number - 1].key == start ? number - 1 : number;
    for (size_t i = first; i < check->count && start_of(&rows[i]) < end; i++)
        others += extent_of(&rows[i]) == PAGE_SINGLE ? rows[i].weight : 0;
    others /= row->weight;
    row->bytes = others < (double)present ? (present - (size_t)others) * bytes : 0;
    if (!row->bytes)
        drop(row);
    return 0;
}

static int find_rest(const struct check *check)
{
    int err = 0;
    for (size_t i = 0; i < check->count && !err; i++) {
        struct listed_object *row = &check->checks->rows[i];
        if (!row->weight)
            continue;
        if (extent_of(row) == PAGE_WINDOW)
            err = find_window(check, row);
        else if (extent_of(row) == PAGE_HUGE)
            err = find_huge(check, i);
    }
    return err;
}

/* ---- What can't be ---- */

/* A part of the number, on average: rounded up or down by chance. */
static uint32_t scaled(uint32_t number, double factor, uint64_t chance)
{
    double exact = number * factor;
    uint32_t whole = (uint32_t)exact;
    return whole + (exact - whole > (double)(chance >> 11) / (double)(1ull << 53));
}

/* If some faults of a page were not reported, memory that was freed and touched again may be
 * counted several times, once for each thread that touched it. So the count of a block of memory is
 * scaled down if it exceeds the resident pages by more than chance. */
static int limit_block(const struct check *check, size_t first, size_t end)
{
    struct listed_object *rows = check->checks->rows;
    double counted = 0, squares = 0;
    size_t present;
    for (size_t i = first; i < end; i++) {
        double bytes = (double)rows[i].weight * (double)rows[i].bytes;
        counted += bytes;
        squares += bytes * bytes;
    }
    if (counted <= 0)
        return 0;
    int err = pages_count(&check->pages, start_of(&rows[first]) / BLOCK_BYTES * BLOCK_BYTES,
                          BLOCK_BYTES / page_bytes(), &present);
    double resident = (double)present * (double)page_bytes();
    double by_chance = DEVIATIONS_MAX * sqrt(resident * squares / counted);
    if (err || counted <= resident + by_chance)
        return err;
    for (size_t i = first; i < end; i++)
        rows[i].weight = scaled(rows[i].weight, resident / counted,
                                random_number(check->how->seed, rows[i].key));
    return 0;
}

static int limit_all(const struct check *check)
{
    const struct listed_object *rows = check->checks->rows;
    int err = 0;
    for (size_t first = 0, end; first < check->count && !err; first = end) {
        uint64_t block = rows[first].key / BLOCK_BYTES;
        for (end = first + 1; end < check->count && rows[end].key / BLOCK_BYTES == block; end++) {
        }
        err = limit_block(check, first, end);
    }
    return err;
}

/* ---- The outcome ---- */

static int apply_bytes(const struct check *check, const struct listed_object *row)
{
    const struct object_maker *known =
        objects_find(check->objects, check->process, OBJECT_PAGE, row->key);
    if (!known || known->bytes == row->bytes)
        return 0;
    struct object_maker maker = *known;
    maker.bytes = row->bytes;
    return objects_move(check->objects, row->key, &maker);
}

/* Those that are gone go first: some weigh more instead of them. */
static int apply(const struct check *check)
{
    const struct listed_object *rows = check->checks->rows;
    int err = 0;
    for (size_t i = 0; i < check->count; i++) {
        if (!rows[i].weight)
            objects_gone(check->objects, check->process, OBJECT_PAGE, rows[i].key);
    }
    for (size_t i = 0; i < check->count && !err; i++) {
        if (!rows[i].weight)
            continue;
        objects_weigh(check->objects, check->process, OBJECT_PAGE, rows[i].key, rows[i].weight,
                      rows[i].level);
        err = extent_of(&rows[i]) == PAGE_HUGE ? apply_bytes(check, &rows[i]) : 0;
    }
    return err;
}

static int list(struct check *check)
{
    struct page_checks *checks = check->checks;
    return objects_list(check->objects, check->process, OBJECT_PAGE, &checks->rows,
                        &checks->row_capacity, &check->count);
}

/* Remembers the resident pages if there are more than ever before. */
static void keep_most(const struct check *check)
{
    struct checked_process *process = &check->checks->processes[check->process];
    uint64_t bytes = 0;
    for (size_t i = 0; i < check->count; i++)
        bytes += check->checks->rows[i].weight * check->checks->rows[i].bytes;
    if (bytes <= process->most_bytes)
        return;
    process->most_bytes = bytes;
    objects_keep(check->objects, check->process, OBJECT_PAGE);
}

static int look(struct check *check)
{
    int err = list(check);
    if (err)
        return err;
    thin_all(check);
    err = find_singles(check);
    if (!err)
        err = find_rest(check);
    if (!err && check->how->is_rough)
        err = limit_all(check);
    /* The process has just ended, or memory is short. */
    if (err)
        return err == -ENOMEM ? err : 0;
    err = apply(check);
    keep_most(check);
    return err;
}

static int check_process(struct check *check, const struct program *program)
{
    int err = pages_open(program, &check->pages);
    if (err)
        return err == -ENOMEM ? err : 0;
    err = look(check);
    pages_close(&check->pages);
    return err;
}

static int make_room_for(struct page_checks *checks, uint32_t process)
{
    return array_extend(&checks->processes, &checks->process_count, &checks->process_capacity,
                        process + 1u);
}

int pages_check(struct page_checks *checks, struct results *results, struct channel *channel,
                const struct object_news *news)
{
    const struct page_check *how = &news->check;
    struct check check = {checks, &results->objects, news->process, how, {0}, 0};
    uint64_t now_ns = monotonic_ns();
    if (make_room_for(checks, check.process))
        return -ENOMEM;
    struct throttle *checked = &checks->processes[check.process].checked;
    if (!how->is_due && !throttle_allows(checked, now_ns, CHECK_EACH_NS, CHECK_PART_OF_TIME))
        return 0;
    int err = check_process(&check, news->program);
    checks->processes[check.process].checked = (struct throttle){now_ns, monotonic_ns() - now_ns};
    if (err || results->objects.live_of[OBJECT_PAGE] < ROWS_MAX)
        return err;
    const struct request request = {.kind = REQUEST_FEWER_PAGES};
    return channel_request(channel, &request);
}

void pages_forget(struct page_checks *checks, struct results *results, uint32_t process)
{
    objects_forget(&results->objects, process, OBJECT_PAGE);
    objects_keep(&results->objects, process, OBJECT_PAGE);
    if (process < checks->process_count)
        checks->processes[process].most_bytes = 0;
}

/* What was reported since the last check may be too much as well. */
int pages_leave(struct page_checks *checks, struct results *results, uint32_t process)
{
    struct check check = {checks, &results->objects, process, NULL, {0}, 0};
    int err = make_room_for(checks, process);
    if (!err)
        err = list(&check);
    if (err)
        return err;
    keep_most(&check);
    objects_leave_kept(&results->objects, process, OBJECT_PAGE);
    checks->processes[process] = (struct checked_process){0}; /* another one may get its row */
    return 0;
}

/* A huge page comes where there was no page at all: those that were there are gone. */
void pages_made(struct results *results, uint32_t process, const struct object_news *news)
{
    struct objects *objects = &results->objects;
    objects_weigh(objects, process, OBJECT_PAGE, news->key, news->weight, news->level);
    if ((news->key & PAGE_EXTENTS) != PAGE_HUGE)
        return;
    uint64_t start = news->key & ~(uint64_t)PAGE_EXTENTS;
    for (uint64_t at = start; at < start + news->bytes; at += page_bytes())
        objects_gone(objects, process, OBJECT_PAGE, at);
}

void page_checks_free(struct page_checks *checks)
{
    free(checks->processes);
    free(checks->rows);
    free(checks->addresses);
    free(checks->present);
    *checks = (struct page_checks){0};
}
