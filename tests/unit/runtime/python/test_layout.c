#include "runtime/python/layout.h"
#include "unit.h"

#include <errno.h>

/* What is at _PyRuntime of CPython 3.13.0 for x86-64, as
 *     gdb -batch -ex 'x/73gx &_PyRuntime' libpython3.13.so.1.0
 * shows it: _Py_DebugOffsets. */
static const uint64_t offsets_3_13[] = {
    0x7970677562656478,
    0x30d00f0,
    0,
    0x452b8,
    0x260,
    0x278,
    0x2f998,
    0x1c68,
    0x1c60,
    0x1cb0,
    0x1ce8,
    0x1de8,
    0x1dd8,
    0x1de0,
    0x10,
    0x1e48,
    0,
    0x1e58,
    0x1e50,
    0x130,
    0,
    8,
    0x10,
    0x48,
    0x98,
    0xa0,
    0xe8,
    0x20,
    0x50,
    8,
    0,
    0x38,
    0x48,
    0x46,
    0xd0,
    0x70,
    0x78,
    0x80,
    0x88,
    0x44,
    0x34,
    0x60,
    0x68,
    0xc8,
    0x10,
    8,
    0x1a0,
    0x18,
    0x58,
    0xa8,
    0x20,
    0x18,
    0x10,
    0x28,
    0x18,
    0x10,
    0x30,
    0x20,
    0x28,
    0x18,
    0x10,
    0x20,
    0x10,
    0x18,
    0x28,
    0x10,
    0x20,
    0x40,
    0x20,
    0x10,
    0x28,
    0xf0,
    0xc8,
};

/* The same of Debian's 3.14.10 and 3.15.2. */
static const uint64_t offsets_3_14[] = {
    0x7970677562656478,
    0x30e0af0,
    0,
    0x4d4c8,
    0x310,
    0x328,
    0x37248,
    0x1c70,
    0x1c68,
    0x1cb0,
    0x1cc0,
    0x1cf0,
    0x1e08,
    0x1df8,
    0x1e00,
    0x10,
    0x1e68,
    0,
    0x1e78,
    0x1e70,
    0x1f38,
    0,
    0x340,
    0,
    8,
    0x10,
    0x48,
    0x98,
    0xa0,
    0xe8,
    0x20,
    0x58,
    8,
    0,
    0x38,
    0x50,
    0x4a,
    0x40,
    0,
    0xd8,
    0x70,
    0x78,
    0x80,
    0x88,
    0x44,
    0x34,
    0x60,
    0x68,
    0xd0,
    0,
    0x10,
    8,
    0x1a0,
    0x18,
    0x58,
    0xa8,
    0x28,
    0x20,
    0x10,
    0x28,
    0x18,
    0x10,
    0xc8,
    0x18,
    0x28,
    0x20,
    0x30,
    0x20,
    0x28,
    0x18,
    0x10,
    0x20,
    0x10,
    0x18,
    0x28,
    0x10,
    0x20,
    0x40,
    0x20,
    0x10,
    0x28,
    0x108,
    0xc0,
    0xa0,
    0x18,
    0x48,
    0x43,
    0,
    8,
    0x18,
    0x130,
    0x1f8c,
    0,
    4,
    0x200,
};
static const uint64_t offsets_3_15[] = {
    0x7970677562656478,
    0x30f02f0,
    0,
    0x549c8,
    0x390,
    0x3a8,
    0x373c0,
    0x1c68,
    0x1c60,
    0x1ca8,
    0x1cb8,
    0x1ce8,
    0x1da8,
    0x1d98,
    0x1da0,
    0x10,
    0x1e38,
    0,
    0x1e48,
    0x1e40,
    0x1f08,
    0,
    0x378,
    0,
    8,
    0x10,
    0x48,
    0x50,
    0x58,
    0x60,
    0xb0,
    0xb8,
    0x100,
    0x20,
    0x24,
    0x28,
    0x88,
    0x120,
    0,
    0x58,
    8,
    0,
    0x38,
    0x50,
    0x4a,
    0x40,
    0,
    0xd8,
    0x70,
    0x78,
    0x80,
    0x88,
    0x44,
    0x34,
    0x60,
    0x68,
    0xd0,
    0,
    0x10,
    8,
    0x1a8,
    0x18,
    0x58,
    0xa8,
    0x20,
    0x120,
    0x3b0,
    0x378,
    0x28,
    0x20,
    0x10,
    0x28,
    0x18,
    0x10,
    0xc8,
    0x18,
    0x28,
    0x20,
    0x30,
    0x20,
    0x28,
    0x18,
    0x10,
    0x20,
    0x10,
    0x18,
    0x28,
    0x10,
    0x20,
    0x40,
    0x20,
    0x10,
    0x28,
    0x38,
    0xb0,
    0x70,
    0x78,
    0x460,
    0x68,
    0xa0,
    0x18,
    0x48,
    0x43,
    0,
    8,
    0x18,
    0x158,
    0x1f5c,
    0,
    4,
    0x200,
};

static void test_what_an_interpreter_tells(void **state)
{
    (void)state;
    struct python_layout layout;
    assert_int_equal(python_layout_read(offsets_3_13, sizeof offsets_3_13, &layout), 0);
    assert_int_equal(layout.runtime_interpreters, 0x278);
    assert_int_equal(layout.interpreter_next, 0x1c60);
    assert_int_equal(layout.interpreter_threads, 0x1cb0);
    assert_int_equal(layout.interpreter_gil, 0x10);
    assert_int_equal(layout.runtime_gil, PYTHON_NOWHERE);
    assert_int_equal(layout.thread_next, 0x8);
    assert_int_equal(layout.thread_native_id, 0xa0);
    assert_int_equal(layout.thread_frame, 0x48);
    assert_int_equal(layout.noted_frame, PYTHON_NOWHERE);
    assert_int_equal(layout.frame_code, 0);
    assert_int_equal(layout.frame_previous, 0x8);
    assert_int_equal(layout.frame_instruction, 0x38);
    assert_int_equal(layout.frame_owner, 0x46);
    assert_int_equal(layout.code_qualname, 0x80);
    assert_int_equal(layout.code_lines, 0x88);
    assert_int_equal(layout.code_first_line, 0x44);
    assert_int_equal(layout.code_instructions, 0xc8);
    assert_int_equal(layout.ascii_text, 0x28);
    assert_int_equal(layout.other_text, 0x38);
    assert_int_equal(layout.bytes_data, 0x20);
}

static void test_what_3_14_and_3_15_tell(void **state)
{
    (void)state;
    struct python_layout layout;
    assert_int_equal(python_layout_read(offsets_3_14, sizeof offsets_3_14, &layout), 0);
    assert_int_equal(layout.interpreter_threads, 0x1cb0);
    assert_int_equal(layout.thread_native_id, 0xa0);
    assert_int_equal(layout.frame_instruction, 0x38);
    assert_int_equal(layout.frame_owner, 0x4a);
    assert_int_equal(layout.code_lines, 0x88);
    assert_int_equal(layout.code_instructions, 0xd0);
    assert_int_equal(layout.other_text, 0x38);
    assert_int_equal(python_layout_read(offsets_3_15, sizeof offsets_3_15, &layout), 0);
    assert_int_equal(layout.interpreter_threads, 0x1ca8);
    assert_int_equal(layout.thread_frame, 0x48);
    assert_int_equal(layout.thread_native_id, 0xb8);
    assert_int_equal(layout.frame_owner, 0x4a);
    assert_int_equal(layout.code_qualname, 0x80);
    assert_int_equal(layout.text_state, 0x20);
    assert_int_equal(layout.bytes_data, 0x20);
    assert_int_equal(python_layout_read(offsets_3_15, 92 * 8, &layout), -EBADMSG);
}

static void test_what_is_not_believed(void **state)
{
    (void)state;
    struct python_layout layout;
    uint64_t offsets[sizeof offsets_3_13 / sizeof *offsets_3_13];
    assert_int_equal(python_layout_read(offsets_3_13, 71 * 8 - 1, &layout), -EBADMSG);
    memcpy(offsets, offsets_3_13, sizeof offsets);
    offsets[0]++;
    assert_int_equal(python_layout_read(offsets, sizeof offsets, &layout), -EBADMSG);
    memcpy(offsets, offsets_3_13, sizeof offsets);
    offsets[31] = 1ull << 40; /* the offset of a frame's instruction */
    assert_int_equal(python_layout_read(offsets, sizeof offsets, &layout), -EBADMSG);
    memcpy(offsets, offsets_3_13, sizeof offsets);
    offsets[1] = 0x31000f0; /* 3.16 */
    assert_int_equal(python_layout_read(offsets, sizeof offsets, &layout), -ENOTSUP);
    memcpy(offsets, offsets_3_13, sizeof offsets);
    offsets[2] = 1; /* free-threaded */
    assert_int_equal(python_layout_read(offsets, sizeof offsets, &layout), -ENOTSUP);
    assert_true(python_layout_is_free_threaded(offsets, sizeof offsets));
    assert_false(python_layout_is_free_threaded(offsets, 16));
    assert_false(python_layout_is_free_threaded(offsets_3_13, sizeof offsets_3_13));
    offsets[0]++;
    assert_false(python_layout_is_free_threaded(offsets, sizeof offsets));
}

static void test_versions_of_the_table(void **state)
{
    (void)state;
    assert_non_null(python_layout_of(0x030b02f0));
    assert_ptr_equal(python_layout_of(0x030b07f0), python_layout_of(0x030b02f0));
    assert_non_null(python_layout_of(0x030c01f0));
    assert_ptr_not_equal(python_layout_of(0x030c01f0), python_layout_of(0x030b02f0));
    assert_int_equal(python_layout_of(0x030a0000)->line_table, PYTHON_LINE_TABLE);
    assert_int_equal(python_layout_of(0x03090000)->line_table, PYTHON_LNOTAB);
    assert_null(python_layout_of(0x030812f0));
    assert_null(python_layout_of(0x030d00f0));
    assert_null(python_layout_of(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_an_interpreter_tells),
        cmocka_unit_test(test_what_3_14_and_3_15_tell),
        cmocka_unit_test(test_what_is_not_believed),
        cmocka_unit_test(test_versions_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
