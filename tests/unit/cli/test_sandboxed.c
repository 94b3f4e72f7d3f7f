/* Recordings are read in a sandboxed process: what happens if it fails, and that it writes the same
 * output as this process would. Faults are planted in the function that reads: a file that begins
 * with FAULT and a number selects one. */
#include "unit.h"
#include "cli/commands.h"
#include "fgprof.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define FAULT "planted fault "
#define SECONDS 2 /* of CPU time for the child */

enum fault {
    FAULT_CRASH,
    FAULT_HANG,
    FAULT_EAT_MEMORY,
    FAULT_HALF, /* crashes after writing part of the output */
    FAULT_END,
    FAULT_OPEN,
    FAULT_CREATE,
    FAULT_SOCKET,
    FAULT_FORK,
    FAULT_KILL,
    FAULT_LIMIT,
    FAULT_TRUNCATE,
    FAULTS,
};

static char directory[] = "/tmp/fgprof-unit-XXXXXX";

static void eat_memory(void)
{
    for (;;) {
        volatile char *memory = malloc(64 << 20);
        if (!memory)
            abort();
        memory[0] = 1;
    }
}

static volatile int crash_at; /* not a constant, so that the compiler does not warn */

static void crash(void)
{
    *(volatile char *)(uintptr_t)crash_at = 1;
}

/* Returns only if the sandbox permits the attempt. */
static void plant(enum fault fault, int fd)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    switch (fault) {
    case FAULT_HANG:
        for (;;)
            ;
    case FAULT_EAT_MEMORY:
        eat_memory();
        break;
    case FAULT_HALF:
        assert_int_equal(write(STDOUT_FILENO, "half", 4), 4);
        crash();
        break;
    case FAULT_END:
        _exit(5);
    case FAULT_OPEN:
        open("/etc/passwd", O_RDONLY | O_CLOEXEC);
        break;
    case FAULT_CREATE:
        open("/tmp/fgprof-sandbox-was-here", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        break;
    case FAULT_SOCKET:
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        break;
    case FAULT_FORK:
        if (fork() == 0)
            _exit(0);
        break;
    case FAULT_KILL:
        kill(getppid(), SIGKILL);
        break;
    case FAULT_LIMIT:
        setrlimit(RLIMIT_CPU, &none);
        break;
    case FAULT_TRUNCATE:
        (void)!ftruncate(fd, 0);
        break;
    default:
        crash();
    }
}

int __real_fgprof_profile_read_fd(int fd, const char *name, unsigned *ret_version,
                                  fgprof_profile **ret_profile);
int __wrap_fgprof_profile_read_fd(int fd, const char *name, unsigned *ret_version,
                                  fgprof_profile **ret_profile);
int __wrap_fgprof_profile_read_fd(int fd, const char *name, unsigned *ret_version,
                                  fgprof_profile **ret_profile)
{
    char begin[sizeof FAULT + 3] = "";
    if (pread(fd, begin, sizeof begin - 1, 0) > 0 && strncmp(begin, FAULT, strlen(FAULT)) == 0)
        plant((enum fault)strtol(begin + strlen(FAULT), NULL, 10), fd);
    return __real_fgprof_profile_read_fd(fd, name, ret_version, ret_profile);
}

/* Runs this `convert` or `diff` command line. The caller frees *ret_said. */
static int run(const char **argv, char **ret_said)
{
    struct cli_options options;
    enum cli_command command = strcmp(argv[0], "diff") == 0 ? COMMAND_DIFF : COMMAND_CONVERT;
    int argc = 0, messages = file_of_text(""), before = dup(STDERR_FILENO);
    optind = 0; /* makes getopt_long(3) start anew */
    while (argv[argc])
        argc++;
    assert_int_equal(options_parse(argc, (char **)argv, command, &options), PARSE_OK);
    assert_int_equal(dup2(messages, STDERR_FILENO), STDERR_FILENO);
    int status = command == COMMAND_DIFF ? command_diff(&options) : command_convert(&options);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    *ret_said = contents_of(messages, NULL);
    close(before);
    close(messages);
    options_free(&options);
    return status;
}

static char *contents_of_path(const char *path, size_t *ret_length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    char *contents = contents_of(fd, ret_length);
    close(fd);
    return contents;
}

static void write_fault(const char *path, enum fault fault)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, FAULT "%d\n", fault);
    fclose(file);
}

static const char *why(enum fault fault)
{
    return fault == FAULT_HANG ? "reading it takes too long" : "its reader crashed";
}

static void check_fault(enum fault fault, bool is_second)
{
    const char *bad = "bad.fgprof", *good = GOLDEN "/version-1.fgprof", *out = "out.folded";
    const char *convert[] = {"convert", bad, "-o", out, NULL};
    const char *diff[] = {"diff", good, bad, "-o", out, NULL};
    char *said, wanted[256];
    write_fault(bad, fault);
    int kept = open(out, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(kept, "before", 6), 6);
    close(kept);
    assert_int_equal(run(is_second ? diff : convert, &said), EXIT_NOT_WRITTEN);
    snprintf(wanted, sizeof wanted, "fgprof-c: %s%s%s can't be read: %s\n", is_second ? good : "",
             is_second ? " or " : "", bad, why(fault));
    assert_string_equal(said, wanted);
    char *contents = contents_of_path(out, NULL);
    assert_string_equal(contents, "before");
    free(contents);
    free(said);
}

static void test_faults(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* without limits under AddressSanitizer */
#endif
    for (int fault = 0; fault < FAULTS; fault++)
        check_fault((enum fault)fault, false);
    check_fault(FAULT_CRASH, true);
    assert_int_equal(access("/tmp/fgprof-sandbox-was-here", F_OK), -1);
}

/* What this process writes itself, without a child. */
static char *written_here(const char *path, enum fgprof_format format, const char *command,
                          size_t *ret_length)
{
    fgprof_profile *profile;
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_read(path, &profile), 0);
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    assert_int_equal(fgprof_profile_set_command(profile, command), 0);
    assert_int_equal(fgprof_profile_write(profile, format, fd), 0);
    fgprof_profile_free(profile);
    char *contents = contents_of(fd, ret_length);
    close(fd);
    return contents;
}

static void test_same_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum fgprof_format format;
    } formats[] = {{"folded", FGPROF_FOLDED},
                   {"text", FGPROF_TEXT},
                   {"pprof", FGPROF_PPROF},
                   {"raw", FGPROF_RAW},
                   {"speedscope", FGPROF_SPEEDSCOPE}};
    const char *path = GOLDEN "/version-1.fgprof", *out = "out";
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const char *argv[] = {"convert", path, "-f", formats[i].name, "-o", out, NULL};
        char *said;
        char command[512];
        size_t length, wanted_length;
        assert_int_equal(run(argv, &said), EXIT_WRITTEN);
        assert_string_equal(said, "");
        snprintf(command, sizeof command, "fgprof-c convert %s -f %s -o out", path,
                 formats[i].name);
        char *contents = contents_of_path(out, &length);
        char *wanted = written_here(path, formats[i].format, command, &wanted_length);
        assert_int_equal(length, wanted_length);
        assert_memory_equal(contents, wanted, length);
        free(contents);
        free(wanted);
        free(said);
    }
}

/* The message names the output that can't be written, not the child. */
static void test_full_disk(void **state)
{
    (void)state;
    const char *argv[] = {"convert", GOLDEN "/version-1.fgprof", "-f", "html", "-o", "/dev/full",
                          NULL};
    char *said;
    assert_int_equal(run(argv, &said), EXIT_NOT_WRITTEN);
    assert_string_equal(said, "fgprof-c: /dev/full can't be written: No space left on device\n");
    free(said);
}

static int set_up(void **state)
{
    (void)state;
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit))
        return -1;
    limit.rlim_cur = SECONDS; /* of this process too, which needs little */
    return !mkdtemp(directory) || chdir(directory) || setrlimit(RLIMIT_CPU, &limit);
}

static int tear_down(void **state)
{
    (void)state;
    unlink("bad.fgprof");
    unlink("out.folded");
    unlink("out");
    return chdir("/") || rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
