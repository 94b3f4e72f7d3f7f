#include "runtime/python/layout.h"

#include <errno.h>
#include <string.h>

/* ---- Before 3.13 ---- */

/* As gdb shows it of builds with debug information:
 *     gdb -batch -ex 'ptype /o PyCodeObject' libpython3.11.so
 * and offsetof shows it of 3.9 and 3.10, in a program that includes their internal headers. It is
 * the same in all releases of a minor version, and with and without --with-pydebug. */

/* 3.9 and 3.10 have co_name instead of qualified names, and frames without an owner: the value that
 * is read as the owner does not matter. */
#define LAYOUT_3_9(lasti)                                                                          \
    .has_frame_objects = true, .frame_instruction = lasti, .frame_owner = lasti,                   \
    .runtime_interpreters = 0x20, .runtime_gil = 0x160, .interpreter_next = 0,                     \
    .interpreter_threads = 0x8, .interpreter_gil = PYTHON_NOWHERE, .thread_next = 0x8,             \
    .thread_native_id = 0xb0, .thread_frame = 0x18, .noted_frame = PYTHON_NOWHERE,                 \
    .frame_code = 0x20, .frame_previous = 0x18, .frame_is_entry = PYTHON_NOWHERE,                  \
    .object_type = 0x8, .code_filename = 0x68, .code_qualname = 0x70, .code_first_line = 0x28,     \
    .code_lines = 0x78, .code_instructions = PYTHON_NOWHERE, .text_length = 0x10,                  \
    .text_state = 0x20, .ascii_text = 0x30, .other_text = 0x48, .bytes_length = 0x10,              \
    .bytes_data = 0x20

static const struct {
    uint32_t minor_version; /* PY_VERSION_HEX >> 16 */
    struct python_layout layout;
} layouts[] = {
    {0x0309, {LAYOUT_3_9(0x68), .line_table = PYTHON_LNOTAB}},
    {0x030a, {LAYOUT_3_9(0x60), .line_table = PYTHON_LINE_TABLE}},
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

/* ---- From 3.13 on ---- */

/* The members of _Py_DebugOffsets, each a uint64_t. These have the same places in all versions: */
enum { VERSION = 1, FREE_THREADED = 2, INTERPRETERS_HEAD = 5, INTERPRETER_NEXT = 8, THREADS_HEAD };

/* By their number; members of one group keep their order. */
static const struct told {
    uint32_t minor_version; /* PY_VERSION_HEX >> 16 */
    uint8_t ceval_gil;
    uint8_t thread_next, current_frame, native_thread_id;
    uint8_t frame_previous, frame_executable, frame_instr_ptr, frame_owner;
    uint8_t code_filename, code_qualname, code_linetable, code_firstlineno, code_adaptive;
    uint8_t object_type;
    uint8_t bytes_size, bytes_sval;
    uint8_t unicode_state, unicode_length, asciiobject_size;
} told[] = {
    {0x030d, 14, 21, 23, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70},
    {0x030e, 15, 24, 26, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80},
    {0x030f, 15, 24, 26, 31, 40, 41, 42, 44, 48, 50, 51, 52, 56, 59, 87, 88, 90, 91, 92},
};

static const struct told *told_by(uint64_t version)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        if (version >> 16 == told[i].minor_version)
            return &told[i];
    }
    return NULL;
}

/* PyCompactUnicodeObject has utf8_length and utf8 behind what PyASCIIObject has
 * (Include/cpython/unicodeobject.h). */
#define COMPACT_MORE_BYTES 16
#define OFFSET_MAX 0x7fffu

struct words {
    uint64_t items[PYTHON_OFFSETS_BYTES / sizeof(uint64_t)];
    bool has_bad;
};

static uint16_t offset(struct words *words, uint8_t number)
{
    uint64_t word = words->items[number];
    words->has_bad = words->has_bad || word > OFFSET_MAX;
    return (uint16_t)word;
}

static void copy_words(struct words *words, const void *offsets, size_t bytes)
{
    memcpy(words->items, offsets, bytes < sizeof words->items ? bytes : sizeof words->items);
}

static bool has_cookie(const struct words *words)
{
    return memcmp(words->items, "xdebugpy", 8) == 0;
}

bool python_layout_is_free_threaded(const void *offsets, size_t bytes)
{
    struct words words = {0};
    copy_words(&words, offsets, bytes);
    return has_cookie(&words) && words.items[FREE_THREADED];
}

int python_layout_read(const void *offsets, size_t bytes, struct python_layout *ret_layout)
{
    struct words words = {0};
    copy_words(&words, offsets, bytes);
    if (!has_cookie(&words))
        return -EBADMSG;
    const struct told *at = told_by(words.items[VERSION]);
    if (!at || words.items[FREE_THREADED])
        return -ENOTSUP;
    if (bytes < (at->asciiobject_size + 1u) * sizeof *words.items)
        return -EBADMSG;
    *ret_layout = (struct python_layout){
        .runtime_interpreters = offset(&words, INTERPRETERS_HEAD),
        .runtime_gil = PYTHON_NOWHERE,
        .interpreter_gil = offset(&words, at->ceval_gil),
        .interpreter_next = offset(&words, INTERPRETER_NEXT),
        .interpreter_threads = offset(&words, THREADS_HEAD),
        .thread_next = offset(&words, at->thread_next),
        .thread_native_id = offset(&words, at->native_thread_id),
        .thread_frame = offset(&words, at->current_frame),
        .noted_frame = PYTHON_NOWHERE,
        .frame_code = offset(&words, at->frame_executable),
        .frame_previous = offset(&words, at->frame_previous),
        .frame_instruction = offset(&words, at->frame_instr_ptr),
        .frame_owner = offset(&words, at->frame_owner),
        .frame_is_entry = PYTHON_NOWHERE,
        .object_type = offset(&words, at->object_type),
        .code_filename = offset(&words, at->code_filename),
        .code_qualname = offset(&words, at->code_qualname),
        .code_first_line = offset(&words, at->code_firstlineno),
        .code_lines = offset(&words, at->code_linetable),
        .code_instructions = offset(&words, at->code_adaptive),
        .text_length = offset(&words, at->unicode_length),
        .text_state = offset(&words, at->unicode_state),
        .ascii_text = offset(&words, at->asciiobject_size),
        .bytes_length = offset(&words, at->bytes_size),
        .bytes_data = offset(&words, at->bytes_sval),
    };
    ret_layout->other_text = ret_layout->ascii_text + COMPACT_MORE_BYTES;
    return words.has_bad ? -EBADMSG : 0;
}
