/* The explanation for a process that may not be traced. */
#include "unit.h"
#include "fgprof.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static long scope; /* Yama's ptrace_scope, as if this kernel had it */

long __wrap_procfs_number(const char *path, long none);

long __wrap_procfs_number(const char *path, long none)
{
    return strstr(path, "yama") ? scope : none;
}

/* Explains a refusal by a process of our own: only Yama, or something unknown, can be the reason.
 */
static void expect(long of_yama, const char *end)
{
    char text[512];
    scope = of_yama;
    fgprof_explain(getpid(), -EPERM, text, sizeof text);
    size_t length = strlen(text);
    assert_true(length > strlen(end));
    assert_string_equal(text + length - strlen(end), end);
}

static void test_what_helps_depends_on_yama(void **state)
{
    (void)state;
    expect(1, "scope is 1; run as root, with CAP_SYS_PTRACE, or start the program with "
              "`fgprof-c run`");
    expect(2, "scope is 2; run as root or with CAP_SYS_PTRACE");
    expect(3, "scope is 3, which forbids it until the next boot");
    expect(0, "(in a container: --cap-add=SYS_PTRACE)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_helps_depends_on_yama),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
