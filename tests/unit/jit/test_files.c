/* Which files of a process are trusted to name its code. */
#include "unit.h"
#include "jit/files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

/* A root directory with /tmp, for a process 7 of this user. */
struct world {
    char root[64], path[96];
    struct jit_owner owner;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    strcpy(world->root, "/tmp/unit-jit-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    snprintf(world->path, sizeof world->path, "%s/tmp", world->root);
    assert_int_equal(mkdir(world->path, 0700), 0);
    snprintf(world->path, sizeof world->path, "%s/tmp/perf-7.map", world->root);
    world->owner = (struct jit_owner){
        .root_fd = open(world->root, O_PATH | O_DIRECTORY),
        .pid = 7,
        .user = geteuid(),
        .began_s = time(NULL),
    };
    *state = world;
    return world->owner.root_fd < 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    char path[96];
    snprintf(path, sizeof path, "%s/tmp", world->root);
    unlink(world->path);
    if (unlink(path))
        rmdir(path);
    snprintf(path, sizeof path, "%s/elsewhere", world->root);
    rmdir(path);
    rmdir(world->root);
    jit_owner_close(&world->owner);
    free(world);
    return 0;
}

static void put_map(const struct world *world)
{
    int fd = open(world->path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "map", 3), 3);
    close(fd);
}

static void test_a_map_in_a_file_system_that_may_not_answer(void **state)
{
    struct world *world = *state;
    put_map(world);
    world->owner.has_slow_maps = true;
    assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
}

static void assert_opens(const struct world *world)
{
    char text[4] = "";
    int fd = jit_owner_open_map(&world->owner);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, 3), 3);
    assert_string_equal(text, "map");
    close(fd);
}

static void test_the_map_of_the_process(void **state)
{
    struct world *world = *state;
    assert_int_equal(jit_owner_open_map(&world->owner), -ENOENT);
    put_map(world);
    assert_opens(world);
    world->owner.pid = 8;
    assert_int_equal(jit_owner_open_map(&world->owner), -ENOENT);
}

static void test_another_user_s(void **state)
{
    struct world *world = *state;
    put_map(world);
    world->owner.user = geteuid() + 1;
    /* Root's files are trusted. */
    if (geteuid() == 0)
        assert_opens(world);
    else
        assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
    if (geteuid() == 0) {
        assert_int_equal(chown(world->path, 1, (gid_t)-1), 0);
        world->owner.user = 2;
        assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
        world->owner.user = 1;
        assert_opens(world);
    }
}

static void test_one_from_before_the_process(void **state)
{
    struct world *world = *state;
    struct timeval old[2] = {{.tv_sec = world->owner.began_s - 100},
                             {.tv_sec = world->owner.began_s - 100}};
    put_map(world);
    assert_int_equal(utimes(world->path, old), 0);
    assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
}

static void test_no_regular_file(void **state)
{
    struct world *world = *state;
    /* Opening it would wait for a writer. */
    assert_int_equal(mkfifo(world->path, 0600), 0);
    assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
    unlink(world->path);
    assert_int_equal(symlink("/etc/passwd", world->path), 0);
    assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
    unlink(world->path);
    assert_int_equal(mkdir(world->path, 0700), 0);
    assert_int_equal(jit_owner_open_map(&world->owner), -EACCES);
    rmdir(world->path);
}

/* If /tmp is a symbolic link, it is resolved below the process's root, not ours. */
static void test_a_link_on_the_way(void **state)
{
    struct world *world = *state;
    char tmp[96], elsewhere[96];
    snprintf(tmp, sizeof tmp, "%s/tmp", world->root);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", world->root);
    put_map(world);
    assert_int_equal(rename(tmp, elsewhere), 0);
    assert_int_equal(symlink("/elsewhere", tmp), 0);
    assert_opens(world);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere/perf-7.map", world->root);
    unlink(elsewhere);
}

static void test_status(void **state)
{
    (void)state;
    uid_t user;
    pid_t pid;
    assert_true(jit_owner_parse("Name:\tUid:\nPid:\t12\nUid:\t1\t1000\t3\t4\nNStgid:\t12\t8\n"
                                "NSpid:\t120\t45\t7\nNSpgid:\t9\n",
                                &user, &pid));
    assert_int_equal(user, 1000);
    assert_int_equal(pid, 7);
    assert_true(jit_owner_parse("Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t120\n", &user, &pid));
    assert_int_equal(pid, 120);
    assert_false(jit_owner_parse("Name:\tx\nNSpid:\t120\n", &user, &pid));
    assert_false(jit_owner_parse("Name:\tx\nUid:\t0\t0\t0\t0\n", &user, &pid));
    assert_false(jit_owner_parse("Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t\n", &user, &pid));
}

static void test_this_process(void **state)
{
    (void)state;
    struct jit_owner owner;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_true(proc_fd >= 0);
    assert_int_equal(jit_owner_open(proc_fd, getpid(), &owner), 0);
    assert_int_equal(owner.user, geteuid());
    assert_int_equal(owner.pid, getpid());
    /* time() may be a tick behind. */
    assert_in_range(time(NULL) + 1 - owner.began_s, 0, 61);
    assert_int_equal(faccessat(owner.root_fd, "tmp", F_OK, 0), 0);
    jit_owner_close(&owner);
    close(proc_fd);
}

static void test_the_dump_by_its_name(void **state)
{
    (void)state;
    const struct jit_owner owner = {.pid = 7};
    assert_true(jit_owner_names_dump(&owner, "/srv/jit-7.dump"));
    assert_false(jit_owner_names_dump(&owner, "/srv/jit-77.dump"));
    assert_false(jit_owner_names_dump(&owner, "/srv/jit-7.dump.old"));
    assert_false(jit_owner_names_dump(&owner, "/srv/my-jit-7.dump"));
    assert_false(jit_owner_names_dump(&owner, ""));
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_a_map_in_a_file_system_that_may_not_answer),
        WITH_WORLD(test_the_map_of_the_process),
        WITH_WORLD(test_another_user_s),
        WITH_WORLD(test_one_from_before_the_process),
        WITH_WORLD(test_no_regular_file),
        WITH_WORLD(test_a_link_on_the_way),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_the_dump_by_its_name),
    };
    return cmocka_run_group_tests_name("jit_files", tests, NULL, NULL);
}
