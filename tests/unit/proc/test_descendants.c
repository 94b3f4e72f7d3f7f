/* Finding descendants: children of this process, as the kernel lists them. */
#include "unit.h"
#include "base/array.h"
#include "base/clock.h"
#include "proc/descendants.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_last_pid(void **state)
{
    (void)state;
    assert_int_equal(descendants_parse_last_pid("0.75 0.51 0.64 2/523 31337\n"), 31337);
    assert_int_equal(descendants_parse_last_pid("15.47 8.45 3.43 16/182 1\n"), 1);
    static const char *const wrong[] = {"",
                                        "0.75 0.51 0.64 2/523",
                                        "0.75 0.51 0.64 2/523 \n",
                                        "0.75 0.51 0.64 2 31337",
                                        "0.75 0.51 0.64 2/523 -7",
                                        "0.75 0.51 0.64 2/523 99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(descendants_parse_last_pid(wrong[i]), 0);
}

/* The id of a process that has ended before the look: nobody has it. */
static pid_t brief(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

/* After the last id (pid_max in proc_sys_kernel(5)), the kernel starts again at the lowest ones,
 * and then all processes are listed. That must not happen in the middle of a test, which uses some
 * hundred ids while other programs use some too. */
static int keep_away_from_the_last_id(void **state)
{
    long last_pid = 0;
    (void)state;
    FILE *file = fopen("/proc/sys/kernel/pid_max", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &last_pid), 1);
    fclose(file);
    while (last_pid - brief() < 2000) {
    }
    return 0;
}

/* A process that waits to be killed; if `ret_grandchild` is not NULL, it has a child that waits as
 * well. */
static pid_t born(pid_t *ret_grandchild)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t test_pid = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* The process that is returned last reports its own id, once it is sure to end with its
         * parent. */
        if (ret_grandchild && fork() == 0)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid_t own_pid = getpid();
        bool is_told_of = !ret_grandchild || getppid() != test_pid;
        if (is_told_of && write(ends[1], &own_pid, sizeof own_pid) != sizeof own_pid)
            _exit(1);
        for (;;)
            pause();
    }
    pid_t told;
    assert_int_equal(read(ends[0], &told, sizeof told), sizeof told);
    if (ret_grandchild)
        *ret_grandchild = told;
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static bool has_found(const struct descendants *descendants, pid_t pid)
{
    for (size_t i = 0; i < descendants->found.count; i++) {
        if (descendants->found.items[i].pid == pid)
            return true;
    }
    return false;
}

static void test_descendants_there_before(void **state)
{
    (void)state;
    struct descendants descendants = {0};
    pid_t grandchild, child = born(&grandchild);
    assert_int_equal(descendants_add(&descendants, child), 0);
    assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
    assert_int_equal(descendants.found.count, 1);
    assert_int_equal(descendants.found.items[0].pid, grandchild);
    /* Each is found once. */
    assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
    assert_int_equal(descendants.found.count, 0);
    descendants_free(&descendants);
    end(child);
}

static void test_descendants_born_since(void **state)
{
    (void)state;
    struct descendants descendants = {0};
    assert_int_equal(descendants_add(&descendants, getpid()), 0);
    assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
    uint64_t listed_ns = descendants.listing.done_ns;
    pid_t stranger_of_whom = getppid(), grandchild, child = born(&grandchild);
    /* Too early to list all processes: these are found by their ids. */
    assert_int_equal(descendants_look(&descendants, listed_ns + 1), 0);
    assert_int_equal(descendants.listing.done_ns, listed_ns);
    assert_true(has_found(&descendants, child) && has_found(&descendants, grandchild));
    assert_false(has_found(&descendants, getpid()) || has_found(&descendants, stranger_of_whom));
    descendants_free(&descendants);
    end(child);
}

static void test_listing_finds_what_ids_do_not(void **state)
{
    (void)state;
    struct descendants descendants = {0};
    assert_int_equal(descendants_add(&descendants, getpid()), 0);
    assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
    pid_t child = born(NULL);
    /* As if an earlier look had seen this id as the last one, without asking for its process. */
    descendants.last_pid = child;
    uint64_t later_ns =
        descendants.listing.done_ns + 1000000000u + 100 * descendants.listing.cost_ns;
    assert_int_equal(descendants_look(&descendants, later_ns), 0);
    assert_true(has_found(&descendants, child));
    /* From now on, only a look with a listing counts as having missed no process. */
    assert_true(descendants.last_pid_lags);
    assert_int_equal(descendants.complete_ns, later_ns);
    descendants_free(&descendants);
    end(child);
}

static const struct unseen_id *unseen(const struct descendants *descendants, pid_t pid)
{
    for (size_t i = 0; i < descendants->unseen_count; i++) {
        if (descendants->unseen_ids[i].pid == pid)
            return &descendants->unseen_ids[i];
    }
    return NULL;
}

/* An id is given out before its process is visible, as on a busy machine: it is asked for at many
 * looks, and the time since it was given out is unknown. */
static void test_an_id_that_nobody_has_is_asked_for_again(void **state)
{
    (void)state;
    struct descendants descendants = {0};
    assert_int_equal(descendants_add(&descendants, getpid()), 0);
    assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
    uint64_t listed_ns = descendants.listing.done_ns;
    pid_t nobody = brief();
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(descendants_look(&descendants, listed_ns + i), 0);
        assert_non_null(unseen(&descendants, nobody));
        assert_int_equal(unseen(&descendants, nobody)->asked_ns, listed_ns + 1);
        assert_int_equal(unseen(&descendants, nobody)->unseen_ns, listed_ns);
    }
    /* Its process appears at last. */
    pid_t child = born(NULL);
    descendants.last_pid = child;
    for (size_t i = 0; i < descendants.unseen_count; i++) {
        if (descendants.unseen_ids[i].pid == nobody)
            descendants.unseen_ids[i].pid = child;
    }
    assert_int_equal(descendants_look(&descendants, listed_ns + 4), 0);
    assert_int_equal(descendants.listing.done_ns, listed_ns);
    assert_true(has_found(&descendants, child));
    assert_int_equal(descendants.found.items[0].unseen_ns, listed_ns);
    assert_null(unseen(&descendants, child));
    descendants_free(&descendants);
    end(child);
}

/* Looks for descendants of this process while some hundred ids are used by brief processes, a few
 * at a time. Returns false if other programs used so many ids meanwhile that all processes would be
 * listed. */
static bool look_at_many_ids(struct descendants *descendants, pid_t *ret_first, pid_t *ret_last)
{
    *descendants = (struct descendants){0};
    assert_int_equal(descendants_add(descendants, getpid()), 0);
    assert_int_equal(descendants_look(descendants, monotonic_ns()), 0);
    uint64_t listed_ns = descendants->listing.done_ns;
    *ret_first = brief();
    for (unsigned i = 1; i <= 300; i++) {
        *ret_last = brief();
        pid_t taken = *ret_last - descendants->last_pid;
        if (taken < 0 || taken > 200)
            return false;
        if (i % 30 == 0 || taken >= 100)
            assert_int_equal(descendants_look(descendants, listed_ns + i), 0);
    }
    assert_int_equal(descendants->listing.done_ns, listed_ns);
    return true;
}

static void test_ids_that_stay_unseen_are_given_up(void **state)
{
    (void)state;
    struct descendants descendants = {0};
    pid_t first, last;
    do
        descendants_free(&descendants);
    while (!look_at_many_ids(&descendants, &first, &last));
    uint64_t listed_ns = descendants.listing.done_ns;
    assert_non_null(unseen(&descendants, last));
    pid_t last_before = descendants.last_pid;
    assert_int_equal(descendants_look(&descendants, listed_ns + 301), 0);
    assert_null(unseen(&descendants, first));
    assert_in_range(descendants.unseen_count, 1, 128 + descendants.last_pid - last_before);
    pid_t nobody = brief();
    assert_int_equal(descendants_look(&descendants, listed_ns + 2000000000u), 0);
    assert_null(unseen(&descendants, last));
    assert_non_null(unseen(&descendants, nobody));
    /* A listing that finds a process with a given-up id does not prove the reported last id wrong.
     */
    pid_t child = born(NULL);
    descendants.last_pid = descendants.given_up_pid = child;
    uint64_t later_ns =
        descendants.listing.done_ns + 1000000000u + 100 * descendants.listing.cost_ns;
    assert_int_equal(descendants_look(&descendants, later_ns), 0);
    assert_true(has_found(&descendants, child));
    assert_false(descendants.last_pid_lags);
    descendants_free(&descendants);
    end(child);
}

static void test_who_is_gone_is_no_member(void **state)
{
    (void)state;
    struct descendants descendants = {0};
    pid_t child = born(NULL);
    assert_int_equal(descendants_add(&descendants, getpid()), 0);
    assert_int_equal(descendants_add(&descendants, child), 0);
    end(child);
    assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
    assert_int_equal(descendants.members.count, 1);
    assert_int_equal(descendants.members.items[0].pid, getpid());
    descendants_free(&descendants);
}

/* Looks while at most `spare` descriptors can be opened. */
static void look_short_of_files(struct descendants *descendants, rlim_t spare, uint64_t now_ns)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int lowest_free = dup(STDOUT_FILENO);
    assert_true(lowest_free >= 0);
    close(lowest_free);
    limit = (struct rlimit){.rlim_cur = (rlim_t)lowest_free + spare, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int err = descendants_look(descendants, now_ns);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(err, 0);
}

/* Without a spare descriptor, /proc can't be opened; with one, it is, but no process in it. */
static void test_a_listing_that_fails_drops_nobody(void **state)
{
    (void)state;
    for (rlim_t spare = 0; spare <= 1; spare++) {
        struct descendants descendants = {0};
        assert_int_equal(descendants_add(&descendants, getpid()), 0);
        assert_int_equal(descendants_look(&descendants, monotonic_ns()), 0);
        const struct throttle listing = descendants.listing;
        uint64_t later_ns = listing.done_ns + 1000000000u + 100 * listing.cost_ns;
        look_short_of_files(&descendants, spare, later_ns);
        assert_int_equal(descendants.listing.done_ns, listing.done_ns);
        assert_int_equal(descendants.complete_ns, listing.done_ns);
        pid_t child = born(NULL);
        assert_int_equal(descendants_look(&descendants, later_ns + 1), 0);
        assert_true(has_found(&descendants, child));
        assert_int_equal(descendants.listing.done_ns, later_ns + 1);
        assert_false(descendants.last_pid_lags);
        descendants_free(&descendants);
        end(child);
    }
}

static void see(struct descendants *descendants, pid_t pid, pid_t parent)
{
    const struct relative relative = {.pid = pid, .parent = parent, .start_tick = 5};
    struct relatives *seen = &descendants->seen;
    assert_int_equal(array_append(&seen->items, &seen->count, &seen->capacity, relative), 0);
}

/* Each process is the parent of the next. Searching all of them for each would take minutes. */
static void test_a_hundred_thousand_processes(void **state)
{
    (void)state;
    enum { FIRST = 5000000, COUNT = 100000 }; /* ids beyond the kernel's maximum */
    struct descendants descendants = {0};
    for (pid_t pid = FIRST; pid < FIRST + COUNT; pid++)
        see(&descendants, pid, pid + 1);
    see(&descendants, FIRST + COUNT, 1);
    assert_int_equal(descendants_add(&descendants, FIRST + COUNT), 0);
    descendants.members.items[0].start_tick = 5;
    assert_int_equal(descendants_relate(&descendants, true), 0);
    assert_int_equal(descendants.found.count, COUNT);
    for (pid_t i = 0; i < COUNT; i++)
        assert_int_equal(descendants.found.items[i].pid, FIRST + COUNT - 1 - i);
    /* Their ids have been reused, and the new processes are found. */
    for (size_t i = 0; i <= COUNT; i++)
        descendants.seen.items[i].start_tick += descendants.seen.items[i].pid < FIRST + COUNT;
    descendants.found.count = 0;
    see(&descendants, FIRST - 1, FIRST + COUNT);
    assert_int_equal(descendants_relate(&descendants, true), 0);
    assert_int_equal(descendants.members.items[0].pid, FIRST + COUNT);
    assert_int_equal(descendants.members.count, COUNT + 2);
    assert_int_equal(descendants.found.count, COUNT + 1);
    descendants.seen.count = 0;
    assert_int_equal(descendants_relate(&descendants, false), 0);
    assert_int_equal(descendants.members.count, COUNT + 2);
    assert_int_equal(descendants_relate(&descendants, true), 0);
    assert_int_equal(descendants.members.count, 0);
    descendants_free(&descendants);
}

#define WITH_IDS(test) cmocka_unit_test_setup(test, keep_away_from_the_last_id)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_pid),
        WITH_IDS(test_descendants_there_before),
        WITH_IDS(test_descendants_born_since),
        WITH_IDS(test_listing_finds_what_ids_do_not),
        WITH_IDS(test_an_id_that_nobody_has_is_asked_for_again),
        WITH_IDS(test_ids_that_stay_unseen_are_given_up),
        WITH_IDS(test_who_is_gone_is_no_member),
        WITH_IDS(test_a_listing_that_fails_drops_nobody),
        cmocka_unit_test(test_a_hundred_thousand_processes),
    };
    return cmocka_run_group_tests_name("descendants", tests, NULL, NULL);
}
