/* What every unit test needs: cmocka, with the headers that it requires before it, and temporary
 * files that leave nothing behind. */
#ifndef FGPROF_TESTS_UNIT_H
#define FGPROF_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An unnamed file with these bytes, positioned at its start. */
static inline int file_of(const void *bytes, size_t length)
{
    int fd = memfd_create("unit", MFD_CLOEXEC);
    assert_true(fd >= 0);
    for (const char *from = bytes; length;) {
        ssize_t put = write(fd, from, length);
        assert_true(put > 0);
        from += put;
        length -= (size_t)put;
    }
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static inline int file_of_text(const char *text)
{
    return file_of(text, strlen(text));
}

/* The contents of `fd` from its start, followed by NUL. The caller frees them. */
static inline char *contents_of(int fd, size_t *ret_length)
{
    off_t length = lseek(fd, 0, SEEK_END);
    assert_true(length >= 0);
    char *text = malloc((size_t)length + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)length, 0), length);
    text[length] = '\0';
    if (ret_length)
        *ret_length = (size_t)length;
    return text;
}

#endif
