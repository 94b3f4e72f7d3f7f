/* Waits for anything that is not a lock in memory. This process waits; the others are its children.
 */
#include "unit.h"
#include "base/clock.h"
#include "worker/peer_waits.h"

#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OWN 0
#define OTHER 1

struct world {
    struct results results;
    struct peer_waits waits;
    struct program *own, *other;
    struct waited_child child;
    pid_t child_id;
    uint64_t since_ns; /* 0: now; see find */
};

static struct program *program_of(pid_t process_id, uint32_t number)
{
    char path[32];
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    snprintf(path, sizeof path, "/proc/%d", process_id);
    atomic_init(&program->references, 1);
    program->number = program->process = number;
    program->process_id = program->tid = process_id;
    program->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    program->mem_fd = program->maps_fd = program->first_maps_fd = -1;
    assert_true(program->proc_fd >= 0);
    return program;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    assert_non_null(world);
    assert_int_equal(results_init(&world->results), 0);
    world->own = program_of(getpid(), OWN);
    assert_int_equal(peer_waits_begin(&world->waits, world->own, world->own->process), 0);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    if (world->child_id) {
        kill(world->child_id, SIGKILL);
        waitpid(world->child_id, NULL, 0);
    }
    peer_waits_free(&world->waits);
    program_release(world->own);
    program_release(world->other);
    results_free(&world->results);
    free(world);
    return 0;
}

/* Starts a child that keeps only the descriptor `fd`, and samples it. */
static void start_other(struct world *world, int fd)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    world->child_id = fork();
    if (world->child_id == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 256; i++) {
            if (i != fd && i != ready[1])
                close(i);
        }
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        close(ready[1]);
        for (;;)
            pause();
    }
    assert_true(world->child_id > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    world->other = program_of(world->child_id, OTHER);
    assert_int_equal(peer_waits_begin(&world->waits, world->other, world->other->process), 0);
}

static struct observation observation_of(struct world *world, const struct call_target *call)
{
    struct observation observation = {
        .process_id = getpid(),
        .tid = getpid(),
        .inner_tid = getpid(),
        .program = world->own,
        .process = OWN,
        .evidence = EVIDENCE_ASLEEP,
        .state = THREAD_SLEEPING,
        .wait.has_call = true,
        .wait.call = *call,
    };
    if (call->kind == CALL_FILE)
        call_read_link(call, world->own->proc_fd, &observation.wait.memory);
    return observation;
}

/* The thread has just begun to wait, or did at `since_ns`. */
static struct peer_wait find(struct world *world, const struct observation *observation)
{
    struct peer_wait wait;
    uint64_t since_ns = world->since_ns ? world->since_ns : monotonic_ns();
    assert_int_equal(peer_waits_find(&world->waits, &world->results, observation, since_ns,
                                     &world->child, &wait),
                     0);
    return wait;
}

static struct peer_wait wait_on(struct world *world, int fd, enum file_use use)
{
    const struct call_target call = {.kind = CALL_FILE, .count = 1, .fd = fd, .use = use};
    const struct observation observation = observation_of(world, &call);
    return find(world, &observation);
}

/* The same for a link that no descriptor has. */
static struct peer_wait wait_on_link(struct world *world, const char *link)
{
    const struct call_target call = {.kind = CALL_FILE, .fd = -1, .use = FILE_USE_READ};
    struct observation observation = observation_of(world, &call);
    snprintf(observation.wait.memory.link, sizeof observation.wait.memory.link, "%s", link);
    return find(world, &observation);
}

static void assert_wait(const struct world *world, const struct peer_wait *wait,
                        enum resource_kind kind, const char *name, uint32_t owner)
{
    assert_int_equal(wait->wait.kind, kind);
    assert_string_equal(strings_get(&world->results.strings, (uint32_t)wait->wait.key), name);
    assert_int_equal(wait->wait.owner_process, owner);
    assert_int_equal(wait->wait.process, OWN);
    assert_int_equal(wait->wait.owner_stack, WAIT_NO_STACK);
}

/* As if the list were old, and no program were newer. */
static void let_time_pass(struct world *world)
{
    world->waits.listing = world->waits.sockets = (struct throttle){0};
    world->waits.program_added_ns = 1;
}

static void test_a_pipe(void **state)
{
    struct world *world = *state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    start_other(world, fds[1]);
    close(fds[1]);
    struct peer_wait wait = wait_on(world, fds[0], FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_PIPE, "pipe", OTHER);
    assert_false(wait.is_pending);
    assert_true(peer_waits_is_single(&world->waits, OTHER));
    /* A process that is no longer sampled is not shown as an owner. */
    peer_waits_end(&world->waits, world->other->number);
    wait = wait_on(world, fds[0], FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_PIPE, "pipe", WAIT_NO_OWNER);
    assert_false(peer_waits_is_single(&world->waits, OTHER));
    close(fds[0]);
}

/* The holder during an earlier wait need not be the holder now. */
static void test_a_file_lock(void **state)
{
    struct world *world = *state;
    char path[] = "/tmp/unit-peer-waits-XXXXXX";
    int held_fd = mkstemp(path), fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(held_fd >= 0 && fd >= 0);
    assert_int_equal(flock(held_fd, LOCK_EX), 0);
    start_other(world, held_fd);
    close(held_fd);
    struct peer_wait wait = wait_on(world, fd, FILE_USE_FLOCK);
    assert_int_equal(wait.wait.kind, RESOURCE_FILE_LOCK);
    assert_int_equal(wait.wait.owner_process, OTHER);
    world->waits.locks.cost_ns = 1000000000u; /* too soon to read the locks again */
    wait = wait_on(world, fd, FILE_USE_FLOCK);
    assert_int_equal(wait.wait.kind, RESOURCE_FILE_LOCK);
    assert_int_equal(wait.wait.owner_process, WAIT_NO_OWNER);
    unlink(path);
    close(fd);
}

/* The list is not rebuilt for each question; until it is, a newer socket has no owner. */
static void test_what_is_newer_than_the_list(void **state)
{
    struct world *world = *state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct peer_wait wait = wait_on(world, fds[0], FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_PIPE, "pipe within the process", WAIT_NO_OWNER);
    assert_false(wait.is_pending);
    int older[2], ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, older), 0);
    wait = wait_on(world, older[0], FILE_USE_READ); /* the first question reads the sockets */
    assert_int_equal(wait.wait.kind, RESOURCE_UNIX_SOCKET);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wait = wait_on(world, ends[0], FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_SOCKET, "socket (not looked up)", WAIT_NO_OWNER);
    assert_true(wait.is_pending);
    let_time_pass(world);
    wait = wait_on(world, ends[0], FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_UNIX_SOCKET, "unix stream within the process",
                WAIT_NO_OWNER);
    assert_false(wait.is_pending);
    uint64_t listed_ns = world->waits.listing.done_ns;
    for (int i = 0; i < 100; i++)
        wait = wait_on(world, ends[0], FILE_USE_READ);
    assert_int_equal(world->waits.listing.done_ns, listed_ns);
    assert_int_equal(world->waits.answer_count, 1);
    for (int i = 0; i < 2; i++) {
        close(older[i]);
        close(ends[i]);
        close(fds[i]);
    }
}

/* No list contains a netlink socket: it is not searched for again and again. */
static void test_a_socket_in_no_list(void **state)
{
    struct world *world = *state;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    assert_true(fd >= 0);
    let_time_pass(world);
    struct peer_wait wait = wait_on(world, fd, FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_SOCKET, "socket (not looked up)", WAIT_NO_OWNER);
    assert_false(wait.is_pending);
    wait = wait_on(world, fd, FILE_USE_READ);
    assert_false(wait.is_pending);
    close(fd);
}

/* A descriptor's number may be reused: what it refers to counts. */
static void test_a_number_that_is_used_again(void **state)
{
    struct world *world = *state;
    int fds[2], file = open("/proc/self/status", O_RDONLY);
    assert_int_equal(pipe(fds), 0);
    start_other(world, fds[1]);
    close(fds[1]);
    struct peer_wait wait = wait_on(world, fds[0], FILE_USE_READ);
    assert_wait(world, &wait, RESOURCE_PIPE, "pipe", OTHER);
    assert_int_equal(dup2(file, fds[0]), fds[0]);
    wait = wait_on(world, fds[0], FILE_USE_READ);
    assert_int_equal(wait.wait.kind, RESOURCE_FILE);
    assert_int_equal(wait.wait.owner_process, WAIT_NO_OWNER);
    close(file);
    close(fds[0]);
    wait = wait_on(world, fds[0], FILE_USE_READ);
    assert_int_equal(wait.wait.kind, RESOURCE_NOT_KNOWN);
}

static void test_hostile_links(void **state)
{
    struct world *world = *state;
    char longest[CALL_LINK_BYTES];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    static const char *const links[] = {"/a\nb\033[2J;\"", "pipe:[",
                                        "pipe:[-1]",       "socket:[99999999999999999999999]",
                                        "pipe:[1]x",       "anon_inode:[eventpoll]",
                                        "\xff\xfe",        "x"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        struct peer_wait wait = wait_on_link(world, links[i]);
        assert_int_not_equal(wait.wait.kind, RESOURCE_NOT_KNOWN);
        assert_int_equal(wait.wait.owner_process, WAIT_NO_OWNER);
    }
    struct peer_wait wait = wait_on_link(world, longest);
    assert_wait(world, &wait, RESOURCE_FILE, longest, WAIT_NO_OWNER);
    wait = wait_on_link(world, "");
    assert_int_equal(wait.wait.kind, RESOURCE_NOT_KNOWN);
}

/* A program may wait on any number of files. */
static void test_very_many_names(void **state)
{
    struct world *world = *state;
    struct peer_wait wait;
    char link[32];
    for (int i = 0; i < 10000; i++) {
        snprintf(link, sizeof link, "/dev/file-%d", i);
        wait = wait_on_link(world, link);
    }
    assert_wait(world, &wait, RESOURCE_FILE, "file", WAIT_NO_OWNER);
    assert_true(world->results.strings.count < 5000);
    wait = wait_on_link(world, "/dev/file-7");
    assert_wait(world, &wait, RESOURCE_FILE, "/dev/file-7", WAIT_NO_OWNER);
}

static void test_a_path_that_is_too_long(void **state)
{
    struct world *world = *state;
    char path[600];
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY), deepest = fd;
    char name[250];
    memset(name, 'y', sizeof name);
    name[sizeof name - 1] = '\0';
    snprintf(path, sizeof path, "%s-%d", "unit-peer-waits", getpid());
    assert_int_equal(mkdirat(fd, path, 0700), 0);
    int first = openat(fd, path, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(first, name, 0700), 0);
    int second = openat(first, name, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(second, name, 0700), 0);
    deepest = openat(second, name, O_RDONLY | O_DIRECTORY);
    struct peer_wait wait = wait_on(world, deepest, FILE_USE_OTHER);
    const char *shown = strings_get(&world->results.strings, (uint32_t)wait.wait.key);
    assert_int_equal(strlen(shown), CALL_LINK_BYTES - 1);
    assert_string_equal(shown + CALL_LINK_BYTES - 4, "...");
    unlinkat(second, name, AT_REMOVEDIR);
    unlinkat(first, name, AT_REMOVEDIR);
    unlinkat(fd, path, AT_REMOVEDIR);
    close(deepest);
    close(second);
    close(first);
    close(fd);
}

static void test_children(void **state)
{
    struct world *world = *state;
    char name[32];
    start_other(world, -1);
    struct call_target call = {.kind = CALL_PROCESS, .fd = -1, .process = world->child_id};
    struct observation observation = observation_of(world, &call);
    struct peer_wait wait = find(world, &observation);
    snprintf(name, sizeof name, "process %d", world->child_id);
    assert_wait(world, &wait, RESOURCE_PROCESS, name, OTHER);
    assert_false(wait.is_pending);
    /* The child is not sampled (yet). */
    world->child = (struct waited_child){0};
    observation.wait.call.process = 1;
    wait = find(world, &observation);
    assert_wait(world, &wait, RESOURCE_PROCESS, "process 1", WAIT_NO_OWNER);
    assert_true(wait.is_pending);
    /* A wait for any child: since then, the thread has moved, and may wait for another one or for
     * none. */
    world->child = (struct waited_child){0};
    observation.wait.call.process = -1;
    wait = find(world, &observation);
    assert_wait(world, &wait, RESOURCE_PROCESS, "any child", WAIT_NO_OWNER);
}

static void test_polls(void **state)
{
    struct world *world = *state;
    static const struct {
        uint64_t count;
        const char *name;
    } cases[] = {{2, "2 descriptors"},
                 {8, "8 descriptors"},
                 {9, "8 or more descriptors"},
                 {1000, "512 or more descriptors"},
                 {UINT64_MAX, "9223372036854775808 or more descriptors"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct call_target call = {.kind = CALL_POLL, .count = cases[i].count};
        const struct observation observation = observation_of(world, &call);
        struct peer_wait wait = find(world, &observation);
        assert_wait(world, &wait, RESOURCE_POLL, cases[i].name, WAIT_NO_OWNER);
    }
}

static void test_epolls(void **state)
{
    struct world *world = *state;
    int fds[2], epoll_fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[0], &event), 0);
    const struct call_target call = {.kind = CALL_EPOLL, .fd = epoll_fd};
    const struct observation observation = observation_of(world, &call);
    struct peer_wait wait = find(world, &observation);
    assert_wait(world, &wait, RESOURCE_PIPE, "pipe within the process", WAIT_NO_OWNER);
    /* The epoll list is not reread at once. */
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[1], &event), 0);
    wait = find(world, &observation);
    assert_int_equal(wait.wait.kind, RESOURCE_PIPE);
    const struct call_target none = {.kind = CALL_EPOLL, .fd = 12345};
    const struct observation of_none = observation_of(world, &none);
    wait = find(world, &of_none);
    assert_wait(world, &wait, RESOURCE_POLL, "several descriptors", WAIT_NO_OWNER);
    close(epoll_fd);
    close(fds[0]);
    close(fds[1]);
}

/* In any order. */
static void test_programs_end(void **state)
{
    struct world *world = *state;
    struct program *later = program_of(getpid(), 7), *earlier = program_of(getpid(), 5);
    assert_int_equal(peer_waits_begin(&world->waits, later, 0), 0);
    assert_int_equal(peer_waits_begin(&world->waits, earlier, 0), 0);
    assert_int_equal(world->waits.program_count, 3);
    peer_waits_end(&world->waits, 5);
    assert_int_equal(world->waits.program_count, 2);
    program_release(later);
    program_release(earlier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_pipe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_lock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_programs_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_newer_than_the_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_number_that_is_used_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_socket_in_no_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_very_many_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_path_that_is_too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_children, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_polls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_epolls, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
