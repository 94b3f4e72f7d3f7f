#include "runtime/python/objects.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "proc/memory.h"

#define WORD sizeof(uint64_t)

bool python_time_is_over(const struct python_memory *memory)
{
    return memory->until_ns && monotonic_ns() >= memory->until_ns;
}

bool python_read(const struct python_memory *memory, uint64_t address, void *value, size_t bytes)
{
    return address && !python_time_is_over(memory) &&
           memory_read(memory->tid, memory->areas, address, value, bytes) == bytes;
}

/* ---- Text ---- */

/* PyASCIIObject.state: interned (2 bits), kind (3), compact, ascii
 * (Include/cpython/unicodeobject.h). */
#define STATE_KIND(state) ((state) >> 2 & 7)
#define STATE_IS_COMPACT (1u << 5)
#define STATE_IS_ASCII (1u << 6)

static size_t put_utf8(char *text, uint32_t c)
{
    if (c < 0x80) {
        text[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        text[0] = (char)(0xc0 | c >> 6);
        text[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        text[0] = (char)(0xe0 | c >> 12);
        text[1] = (char)(0x80 | (c >> 6 & 0x3f));
        text[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | (c >> 18 & 7));
    text[1] = (char)(0x80 | (c >> 12 & 0x3f));
    text[2] = (char)(0x80 | (c >> 6 & 0x3f));
    text[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Neither a surrogate nor beyond Unicode, which UTF-8 does not have. */
static uint32_t as_character(uint32_t c)
{
    return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || !c ? 0xfffd : c;
}

/* No function's or file's name is as long: it is none. */
#define TEXT_LENGTH_MAX 65536u

void python_text_read(const struct python_memory *memory, uint64_t address,
                      char ret_text[PYTHON_TEXT_BYTES])
{
    const struct python_layout *layout = memory->layout;
    unsigned char raw[PYTHON_TEXT_BYTES];
    uint64_t length;
    uint32_t state;
    *ret_text = '\0';
    if (!python_read(memory, address + layout->text_length, &length, sizeof length) ||
        !python_read(memory, address + layout->text_state, &state, sizeof state) ||
        !(state & STATE_IS_COMPACT) || length > TEXT_LENGTH_MAX)
        return;
    bool is_ascii = state & STATE_IS_ASCII;
    size_t each = STATE_KIND(state), used = 0;
    if (each != 1 && each != 2 && each != 4)
        return;
    size_t max = sizeof raw / each, count = length < max ? length : max;
    address += is_ascii ? layout->ascii_text : layout->other_text;
    if (count && !python_read(memory, address, raw, count * each))
        return;
    for (size_t i = 0; i < count && used + 4 < PYTHON_TEXT_BYTES; i++) {
        uint32_t c = 0;
        memcpy(&c, raw + i * each, each); /* both architectures have the lowest byte first */
        used += put_utf8(ret_text + used, as_character(c));
    }
    ret_text[used] = '\0';
}

/* ---- Dictionaries ---- */

/* PyDictObject and PyDictKeysObject (pycore_dict.h). */
#define DICT_KEYS 32u
#define DICT_VALUES 40u
#define KEYS_HEAD_BYTES 32u
#define KEYS_LOG2_INDEX_BYTES 9u
#define KEYS_KIND 10u
#define KEYS_COUNT 24u
#define KEYS_ARE_GENERAL 0
#define DICT_ENTRIES_MAX 65536u

static bool open_keys(const struct python_memory *memory, uint64_t keys,
                      struct python_dict *ret_dict)
{
    unsigned char head[KEYS_HEAD_BYTES];
    if (!python_read(memory, keys, head, sizeof head) || head[KEYS_LOG2_INDEX_BYTES] > 32)
        return false;
    *ret_dict = (struct python_dict){
        .entries = keys + sizeof head + ((uint64_t)1 << head[KEYS_LOG2_INDEX_BYTES]),
        .count = load_word(head, KEYS_COUNT),
        .is_general = head[KEYS_KIND] == KEYS_ARE_GENERAL,
    };
    return ret_dict->count <= DICT_ENTRIES_MAX;
}

bool python_dict_open(const struct python_memory *memory, uint64_t dict,
                      struct python_dict *ret_dict)
{
    uint64_t keys;
    return dict && python_read(memory, dict + DICT_KEYS, &keys, sizeof keys) &&
           open_keys(memory, keys, ret_dict);
}

bool python_dict_entry(const struct python_memory *memory, const struct python_dict *dict,
                       uint64_t number, struct python_dict_entry *ret_entry)
{
    uint64_t words[3] = {0};
    size_t first = dict->is_general ? 0 : 1, bytes = sizeof words - first * WORD;
    if (!python_read(memory, dict->entries + number * bytes, words + first, bytes))
        return false;
    *ret_entry = (struct python_dict_entry){words[0], words[1], words[2]};
    return !dict->values ||
           python_read(memory, dict->values + number * WORD, &ret_entry->value, WORD);
}

static uint64_t find_value(const struct python_memory *memory, const struct python_dict *dict,
                           const char *name)
{
    struct python_dict_entry entry;
    char text[PYTHON_TEXT_BYTES];
    for (uint64_t i = 0; i < dict->count && python_dict_entry(memory, dict, i, &entry); i++) {
        if (!entry.key || !entry.value)
            continue;
        python_text_read(memory, entry.key, text);
        if (strcmp(text, name) == 0)
            return entry.value;
    }
    return 0;
}

/* The value of a name; 0: it has none, or there is no dictionary. */
static uint64_t dict_find(const struct python_memory *memory, uint64_t dict, const char *name)
{
    struct python_dict open;
    return python_dict_open(memory, dict, &open) ? find_value(memory, &open, name) : 0;
}

/* ---- Attributes ---- */

/* PyTypeObject and PyHeapTypeObject (cpython/object.h). */
#define TYPE_FLAGS 168u
#define TYPE_HAS_INLINE_VALUES (1u << 2)
#define TYPE_KEYS_OF_3_11 872u
#define TYPE_KEYS 880u
#define VERSION_3_11 0x030bu
#define VERSION_3_12 0x030cu
#define VERSION_3_13 0x030du
/* An object from four words before it on (pycore_object.h, Objects/object_layout.md). */
enum { VALUES_OF_3_11, DICT, TYPE = 5, INLINE_HEAD, OBJECT_WORDS };
#define INLINE_IS_VALID (0xffull << 24) /* struct _dictvalues: its fourth byte */

/* Where the object's values are, in the order of its type's keys; 0: in its dictionary. */
static uint64_t values_of(const struct python_memory *memory, uint64_t object,
                          const uint64_t words[OBJECT_WORDS])
{
    uint64_t flags;
    switch (memory->version >> 16) {
    case VERSION_3_11:
        return words[VALUES_OF_3_11];
    case VERSION_3_12: /* one or the other, with a bit that tells */
        return words[DICT] & 1 ? words[DICT] + 1 : 0;
    case VERSION_3_13:
        return python_read(memory, words[TYPE] + TYPE_FLAGS, &flags, sizeof flags) &&
                       flags & TYPE_HAS_INLINE_VALUES && words[INLINE_HEAD] & INLINE_IS_VALID
                   ? object + 3 * WORD
                   : 0;
    default:
        return 0;
    }
}

uint64_t python_attribute(const struct python_memory *memory, uint64_t object, const char *name)
{
    uint64_t words[OBJECT_WORDS], keys;
    uint64_t type_keys = memory->version >> 16 == VERSION_3_11 ? TYPE_KEYS_OF_3_11 : TYPE_KEYS;
    struct python_dict dict = {0};
    if (!object || !python_read(memory, object - 4 * WORD, words, sizeof words))
        return 0;
    uint64_t values = values_of(memory, object, words);
    if (values) {
        if (!words[TYPE] || !python_read(memory, words[TYPE] + type_keys, &keys, sizeof keys) ||
            !open_keys(memory, keys, &dict))
            return 0;
        dict.values = values;
    } else {
        /* Its dictionary was asked for, and may share the type's keys still. */
        if (!python_dict_open(memory, words[DICT], &dict) ||
            !python_read(memory, words[DICT] + DICT_VALUES, &values, sizeof values))
            return 0;
        dict.values = values && memory->version >> 16 == VERSION_3_13 ? values + WORD : values;
    }
    return find_value(memory, &dict, name);
}

/* ---- Modules ---- */

/* In 3.13 this word of _Py_DebugOffsets says where sys.modules is. */
#define MODULES_WORD 11
#define MODULES_OF_3_11 888
#define MODULES_OF_3_12 944
#define MODULE_DICT 16u

struct python_modules python_modules_of(const struct python_memory *memory, uint64_t runtime)
{
    uint32_t minor = memory->version >> 16;
    struct python_modules modules = {
        .interpreter_at = runtime + memory->layout->runtime_interpreters + WORD,
        .offset = minor == VERSION_3_11   ? MODULES_OF_3_11
                  : minor == VERSION_3_12 ? MODULES_OF_3_12
                                          : 0,
    };
    if (minor == VERSION_3_13)
        python_read(memory, runtime + MODULES_WORD * WORD, &modules.offset, WORD);
    return modules;
}

uint64_t python_global(const struct python_memory *memory, const struct python_modules *modules,
                       const char *module, const char *name)
{
    uint64_t interpreter, all, dict;
    if (!python_read(memory, modules->interpreter_at, &interpreter, sizeof interpreter) ||
        !python_read(memory, interpreter + modules->offset, &all, sizeof all))
        return 0;
    uint64_t found = dict_find(memory, all, module);
    return found && python_read(memory, found + MODULE_DICT, &dict, sizeof dict)
               ? dict_find(memory, dict, name)
               : 0;
}

/* ---- Sets ---- */

/* PySetObject: `used`, `mask` and `table` follow each other. */
#define OBJECT_TYPE 8u
#define SET_MASK 32u
#define SET_TABLE 40u
#define SET_ENTRIES_MAX (1u << 22)

bool python_set_begin(const struct python_memory *memory, uint64_t type, uint64_t set,
                      struct python_set_walk *ret_walk)
{
    unsigned char object[SET_TABLE + WORD];
    *ret_walk = (struct python_set_walk){0};
    if (!python_read(memory, set, object, sizeof object) || load_word(object, OBJECT_TYPE) != type)
        return false;
    ret_walk->table = load_word(object, SET_TABLE);
    ret_walk->end = load_word(object, SET_MASK) + 1;
    return ret_walk->end <= SET_ENTRIES_MAX;
}

#define REMOVED_HASH UINT64_MAX /* of an entry that was removed */

uint64_t python_set_next(const struct python_memory *memory, struct python_set_walk *walk)
{
    for (;;) {
        while (walk->at < walk->count) {
            const uint64_t *entry = walk->keys[walk->at++];
            if (entry[0] && entry[1] != REMOVED_HASH)
                return entry[0];
        }
        uint64_t left = walk->end - walk->next, most = sizeof walk->keys / sizeof *walk->keys;
        walk->at = 0;
        walk->count = left < most ? left : most;
        if (!walk->count || !python_read(memory, walk->table + walk->next * sizeof *walk->keys,
                                         walk->keys, walk->count * sizeof *walk->keys))
            return 0;
        walk->next += walk->count;
    }
}
