/* Small debug information that would be large in memory: many entries that share a list of ranges.
 */
#include "unit.h"
#include "elf/dwarf.h"
#include "symbol/dwarf/symbols.h"

#include <elf.h>
#include <errno.h>

#define RANGES 700000u /* in the list */
#define FUNCTION 0x1000u
/* A unit in the 32-bit format, version 5, with 8-byte addresses. */
#define UNIT_OF(bytes) (bytes) + 8, 0, 0, 0, 5, 0, DW_UT_compile, 8, 0, 0, 0, 0

enum { NO_SECTION, INFO, ABBREV, RNGLISTS, NAMES, SECTIONS };
enum { UNIT = 1, FUNCTION_WITH_CALLS, CALL, FUNCTION_WITH_RANGES }; /* abbreviations */
#define AT_LIST 0, 0, 0, 0                                          /* where in .debug_rnglists */
#define ROOT UNIT, AT_LIST
#define END 0

static const char names[] = "\0.debug_info\0.debug_abbrev\0.debug_rnglists\0.shstrtab";
static const uint32_t name_at[SECTIONS] = {0, 1, 13, 27, 43};
/* clang-format off */
static const uint8_t abbrevs[] = {
    UNIT, 0x11 /* DW_TAG_compile_unit */, 1, DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
    FUNCTION_WITH_CALLS, DW_TAG_subprogram, 1,
        DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data2, 0, 0,
    CALL, DW_TAG_inlined_subroutine, 0, DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
    FUNCTION_WITH_RANGES, DW_TAG_subprogram, 0, DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
    0};
/* clang-format on */

struct file {
    struct module module;
    struct own_debug_files own;
    struct debug_symbols debug;
    unsigned char *memory;
    size_t bytes;
    Elf64_Shdr sections[SECTIONS];
};

static char path[] = "/bin/app";

static void put(struct file *file, unsigned section, const void *bytes, size_t count)
{
    file->sections[section] = (Elf64_Shdr){.sh_name = name_at[section],
                                           .sh_type = section == NAMES ? SHT_STRTAB : SHT_PROGBITS,
                                           .sh_offset = file->bytes,
                                           .sh_size = count,
                                           .sh_addralign = 1};
    memcpy(file->memory + file->bytes, bytes, count);
    file->bytes += (count + 7) / 8 * 8;
}

static void put_list(struct file *file)
{
    static const uint8_t entry[] = {DW_RLE_offset_pair, 2, 3};
    uint8_t *list = calloc(RANGES + 1, sizeof entry);
    assert_non_null(list);
    for (size_t i = 0; i < RANGES; i++)
        memcpy(list + i * sizeof entry, entry, sizeof entry);
    put(file, RNGLISTS, list, RANGES * sizeof entry + 1);
    free(list);
}

/* Opens a file with this .debug_info. */
static struct file *file_with(const uint8_t *info, size_t bytes)
{
    struct file *file = calloc(1, sizeof *file);
    struct object object;
    assert_non_null(file);
    file->memory = calloc(1, RANGES * 3 + 65536);
    assert_non_null(file->memory);
    file->bytes = sizeof(Elf64_Ehdr);
    put(file, INFO, info, bytes);
    put(file, ABBREV, abbrevs, sizeof abbrevs);
    put_list(file);
    put(file, NAMES, names, sizeof names);
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_shoff = file->bytes,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = NAMES,
    };
    memcpy(file->memory, &header, sizeof header);
    memcpy(file->memory + file->bytes, file->sections, sizeof file->sections);
    file->bytes += sizeof file->sections;
    file->module.path = path;
    own_debug_files_init(&file->own, &file->module, NULL);
    assert_int_equal(object_open_memory(&object, file->memory, file->bytes), 0);
    assert_int_equal(
        debug_symbols_open(&file->debug, &file->module, &file->own.files, &object, path), 0);
    return file;
}

static void file_free(struct file *file)
{
    debug_symbols_close(&file->debug);
    free(file->memory);
    free(file);
}

static struct unit first_unit(struct file *file)
{
    struct unit unit;
    struct die root;
    assert_int_equal(unit_read(file->debug.info, 0, &unit), 0);
    assert_int_equal(unit_read_root(&unit, &root), 0);
    return unit;
}

static void test_units(void **state)
{
    (void)state;
    static const uint8_t unit[] = {UNIT_OF(6), ROOT, END};
    uint8_t info[10 * sizeof unit];
    for (size_t at = 0; at < sizeof info; at += sizeof unit)
        memcpy(info + at, unit, sizeof unit);
    struct file *file = file_with(info, sizeof info);
    assert_int_equal(file->debug.info->unit_count, 10);
    assert_int_equal(file->debug.units.count % RANGES, 0);
    assert_in_range(file->debug.units.count, RANGES, 4u << 20);
    file_free(file);
}

static void test_functions(void **state)
{
    (void)state;
    static const uint8_t function[] = {FUNCTION_WITH_RANGES, AT_LIST};
    uint8_t info[] = {UNIT_OF(36), ROOT, [17 ... 46] = 0, END};
    for (size_t i = 0; i < 6; i++)
        memcpy(info + 17 + i * sizeof function, function, sizeof function);
    struct file *file = file_with(info, sizeof info);
    const struct unit unit = first_unit(file);
    assert_int_equal(debug_functions_read(&file->debug.functions, &unit), -ENOEXEC);
    assert_null(debug_functions_find(&file->debug.functions, 2));
    file_free(file);
}

static void test_inlined_calls(void **state)
{
    (void)state;
    static const uint8_t info[] = {UNIT_OF(33),
                                   ROOT,
                                   FUNCTION_WITH_CALLS,
                                   0,
                                   FUNCTION >> 8,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   1,
                                   CALL,
                                   AT_LIST,
                                   CALL,
                                   AT_LIST,
                                   CALL,
                                   AT_LIST,
                                   END,
                                   END};
    struct file *file = file_with(info, sizeof info);
    const struct unit unit = first_unit(file);
    assert_int_equal(debug_functions_read(&file->debug.functions, &unit), 0);
    assert_non_null(debug_functions_find(&file->debug.functions, FUNCTION));
    assert_int_equal(file->debug.functions.inlined_count, RANGES);
    file_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_inlined_calls),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
