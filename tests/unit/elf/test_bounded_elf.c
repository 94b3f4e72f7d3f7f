/* Limits on what ELF files claim. libelf itself would read each of the excessive files: they are
 * sparse, and as large as they claim. */
#include "make_elf.h"
#include "elf/bounded_elf.h"

#include <zlib.h>

#define HEADERS_AT 0x2000u /* section headers */
#define NAMES_AT 0x3000u
#define SECTIONS_END ((off_t)1 << 31) /* the end of the file */

struct made {
    struct made_elf elf;
    Elf64_Shdr sections[64]; /* section 0 is reserved by the format */
    uint16_t count;
};

static void begin(struct made *made)
{
    *made = (struct made){.count = 1};
    make_elf(&made->elf);
}

static Elf64_Shdr *add_section(struct made *made, uint32_t type, uint64_t offset, uint64_t bytes)
{
    Elf64_Shdr *section = &made->sections[made->count++];
    *section =
        (Elf64_Shdr){.sh_type = type, .sh_offset = offset, .sh_size = bytes, .sh_addralign = 4};
    return section;
}

/* A sparse file. */
static int file_of_elf(struct made_elf *elf)
{
    memcpy(elf->bytes, &elf->header, sizeof elf->header);
    int fd = file_of(elf->bytes, sizeof elf->bytes);
    assert_int_equal(ftruncate(fd, SECTIONS_END), 0);
    return fd;
}

/* Writes the made file. */
static int file_of_made(struct made *made)
{
    if (made->count > 1) {
        made->elf.header.e_shoff = HEADERS_AT;
        made->elf.header.e_shentsize = sizeof(Elf64_Shdr);
        made->elf.header.e_shnum = made->count;
        memcpy(made->elf.bytes + HEADERS_AT, made->sections, made->count * sizeof(Elf64_Shdr));
    }
    return file_of_elf(&made->elf);
}

static bool opens(int fd)
{
    Elf *elf = bounded_elf_open(fd, NULL, 0);
    bool is_open = elf;
    elf_end(elf);
    close(fd);
    return is_open;
}

/* A file whose first section has the counts that do not fit in the header. */
static int file_of_numbers(uint16_t segments, uint16_t sections, Elf64_Shdr first)
{
    struct made_elf elf;
    make_elf(&elf);
    elf.header.e_shoff = HEADERS_AT;
    elf.header.e_shentsize = sizeof first;
    elf.header.e_phnum = segments;
    elf.header.e_shnum = sections;
    memcpy(elf.bytes + HEADERS_AT, &first, sizeof first);
    return file_of_elf(&elf);
}

static void test_number_of_sections(void **state)
{
    (void)state;
    static const struct {
        uint64_t sections;
        bool is_sane;
    } rows[] = {{0, true}, {65536, true}, {65537, false}, {16 << 20, false}, {UINT32_MAX, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(opens(file_of_numbers(0, 0, (Elf64_Shdr){.sh_size = rows[i].sections})),
                         rows[i].is_sane);
    assert_true(opens(file_of_numbers(0, 0xfeff, (Elf64_Shdr){.sh_size = 65537})));
}

static void test_number_of_sections_in_memory(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        size_t count = 65536 + more, bytes = HEADERS_AT + count * sizeof(Elf64_Shdr);
        unsigned char *memory = calloc(1, bytes);
        int fd = file_of_numbers(0, 0, (Elf64_Shdr){.sh_size = count});
        assert_non_null(memory);
        assert_int_equal(pread(fd, memory, MADE_ELF_BYTES, 0), MADE_ELF_BYTES);
        Elf *elf = bounded_elf_open(-1, memory, bytes);
        assert_int_equal(elf != NULL, !more);
        elf_end(elf);
        close(fd);
        free(memory);
    }
}

/* The header's offset of the first section is outside the file. */
static void test_first_section_behind_the_end(void **state)
{
    (void)state;
    static const uint64_t places[] = {MADE_ELF_BYTES - 8, MADE_ELF_BYTES, INT64_MAX,
                                      (uint64_t)INT64_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct made_elf elf;
        make_elf(&elf);
        elf.header.e_shoff = places[i];
        memcpy(elf.bytes, &elf.header, sizeof elf.header);
        assert_true(opens(file_of(elf.bytes, sizeof elf.bytes)));
        Elf *in_memory = bounded_elf_open(-1, elf.bytes, sizeof elf.bytes);
        assert_non_null(in_memory);
        elf_end(in_memory);
    }
}

static void test_number_of_segments(void **state)
{
    (void)state;
    assert_true(opens(file_of_numbers(PN_XNUM - 1, 1, (Elf64_Shdr){.sh_info = 1 << 20})));
    assert_false(opens(file_of_numbers(PN_XNUM, 1, (Elf64_Shdr){.sh_info = 1 << 20})));
    assert_false(opens(file_of_numbers(PN_XNUM, 1, (Elf64_Shdr){.sh_info = 1})));
}

static void test_other_files(void **state)
{
    (void)state;
    static const struct {
        unsigned char at, value;
    } rows[] = {{EI_MAG0, 0},           {EI_CLASS, ELFCLASS32}, {EI_CLASS, ELFCLASSNONE},
                {EI_DATA, ELFDATA2MSB}, {EI_DATA, ELFDATANONE}, {EI_VERSION, 2}};
    struct made_elf elf;
    make_elf(&elf);
    assert_true(opens(file_of(elf.bytes, sizeof elf.bytes)));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_elf(&elf);
        elf.bytes[rows[i].at] = rows[i].value;
        assert_false(opens(file_of(elf.bytes, sizeof elf.bytes)));
    }
    assert_false(opens(file_of(elf.bytes, 0)));
    assert_false(opens(file_of(elf.bytes, sizeof elf.header - 1)));
    make_elf(&elf);
    assert_null(bounded_elf_open(-1, elf.bytes, sizeof elf.header - 1));
}

/* ---- Strings ---- */

/* The only section contains the section names, and its own name is the second. */
static void assert_name(struct made *made, uint16_t names_index, const char *expected)
{
    GElf_Shdr section;
    const char *name;
    memcpy(made->elf.bytes + NAMES_AT, "\0.names", 8);
    made->elf.header.e_shstrndx = names_index;
    int fd = file_of_made(made);
    Elf *elf = bounded_elf_open(fd, NULL, 0);
    assert_non_null(elf);
    Elf_Scn *scn = bounded_elf_next_section(elf, NULL, &section, &name);
    if (expected) {
        assert_ptr_equal(scn, elf_getscn(elf, 1));
        assert_string_equal(name, expected);
    } else {
        assert_null(scn);
    }
    elf_end(elf);
    close(fd);
}

static void test_section_names(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {8, 16 << 20, (16 << 20) + 1, 1 << 30};
    struct made made;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin(&made);
        add_section(&made, SHT_STRTAB, NAMES_AT, sizes[i])->sh_name = 1;
        assert_name(&made, 1, i < 2 ? ".names" : NULL);
    }
    begin(&made); /* a file without section names */
    add_section(&made, SHT_STRTAB, NAMES_AT, 8)->sh_name = 1;
    assert_name(&made, SHN_UNDEF, NULL);
    begin(&made);
    add_section(&made, SHT_STRTAB, NAMES_AT, 8)->sh_name = 1;
    assert_name(&made, 2, NULL);
}

/* The index of the section with the names is in section 0. */
static void test_section_names_by_extended_number(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct made made;
        begin(&made);
        made.sections[0].sh_link = 1;
        add_section(&made, SHT_STRTAB, NAMES_AT, (16 << 20) + more)->sh_name = 1;
        assert_name(&made, SHN_XINDEX, more ? NULL : ".names");
    }
}

/* Refused, because their full size is not known; no linker compresses them. */
static void test_compressed_strings(void **state)
{
    (void)state;
    static const Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 8, .ch_addralign = 1};
    struct made made;
    uLongf bytes = 64;
    begin(&made);
    memcpy(made.elf.bytes + 0x1000, &head, sizeof head);
    assert_int_equal(
        compress(made.elf.bytes + 0x1000 + sizeof head, &bytes, (const Bytef *)"\0string", 8),
        Z_OK);
    for (unsigned is_compressed = 0; is_compressed < 2; is_compressed++) {
        made.count = 1;
        Elf64_Shdr *section = is_compressed
                                  ? add_section(&made, SHT_STRTAB, 0x1000, sizeof head + bytes)
                                  : add_section(&made, SHT_STRTAB, NAMES_AT, 8);
        section->sh_flags = is_compressed ? SHF_COMPRESSED : 0;
        memcpy(made.elf.bytes + NAMES_AT, "\0string", 8);
        int fd = file_of_made(&made);
        Elf *elf = bounded_elf_open(fd, NULL, 0);
        const char *found = bounded_elf_string(elf, 1, 1);
        if (is_compressed)
            assert_null(found);
        else
            assert_string_equal(found, "string");
        elf_end(elf);
        close(fd);
    }
}

static void test_strings(void **state)
{
    (void)state;
    struct made made;
    begin(&made);
    add_section(&made, SHT_STRTAB, NAMES_AT, 32 << 20); /* more than section names may have */
    add_section(&made, SHT_STRTAB, NAMES_AT, TABLE_BYTES_MAX + 1);
    memcpy(made.elf.bytes + NAMES_AT, "\0string", 8);
    int fd = file_of_made(&made);
    Elf *elf = bounded_elf_open(fd, NULL, 0);
    assert_non_null(elf);
    assert_string_equal(bounded_elf_string(elf, 1, 1), "string");
    assert_null(bounded_elf_string(elf, 2, 1));
    assert_null(bounded_elf_string(elf, 3, 1)); /* no such section */
    elf_end(elf);
    close(fd);
}

static void test_take_bytes(void **state)
{
    (void)state;
    uint64_t left = TABLE_BYTES_MAX + 10;
    assert_false(bounded_elf_take_bytes(&left, TABLE_BYTES_MAX + 1));
    assert_true(bounded_elf_take_bytes(&left, TABLE_BYTES_MAX));
    assert_false(bounded_elf_take_bytes(&left, 11));
    assert_true(bounded_elf_take_bytes(&left, 10));
    assert_int_equal(left, 0);
}

/* ---- Notes ---- */

static const uint32_t build_id[] = {4, 4, NT_GNU_BUILD_ID, 0x554e47, 0x01020304};
#define ID_AT 0x3f00u
#define OTHER_AT 0x1000000u /* in the hole */

/* Closes the file. */
static size_t build_id_bytes_of(int fd)
{
    unsigned char id[BUILD_ID_BYTES_MAX];
    Elf *elf = bounded_elf_open(fd, NULL, 0);
    assert_non_null(elf);
    size_t bytes = bounded_elf_build_id(elf, id);
    if (bytes)
        assert_memory_equal(id, &build_id[4], 4);
    elf_end(elf);
    close(fd);
    return bytes;
}

/* The size of the build id in a file with `count` other notes of this size before it, each at a
 * different offset. */
static size_t build_id_behind(bool in_sections, unsigned count, uint64_t bytes)
{
    struct made made;
    begin(&made);
    memcpy(made.elf.bytes + ID_AT, build_id, sizeof build_id);
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = OTHER_AT + i * 4;
        if (in_sections)
            add_section(&made, SHT_NOTE, at, bytes);
        else
            make_segment(&made.elf, PT_NOTE, PF_R, at, at, bytes, bytes);
    }
    if (in_sections)
        add_section(&made, SHT_NOTE, ID_AT, sizeof build_id);
    else
        make_segment(&made.elf, PT_NOTE, PF_R, ID_AT, ID_AT, sizeof build_id, sizeof build_id);
    return build_id_bytes_of(file_of_made(&made));
}

static void test_notes(void **state)
{
    (void)state;
    for (unsigned in_sections = 0; in_sections < 2; in_sections++) {
        assert_int_equal(build_id_behind(in_sections, 0, 0), 4);
        assert_int_equal(build_id_behind(in_sections, 3, 1000), 4);
        /* Notes that are too large are skipped. */
        assert_int_equal(build_id_behind(in_sections, 9, (1 << 20) + 1), 4);
        assert_int_equal(build_id_behind(in_sections, 1, (1 << 20) - 4096), 4);
        assert_int_equal(build_id_behind(in_sections, 1, (1 << 20) - 4095), 0);
        /* The total size is limited, too. */
        assert_int_equal(build_id_behind(in_sections, 15, 65536), 4);
        assert_int_equal(build_id_behind(in_sections, 16, 65536), 0);
    }
    /* So is the number of notes. */
    assert_int_equal(build_id_behind(false, 255, 16), 4);
    assert_int_equal(build_id_behind(false, 256, 16), 0);
}

static void test_build_id_that_has_no_room(void **state)
{
    (void)state;
    for (uint32_t bytes = 60; bytes <= 68; bytes += 4) {
        struct made made;
        uint32_t note[4 + 17] = {4, bytes, NT_GNU_BUILD_ID, 0x554e47, 0x01020304};
        begin(&made);
        memcpy(made.elf.bytes + ID_AT, note, sizeof note);
        add_section(&made, SHT_NOTE, ID_AT, 16 + bytes);
        assert_int_equal(build_id_bytes_of(file_of_made(&made)), bytes <= 64 ? bytes : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_of_sections),
        cmocka_unit_test(test_number_of_sections_in_memory),
        cmocka_unit_test(test_first_section_behind_the_end),
        cmocka_unit_test(test_number_of_segments),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_section_names),
        cmocka_unit_test(test_section_names_by_extended_number),
        cmocka_unit_test(test_compressed_strings),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_take_bytes),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_build_id_that_has_no_room),
    };
    return cmocka_run_group_tests_name("bounded_elf", tests, NULL, NULL);
}
