/* Runs a fuzz target over the files in its corpus, as a unit test: a crash or a hang ends the
 * program. argv[0] is named after the target; CORPUS is the folder with all corpora. */
#include "input.h"

#include "unit/unit.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#define HANG_SECONDS 60 /* for an input of a few KB */

static void replay_file(int folder, const char *name)
{
    size_t length;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    char *contents = contents_of(fd, &length);
    close(fd);
    /* Without the byte that contents_of adds. */
    uint8_t *data = copy_of((struct input){(const uint8_t *)contents, length}, 0);
    free(contents);
    alarm(HANG_SECONDS);
    LLVMFuzzerTestOneInput(data, length);
    alarm(0);
    free(data);
}

static void test_corpus(void **state)
{
    (void)state;
    DIR *folder = opendir(CORPUS);
    assert_non_null(folder);
    size_t files = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        replay_file(dirfd(folder), entry->d_name);
        files++;
    }
    closedir(folder);
    assert_in_range(files, 4, SIZE_MAX);
}

/* Inputs that need not be in a corpus: nothing at all, and numbers alone, of any value. */
static void test_small_inputs(void **state)
{
    (void)state;
    static uint8_t bytes[64];
    for (unsigned value = 0; value < 256; value++) {
        memset(bytes, (int)value, sizeof bytes);
        for (size_t length = 0; length <= sizeof bytes; length += 8) {
            uint8_t *data = copy_of((struct input){bytes, length}, 0);
            LLVMFuzzerTestOneInput(data, length);
            free(data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_inputs),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests_name("fuzz", tests, NULL, NULL);
}
