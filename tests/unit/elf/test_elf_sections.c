/* The sections with call frame information in ELF files built by hand. */
#include "make_elf.h"
#include "elf/elf_file.h"

#include <zlib.h>
#ifdef FGPROF_HAVE_ZSTD
#include <zstd.h>
#endif

#define SECTIONS_MAX 8
#define SECTION_HEADERS 0x3000u
#define SECTION_NAMES 0x3800u

struct made_sections {
    struct made_elf elf;
    Elf64_Shdr headers[SECTIONS_MAX]; /* section 0 is reserved by the format */
    size_t count, names_bytes;
};

static struct made_sections made;

static void begin(void)
{
    memset(&made, 0, sizeof made);
    make_elf(&made.elf);
    make_segment(&made.elf, PT_LOAD, PF_R | PF_X, 0, 0x200000, 0x2000, 0x2000);
    made.count = made.names_bytes = 1;
}

static void add_section(const char *name, uint32_t type, uint64_t flags, uint64_t address,
                        uint64_t offset, uint64_t bytes)
{
    assert_true(made.count < SECTIONS_MAX);
    made.headers[made.count++] = (Elf64_Shdr){
        .sh_name = (uint32_t)made.names_bytes,
        .sh_type = type,
        .sh_flags = flags,
        .sh_addr = address,
        .sh_offset = offset,
        .sh_size = bytes,
        .sh_addralign = 8,
    };
    strcpy((char *)made.elf.bytes + SECTION_NAMES + made.names_bytes, name);
    made.names_bytes += strlen(name) + 1;
}

/* Reads the made file, from memory or from a file. */
static void read_made(struct module *module, bool from_file)
{
    add_section(".shstrtab", SHT_STRTAB, 0, 0, SECTION_NAMES, 0x200);
    made.elf.header.e_shoff = SECTION_HEADERS;
    made.elf.header.e_shentsize = sizeof(Elf64_Shdr);
    made.elf.header.e_shnum = (uint16_t)made.count;
    made.elf.header.e_shstrndx = (uint16_t)(made.count - 1);
    memcpy(made.elf.bytes, &made.elf.header, sizeof made.elf.header);
    memcpy(made.elf.bytes + SECTION_HEADERS, made.headers, sizeof made.headers);
    *module = (struct module){0};
    if (from_file) {
        assert_int_equal(
            image_open_fd(&module->image, file_of(made.elf.bytes, sizeof made.elf.bytes)), 0);
    } else {
        unsigned char *copy = malloc(sizeof made.elf.bytes);
        assert_non_null(copy);
        memcpy(copy, made.elf.bytes, sizeof made.elf.bytes);
        image_open_memory(&module->image, copy, sizeof made.elf.bytes);
    }
    assert_int_equal(elf_file_read(module), 0);
    assert_int_equal(module->segment_count, 1);
}

static void release(struct module *module)
{
    module_clear(module);
}

static void assert_section(const struct cfi_section *section, uint64_t address, uint64_t offset,
                           uint64_t bytes)
{
    assert_int_equal(section->address, address);
    assert_int_equal(section->offset, offset);
    assert_int_equal(section->bytes, bytes);
    assert_null(section->memory);
}

static void test_both_sections(void **state)
{
    (void)state;
    struct module module;
    begin();
    add_section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x200100, 0x100, 0x100);
    add_section(".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x200400, 0x400, 0x80);
    add_section(".debug_frame", SHT_PROGBITS, 0, 0, 0x2100, 0x90);
    read_made(&module, false);
    assert_section(&module.eh_frame, 0x200400, 0x400, 0x80);
    assert_section(&module.debug_frame, 0, 0x2100, 0x90);
    release(&module);
}

/* The section type that lld uses. */
static void test_eh_frame_of_another_type(void **state)
{
    (void)state;
    struct module module;
    begin();
    add_section(".eh_frame", SHT_X86_64_UNWIND, SHF_ALLOC, 0x200400, 0x400, 0x80);
    read_made(&module, true);
    assert_section(&module.eh_frame, 0x200400, 0x400, 0x80);
    assert_section(&module.debug_frame, 0, 0, 0);
    release(&module);
}

/* .eh_frame is not searched if the linker's table can be read. */
static void test_eh_frame_beside_a_table(void **state)
{
    (void)state;
    for (unsigned is_known = 0; is_known < 2; is_known++) {
        struct module module;
        begin();
        make_segment(&made.elf, PT_GNU_EH_FRAME, PF_R, 0x700, 0x200700, 0x20, 0x20);
        memcpy(made.elf.bytes + 0x700, (uint8_t[]){1, 0x1b, 0x03, is_known ? 0x3b : 0xff}, 4);
        add_section(".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x200400, 0x400, 0x80);
        add_section(".debug_frame", SHT_PROGBITS, 0, 0, 0x2100, 0x90);
        read_made(&module, false);
        assert_int_equal(module.unwind_table.header_address, is_known ? 0x200700 : 0);
        assert_int_equal(module.eh_frame.bytes, is_known ? 0 : 0x80);
        assert_section(&module.debug_frame, 0, 0x2100, 0x90);
        release(&module);
    }
}

static void test_sections_that_are_none(void **state)
{
    (void)state;
    struct module module;
    begin();
    add_section(".eh_frame", SHT_NOBITS, SHF_ALLOC, 0x200400, 0x400, 0x80); /* split off */
    add_section(".debug_frame", SHT_NOBITS, 0, 0, 0x2100, 0x90);
    add_section(".eh_frame2", SHT_PROGBITS, 0, 0, 0x400, 0x80);
    add_section(".debug_frame", SHT_PROGBITS, 0, 0, 0x2100, (uint64_t)1 << 40);
    read_made(&module, false);
    assert_section(&module.eh_frame, 0, 0, 0);
    assert_section(&module.debug_frame, 0, 0, 0);
    release(&module);
}

/* ---- Compressed sections ---- */

static unsigned char contents[3000];

/* Adds .debug_frame with `contents` compressed in this number of streams, and returns the
 * compressed size. */
static size_t add_compressed(Elf64_Chdr header, size_t streams)
{
    size_t bytes = sizeof header, part = sizeof contents / streams;
    for (size_t i = 0; i < sizeof contents; i++)
        contents[i] = (unsigned char)(i / 8 * 7);
    memcpy(made.elf.bytes + 0x2100, &header, sizeof header);
    for (size_t i = 0; i < streams; i++) {
        uLongf added = 0x700;
        assert_int_equal(
            compress(made.elf.bytes + 0x2100 + bytes, &added, contents + i * part, part), Z_OK);
        bytes += added;
    }
    assert_in_range(bytes, 100, sizeof contents / 2);
    add_section(".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, 0x2100, bytes);
    return bytes;
}

static const Elf64_Chdr usual = {
    .ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof contents, .ch_addralign = 8};

static void test_compressed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct module module;
        begin();
        add_section(".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x200400, 0x400, 0x80);
        add_compressed(usual, i / 2 + 1);
        read_made(&module, i % 2);
        assert_null(module.debug_frame.memory);
        elf_file_decompress(&module);
        elf_file_decompress(&module);
        assert_int_equal(module.debug_frame.bytes, sizeof contents);
        assert_non_null(module.debug_frame.memory);
        assert_memory_equal(module.debug_frame.memory, contents, sizeof contents);
        assert_int_equal(module.eh_frame.bytes, 0x80);
        release(&module);
    }
}

/* Long runs of one byte, which zlib compresses to nearly a thousandth. */
static void test_compressed_as_far_as_can_be(void **state)
{
    (void)state;
    Elf64_Chdr header = usual;
    uLongf bytes = 0x900;
    struct module module;
    header.ch_size = 2u << 20;
    void *zeros = calloc(1, header.ch_size);
    assert_non_null(zeros);
    begin();
    memcpy(made.elf.bytes + 0x2100, &header, sizeof header);
    assert_int_equal(
        compress2(made.elf.bytes + 0x2100 + sizeof header, &bytes, zeros, header.ch_size, 9), Z_OK);
    assert_in_range(bytes, header.ch_size / 1032, header.ch_size / 1000);
    add_section(".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, 0x2100, sizeof header + bytes);
    read_made(&module, false);
    elf_file_decompress(&module);
    assert_int_equal(module.debug_frame.bytes, header.ch_size);
    assert_memory_equal(module.debug_frame.memory, zeros, header.ch_size);
    release(&module);
    free(zeros);
}

static void assert_no_debug_frame(void)
{
    struct module module;
    read_made(&module, false);
    elf_file_decompress(&module);
    assert_section(&module.debug_frame, 0, module.debug_frame.offset, 0);
    release(&module);
}

static void test_compressed_and_damaged(void **state)
{
    (void)state;
    Elf64_Chdr header = usual;
    header.ch_type = 77;
    begin();
    add_compressed(header, 1);
    assert_no_debug_frame();
    static const uint64_t sizes[] = {sizeof contents - 1, sizeof contents + 1, 300u << 20,
                                     (uint64_t)1 << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        header = usual;
        header.ch_size = sizes[i];
        begin();
        add_compressed(header, 1);
        assert_no_debug_frame();
    }
    begin(); /* truncated, before the end of the data and within the header */
    add_compressed(usual, 1);
    made.headers[made.count - 1].sh_size -= 20;
    assert_no_debug_frame();
    begin();
    add_compressed(usual, 1);
    made.headers[made.count - 1].sh_size = sizeof(Elf64_Chdr) - 1;
    assert_no_debug_frame();
    begin();
    size_t bytes = add_compressed(usual, 1);
    memset(made.elf.bytes + 0x2100 + sizeof(Elf64_Chdr) + 50, 0xff, bytes - 100);
    assert_no_debug_frame();
}

#ifdef FGPROF_HAVE_ZSTD
/* Adds .debug_frame with `contents` compressed by zstd in two frames, as a parallel linker may do.
 */
static size_t add_zstd(Elf64_Chdr header)
{
    size_t bytes = sizeof header;
    for (size_t i = 0; i < sizeof contents; i++)
        contents[i] = (unsigned char)(i / 8 * 7);
    memcpy(made.elf.bytes + 0x2100, &header, sizeof header);
    for (size_t half = 0; half < sizeof contents; half += sizeof contents / 2) {
        size_t added = ZSTD_compress(made.elf.bytes + 0x2100 + bytes, 0x700, contents + half,
                                     sizeof contents / 2, 3);
        assert_false(ZSTD_isError(added));
        bytes += added;
    }
    assert_in_range(bytes, 100, sizeof contents / 2);
    add_section(".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, 0x2100, bytes);
    return bytes;
}

static const Elf64_Chdr by_zstd = {.ch_type = 2, .ch_size = sizeof contents, .ch_addralign = 8};

static void test_compressed_by_zstd(void **state)
{
    (void)state;
    for (unsigned from_file = 0; from_file < 2; from_file++) {
        struct module module;
        begin();
        add_zstd(by_zstd);
        read_made(&module, from_file);
        elf_file_decompress(&module);
        assert_int_equal(module.debug_frame.bytes, sizeof contents);
        assert_memory_equal(module.debug_frame.memory, contents, sizeof contents);
        release(&module);
    }
}

/* Zeros take one byte for each block of 128 KiB, and three for the block's header. */
static void test_compressed_by_zstd_as_far_as_can_be(void **state)
{
    (void)state;
    Elf64_Chdr header = by_zstd;
    header.ch_size = 8u << 20;
    void *zeros = calloc(1, header.ch_size);
    assert_non_null(zeros);
    begin();
    memcpy(made.elf.bytes + 0x2100, &header, sizeof header);
    size_t bytes =
        ZSTD_compress(made.elf.bytes + 0x2100 + sizeof header, 0x800, zeros, header.ch_size, 19);
    assert_in_range(bytes, 64 * 4, 64 * 4 + 64);
    add_section(".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, 0x2100, sizeof header + bytes);
    struct module module;
    read_made(&module, false);
    elf_file_decompress(&module);
    assert_int_equal(module.debug_frame.bytes, header.ch_size);
    assert_memory_equal(module.debug_frame.memory, zeros, header.ch_size);
    release(&module);
    free(zeros);
}

static void test_compressed_by_zstd_and_damaged(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0,          sizeof contents - 1, sizeof contents + 1,
                                     200u << 20, 300u << 20,          UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Elf64_Chdr header = by_zstd;
        header.ch_size = sizes[i];
        begin();
        add_zstd(header);
        assert_no_debug_frame();
    }
    begin();
    size_t bytes = add_zstd(by_zstd);
    for (size_t length = 0; length < bytes; length++) {
        begin();
        add_zstd(by_zstd);
        made.headers[made.count - 1].sh_size = length;
        assert_no_debug_frame();
    }
    begin();
    add_zstd(by_zstd);
    memset(made.elf.bytes + 0x2100 + sizeof(Elf64_Chdr) + 4, 0xff, 8); /* the header of a frame */
    assert_no_debug_frame();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_sections),
        cmocka_unit_test(test_eh_frame_of_another_type),
        cmocka_unit_test(test_eh_frame_beside_a_table),
        cmocka_unit_test(test_sections_that_are_none),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_compressed_as_far_as_can_be),
        cmocka_unit_test(test_compressed_and_damaged),
#ifdef FGPROF_HAVE_ZSTD
        cmocka_unit_test(test_compressed_by_zstd),
        cmocka_unit_test(test_compressed_by_zstd_as_far_as_can_be),
        cmocka_unit_test(test_compressed_by_zstd_and_damaged),
#endif
    };
    return cmocka_run_group_tests_name("elf_sections", tests, NULL, NULL);
}
