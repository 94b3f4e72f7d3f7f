#include "runtime/python/layout.h"

#include <errno.h>
#include <string.h>

/* As gdb shows it of builds with debug information:
 *     gdb -batch -ex 'ptype /o PyCodeObject' libpython3.11.so
 * It is the same in all releases of a minor version, and with and without --with-pydebug. */
static const struct {
    uint32_t minor_version; /* PY_VERSION_HEX >> 16 */
    struct python_layout layout;
} layouts[] = {
    {0x030b,
     {
         .runtime_interpreters = 0x28,
         .runtime_gil = 0x168,
         .interpreter_next = 0,
         .interpreter_threads = 0x10,
         .interpreter_gil = PYTHON_NOWHERE,
         .thread_next = 0x8,
         .thread_native_id = 0xa0,
         .thread_frame = 0x38,
         .noted_frame = 0x8,
         .frame_code = 0x20,
         .frame_previous = 0x30,
         .frame_instruction = 0x38,
         .frame_owner = 0x45,
         .frame_is_entry = 0x44,
         .object_type = 0x8,
         .code_filename = 0x70,
         .code_qualname = 0x80,
         .code_first_line = 0x48,
         .code_lines = 0x88,
         .code_instructions = 0xb8,
         .text_length = 0x10,
         .text_state = 0x20,
         .ascii_text = 0x30,
         .other_text = 0x48,
         .bytes_length = 0x10,
         .bytes_data = 0x20,
     }},
    {0x030c,
     {
         .runtime_interpreters = 0x28,
         .runtime_gil = PYTHON_NOWHERE,
         .interpreter_next = 0,
         .interpreter_threads = 0x48,
         .interpreter_gil = 0x180,
         .thread_next = 0x8,
         .thread_native_id = 0x90,
         .thread_frame = 0x38,
         .noted_frame = 0,
         .frame_code = 0,
         .frame_previous = 0x8,
         .frame_instruction = 0x38,
         .frame_owner = 0x46,
         .frame_is_entry = PYTHON_NOWHERE,
         .object_type = 0x8,
         .code_filename = 0x70,
         .code_qualname = 0x80,
         .code_first_line = 0x44,
         .code_lines = 0x88,
         .code_instructions = 0xc0,
         .text_length = 0x10,
         .text_state = 0x20,
         .ascii_text = 0x28,
         .other_text = 0x38,
         .bytes_length = 0x10,
         .bytes_data = 0x20,
     }},
};

const struct python_layout *python_layout_of(uint32_t version)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (version >> 16 == layouts[i].minor_version)
            return &layouts[i].layout;
    }
    return NULL;
}

/* The members of _Py_DebugOffsets, each a uint64_t, by their number. */
enum {
    VERSION = 1,
    FREE_THREADED = 2,
    INTERPRETERS_HEAD = 5,
    INTERPRETER_NEXT = 8,
    THREADS_HEAD = 9,
    CEVAL_GIL = 14,
    THREAD_NEXT = 21,
    CURRENT_FRAME = 23,
    NATIVE_THREAD_ID = 25,
    FRAME_PREVIOUS = 29,
    FRAME_EXECUTABLE = 30,
    FRAME_INSTR_PTR = 31,
    FRAME_OWNER = 33,
    CODE_FILENAME = 35,
    CODE_QUALNAME = 37,
    CODE_LINETABLE = 38,
    CODE_FIRSTLINENO = 39,
    CODE_ADAPTIVE = 43,
    OBJECT_TYPE = 45,
    BYTES_SIZE = 65,
    BYTES_SVAL = 66,
    UNICODE_STATE = 68,
    UNICODE_LENGTH = 69,
    ASCII_OBJECT_SIZE = 70,
    OFFSETS_USED
};

#define KNOWN_VERSION 0x030du
/* PyCompactUnicodeObject has utf8_length and utf8 behind what PyASCIIObject has
 * (Include/cpython/unicodeobject.h). */
#define COMPACT_MORE_BYTES 16
#define OFFSET_MAX 0x7fffu

static uint16_t offset(uint64_t word, bool *is_bad)
{
    *is_bad = *is_bad || word > OFFSET_MAX;
    return (uint16_t)word;
}

int python_layout_read(const void *offsets, size_t bytes, struct python_layout *ret_layout)
{
    uint64_t words[OFFSETS_USED];
    if (bytes < sizeof words)
        return -EBADMSG;
    memcpy(words, offsets, sizeof words);
    if (memcmp(words, "xdebugpy", 8) != 0)
        return -EBADMSG;
    if (words[VERSION] >> 16 != KNOWN_VERSION || words[FREE_THREADED])
        return -ENOTSUP;
    bool is_bad = false;
    *ret_layout = (struct python_layout){
        .runtime_interpreters = offset(words[INTERPRETERS_HEAD], &is_bad),
        .runtime_gil = PYTHON_NOWHERE,
        .interpreter_gil = offset(words[CEVAL_GIL], &is_bad),
        .interpreter_next = offset(words[INTERPRETER_NEXT], &is_bad),
        .interpreter_threads = offset(words[THREADS_HEAD], &is_bad),
        .thread_next = offset(words[THREAD_NEXT], &is_bad),
        .thread_native_id = offset(words[NATIVE_THREAD_ID], &is_bad),
        .thread_frame = offset(words[CURRENT_FRAME], &is_bad),
        .noted_frame = PYTHON_NOWHERE,
        .frame_code = offset(words[FRAME_EXECUTABLE], &is_bad),
        .frame_previous = offset(words[FRAME_PREVIOUS], &is_bad),
        .frame_instruction = offset(words[FRAME_INSTR_PTR], &is_bad),
        .frame_owner = offset(words[FRAME_OWNER], &is_bad),
        .frame_is_entry = PYTHON_NOWHERE,
        .object_type = offset(words[OBJECT_TYPE], &is_bad),
        .code_filename = offset(words[CODE_FILENAME], &is_bad),
        .code_qualname = offset(words[CODE_QUALNAME], &is_bad),
        .code_first_line = offset(words[CODE_FIRSTLINENO], &is_bad),
        .code_lines = offset(words[CODE_LINETABLE], &is_bad),
        .code_instructions = offset(words[CODE_ADAPTIVE], &is_bad),
        .text_length = offset(words[UNICODE_LENGTH], &is_bad),
        .text_state = offset(words[UNICODE_STATE], &is_bad),
        .ascii_text = offset(words[ASCII_OBJECT_SIZE], &is_bad),
        .other_text = offset(words[ASCII_OBJECT_SIZE] + COMPACT_MORE_BYTES, &is_bad),
        .bytes_length = offset(words[BYTES_SIZE], &is_bad),
        .bytes_data = offset(words[BYTES_SVAL], &is_bad),
    };
    return is_bad ? -EBADMSG : 0;
}
