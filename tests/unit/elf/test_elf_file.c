#include "make_elf.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <link.h>

static void release(struct module *module)
{
    image_close(&module->image);
    free(module->segments);
    *module = (struct module){.image.fd = -1};
}

/* Reads `length` bytes as a file in memory. */
static int read_bytes(struct module *module, const void *bytes, size_t length)
{
    unsigned char *copy = malloc(length + 1);
    assert_non_null(copy);
    if (length)
        memcpy(copy, bytes, length);
    *module = (struct module){0};
    image_open_memory(&module->image, copy, length);
    return elf_file_read(module);
}

static int read_own(struct module *module)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    *module = (struct module){0};
    assert_int_equal(image_open_fd(&module->image, fd), 0);
    return elf_file_read(module);
}

/* What the loader reports about this program, which it lists first. */
struct loaded {
    uint64_t bias, unwind_header;
    struct segment segments[16];
    size_t segment_count;
    const unsigned char *build_id;
    size_t build_id_bytes;
};

static void find_build_id(struct loaded *loaded, const unsigned char *note, size_t length)
{
    const unsigned char *end = note + length;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *header = (const void *)note;
        const unsigned char *name = note + sizeof *header;
        const unsigned char *content = name + (header->n_namesz + 3) / 4 * 4;
        if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 &&
            memcmp(name, "GNU", 4) == 0) {
            loaded->build_id = content;
            loaded->build_id_bytes = header->n_descsz;
        }
        note = content + (header->n_descsz + 3) / 4 * 4;
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct loaded *loaded = context;
    loaded->bias = info->dlpi_addr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_GNU_EH_FRAME)
            loaded->unwind_header = header->p_vaddr;
        if (header->p_type == PT_NOTE && header->p_align <= 4)
            find_build_id(loaded, (const void *)(info->dlpi_addr + header->p_vaddr),
                          header->p_memsz);
        if (header->p_type == PT_LOAD)
            loaded->segments[loaded->segment_count++] = (struct segment){
                .offset = header->p_offset,
                .file_bytes = header->p_filesz,
                .address = header->p_vaddr,
                .memory_bytes = header->p_memsz,
                .executable = header->p_flags & PF_X,
            };
    }
    return 1;
}

static void test_own_segments(void **state)
{
    (void)state;
    struct module module;
    struct loaded loaded = {0};
    dl_iterate_phdr(look, &loaded);
    assert_int_equal(read_own(&module), 0);
    assert_int_equal(module.segment_count, loaded.segment_count);
    for (size_t i = 0; i < module.segment_count; i++) {
        assert_int_equal(module.segments[i].offset, loaded.segments[i].offset);
        assert_int_equal(module.segments[i].file_bytes, loaded.segments[i].file_bytes);
        assert_int_equal(module.segments[i].address, loaded.segments[i].address);
        assert_int_equal(module.segments[i].memory_bytes, loaded.segments[i].memory_bytes);
        assert_int_equal(module.segments[i].executable, loaded.segments[i].executable);
    }
    release(&module);
}

static void test_own_build_id(void **state)
{
    (void)state;
    struct module module;
    struct loaded loaded = {0};
    dl_iterate_phdr(look, &loaded);
    assert_true(loaded.build_id_bytes > 0); /* the build asks the linker for one */
    assert_int_equal(read_own(&module), 0);
    assert_int_equal(module.build_id_bytes, loaded.build_id_bytes);
    assert_memory_equal(module.build_id, loaded.build_id, loaded.build_id_bytes);
    release(&module);
}

static void test_own_unwind_table(void **state)
{
    (void)state;
    struct module module;
    struct loaded loaded = {0};
    uint32_t entry_count;
    dl_iterate_phdr(look, &loaded);
    assert_int_equal(read_own(&module), 0);
    assert_int_not_equal(module.unwind_table.header_address, 0);
    assert_int_equal(module.unwind_table.header_address, loaded.unwind_header);
    const unsigned char *header = (const void *)(uintptr_t)(loaded.bias + loaded.unwind_header);
    memcpy(&entry_count, header + 8, sizeof entry_count);
    assert_int_equal(module.unwind_table.entries_address, loaded.unwind_header + 12);
    assert_int_equal(module.unwind_table.entry_count, entry_count);
    assert_true(entry_count > 1);
    release(&module);
}

static void test_file_and_memory_read_alike(void **state)
{
    (void)state;
    struct module file, memory;
    assert_int_equal(read_own(&file), 0);
    unsigned char *bytes = malloc(file.image.bytes);
    assert_non_null(bytes);
    assert_true(image_read(&file.image, 0, bytes, file.image.bytes));
    assert_int_equal(read_bytes(&memory, bytes, file.image.bytes), 0);
    assert_int_equal(memory.segment_count, file.segment_count);
    assert_memory_equal(&memory.unwind_table, &file.unwind_table, sizeof file.unwind_table);
    assert_int_equal(memory.build_id_bytes, file.build_id_bytes);
    assert_memory_equal(memory.build_id, file.build_id, file.build_id_bytes);
    free(bytes);
    release(&file);
    release(&memory);
}

static void test_what_is_not_elf(void **state)
{
    (void)state;
    struct module module;
    char zeros[4096] = {0};
    assert_int_equal(read_bytes(&module, "", 0), -ENOEXEC);
    release(&module);
    assert_int_equal(read_bytes(&module, "#!/bin/sh\necho\n", 15), -ENOEXEC);
    release(&module);
    assert_int_equal(read_bytes(&module, zeros, sizeof zeros), -ENOEXEC);
    release(&module);
    assert_int_equal(read_bytes(&module, "!<arch>\n", 8), -ENOEXEC);
    release(&module);
    assert_int_equal(read_bytes(&module, ELFMAG, 4), -ENOEXEC);
    release(&module);
    assert_int_equal(module.segment_count, 0);
    int fd = file_of_text("no program");
    assert_int_equal(image_open_fd(&module.image, fd), 0);
    assert_int_equal(elf_file_read(&module), -ENOEXEC);
    release(&module);
}

static void test_32_bit_files_are_refused(void **state)
{
    (void)state;
    struct module module;
    Elf32_Ehdr header = {
        .e_type = ET_EXEC, .e_machine = EM_386, .e_version = EV_CURRENT, .e_ehsize = sizeof header};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS32;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    assert_int_equal(read_bytes(&module, &header, sizeof header), -ENOEXEC);
    release(&module);
}

static void put_build_id(struct made_elf *elf, size_t offset, uint32_t length)
{
    Elf64_Nhdr header = {.n_namesz = 4, .n_descsz = length, .n_type = NT_GNU_BUILD_ID};
    memcpy(elf->bytes + offset, &header, sizeof header);
    memcpy(elf->bytes + offset + sizeof header, "GNU", 4);
    for (uint32_t i = 0; i < length; i++)
        elf->bytes[offset + sizeof header + 4 + i] = (unsigned char)(i + 1);
    make_segment(elf, PT_NOTE, PF_R, offset, offset, sizeof header + 4 + length,
                 sizeof header + 4 + length);
}

static void test_build_ids(void **state)
{
    (void)state;
    static const struct {
        uint32_t length;
        size_t expected;
    } rows[] = {{8, 8}, {20, 20}, {64, 64}, {68, 0}}; /* an id that does not fit is ignored */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made_elf elf;
        struct module module;
        make_elf(&elf);
        make_segment(&elf, PT_LOAD, PF_R, 0, 0, 0x1000, 0x1000);
        put_build_id(&elf, 0x400, rows[i].length);
        assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), 0);
        assert_int_equal(module.build_id_bytes, rows[i].expected);
        for (size_t j = 0; j < module.build_id_bytes; j++)
            assert_int_equal(module.build_id[j], j + 1);
        release(&module);
    }
}

static void test_no_build_id_and_no_unwind_table(void **state)
{
    (void)state;
    struct made_elf elf;
    struct module module;
    make_elf(&elf);
    make_lld_segments(&elf);
    assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), 0);
    assert_int_equal(module.segment_count, 4);
    assert_true(module.segments[1].executable);
    assert_false(module.segments[0].executable);
    assert_int_equal(module.segments[3].memory_bytes, 0x1030);
    assert_int_equal(module.build_id_bytes, 0);
    assert_int_equal(module.unwind_table.header_address, 0);
    release(&module);
}

/* A file with an .eh_frame_hdr at 0x700, which the program headers load at `address`. */
static void make_unwind_header(struct made_elf *elf, const unsigned char *encodings,
                               uint64_t address)
{
    uint32_t entry_count = 77;
    make_elf(elf);
    make_segment(elf, PT_LOAD, PF_R, 0, 0x200000, 0x800, 0x800);
    make_segment(elf, PT_GNU_EH_FRAME, PF_R, 0x700, address, 0x20, 0x20);
    memcpy(elf->bytes + 0x700, encodings, 4);
    memcpy(elf->bytes + 0x708, &entry_count, sizeof entry_count);
}

static void test_unwind_table(void **state)
{
    (void)state;
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    struct made_elf elf;
    struct module module;
    make_unwind_header(&elf, usual, 0x200700);
    assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), 0);
    assert_int_equal(module.unwind_table.header_address, 0x200700);
    assert_int_equal(module.unwind_table.entries_address, 0x20070c);
    assert_int_equal(module.unwind_table.entry_count, 77);
    release(&module);
}

static void test_unwind_tables_that_are_not_understood(void **state)
{
    (void)state;
    static const unsigned char encodings[][4] = {
        {2, 0x1b, 0x03, 0x3b},    /* another version */
        {1, 0x00, 0x03, 0x3b},    /* .eh_frame by absolute address */
        {1, 0x1b, 0xff, 0x3b},    /* no count, as in kernel modules and old vdsos */
        {1, 0x1b, 0x03, 0xff},    /* no table */
        {1, 0x1b, 0x03, 0x3c},    /* 64-bit entries */
        {0x1b, 0x03, 0x3b, 0x01}, /* shifted */
    };
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    static const uint64_t outside[] = {0x700, 0x2007f8, 0x200800, UINT64_MAX - 3};
    struct made_elf elf;
    struct module module;
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        make_unwind_header(&elf, encodings[i], 0x200700);
        assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), 0);
        assert_int_equal(module.unwind_table.header_address, 0);
        assert_int_equal(module.unwind_table.entry_count, 0);
        release(&module);
    }
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        make_unwind_header(&elf, usual, outside[i]);
        assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), 0);
        assert_int_equal(module.unwind_table.header_address, 0);
        release(&module);
    }
}

/* Truncated at every length: what is read is right or refused, and nothing is read beyond the end.
 */
static void test_truncated(void **state)
{
    (void)state;
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    struct made_elf elf;
    make_unwind_header(&elf, usual, 0x200700);
    size_t headers_end = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
    for (size_t length = 0; length < 0x900; length++) {
        struct module module;
        int err = read_bytes(&module, elf.bytes, length);
        if (length < sizeof(Elf64_Ehdr))
            assert_int_equal(err, -ENOEXEC);
        else if (length < headers_end)
            assert_true(err == -ENOEXEC || module.segment_count < 2);
        else
            assert_int_equal(err, 0);
        assert_int_equal(module.unwind_table.header_address, length < 0x70c ? 0 : 0x200700);
        release(&module);
    }
}

static void test_truncated_files(void **state)
{
    (void)state;
    struct module own;
    unsigned char bytes[8192];
    assert_int_equal(read_own(&own), 0);
    assert_true(image_read(&own.image, 0, bytes, sizeof bytes));
    release(&own);
    for (size_t length = 0; length < sizeof bytes; length += length < 1024 ? 1 : 97) {
        struct module module = {0};
        assert_int_equal(image_open_fd(&module.image, file_of(bytes, length)), 0);
        int err = elf_file_read(&module);
        assert_true(err == 0 || err == -ENOEXEC);
        if (length < sizeof(Elf64_Ehdr))
            assert_int_equal(err, -ENOEXEC);
        release(&module);
    }
}

/* Random changes, the same in every run: any result will do, but a sanitizer build must stay
 * silent. */
static void test_damaged(void **state)
{
    (void)state;
    struct made_elf elf, damaged;
    uint64_t random = 1;
    static const unsigned char usual[] = {1, 0x1b, 0x03, 0x3b};
    make_unwind_header(&elf, usual, 0x200700);
    put_build_id(&elf, 0x400, 20);
    for (size_t i = 0; i < 20000; i++) {
        damaged = elf;
        for (size_t j = 0; j < 4; j++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            size_t at = (random >> 33) % 0x120;
            at = at < 0xf0 ? at : 0x400 + at - 0xf0;
            damaged.bytes[at] = (unsigned char)(random >> 24);
        }
        struct module module;
        int err = read_bytes(&module, damaged.bytes, 0x900);
        assert_true(err == 0 || err == -ENOEXEC);
        release(&module);
    }
}

/* libelf would allocate a record for each section. */
static int read_with_sections(uint64_t count)
{
    size_t length = 0x4000 + (size_t)count * sizeof(Elf64_Shdr);
    unsigned char *bytes = calloc(1, length);
    struct made_elf elf;
    struct module module;
    assert_non_null(bytes);
    make_elf(&elf);
    make_lld_segments(&elf);
    elf.header.e_shoff = 0x4000;
    elf.header.e_shentsize = sizeof(Elf64_Shdr);
    memcpy(bytes, elf.bytes, sizeof elf.bytes);
    memcpy(bytes, &elf.header, sizeof elf.header);
    memcpy(bytes + 0x4000, &(Elf64_Shdr){.sh_size = count}, sizeof(Elf64_Shdr));
    int err = read_bytes(&module, bytes, length);
    release(&module);
    free(bytes);
    return err;
}

static void test_too_many_sections(void **state)
{
    (void)state;
    assert_int_equal(read_with_sections(65536), 0);
    assert_int_equal(read_with_sections(65537), -ENOEXEC);
}

/* A note larger than any real one is not searched for a build id. */
static void test_large_notes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1u << 20, (1u << 20) + 4};
    for (size_t i = 0; i < 2; i++) {
        static const uint32_t note[] = {4, 4, NT_GNU_BUILD_ID, 0x554e47, 0x01020304};
        unsigned char *bytes = calloc(1, 0x4000 + sizes[i]);
        struct made_elf elf;
        struct module module;
        assert_non_null(bytes);
        make_elf(&elf);
        make_segment(&elf, PT_NOTE, PF_R, 0x4000, 0x4000, sizes[i], sizes[i]);
        memcpy(bytes, elf.bytes, sizeof elf.bytes);
        memcpy(bytes + 0x4000, note, sizeof note);
        assert_int_equal(read_bytes(&module, bytes, 0x4000 + sizes[i]), 0);
        assert_int_equal(module.build_id_bytes, i == 0 ? 4 : 0);
        release(&module);
        free(bytes);
    }
}

/* No linker creates so many segments, and each costs time and memory: they are refused. */
static void test_too_many_segments(void **state)
{
    (void)state;
    static struct made_elf elf;
    struct module module;
    make_elf(&elf);
    for (size_t i = 0; i < 256; i++)
        make_segment(&elf, PT_LOAD, PF_R, 0, i << 12, 0x1000, 0x1000);
    assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), 0);
    assert_int_equal(module.segment_count, 256);
    release(&module);
    make_segment(&elf, PT_LOAD, PF_R, 0, 256 << 12, 0x1000, 0x1000);
    assert_int_equal(read_bytes(&module, elf.bytes, sizeof elf.bytes), -ENOEXEC);
    release(&module);
}

/* As many program headers as the file's header can count, 3.5 MiB, though the kernel takes only 64
 * KiB: only loadable segments count, and more of them than the limit are refused wherever their
 * headers are. */
static void test_more_program_headers_than_the_kernel_takes(void **state)
{
    (void)state;
    enum { HEADERS = PN_XNUM - 1, LOADED_MAX = 256 };
    size_t length = sizeof(Elf64_Ehdr) + HEADERS * sizeof(Elf64_Phdr);
    unsigned char *bytes = calloc(1, length);
    Elf64_Phdr *headers = calloc(HEADERS, sizeof *headers);
    struct made_elf elf;
    struct module module;
    assert_non_null(bytes);
    assert_non_null(headers);
    make_elf(&elf);
    elf.header.e_phnum = HEADERS;
    memcpy(bytes, &elf.header, sizeof elf.header);
    for (size_t loaded = LOADED_MAX; loaded <= LOADED_MAX + 1; loaded++) {
        for (size_t i = 0; i < loaded; i++)
            headers[HEADERS - 1 - i * 255] =
                (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = i << 12, .p_memsz = 0x1000};
        memcpy(bytes + sizeof elf.header, headers, HEADERS * sizeof *headers);
        int err = read_bytes(&module, bytes, length);
        assert_int_equal(err, loaded == LOADED_MAX ? 0 : -ENOEXEC);
        assert_int_equal(module.segment_count, LOADED_MAX);
        if (!err) {
            assert_int_equal(module.segments[0].address, (LOADED_MAX - 1) << 12);
            assert_int_equal(module.segments[LOADED_MAX - 1].address, 0);
        }
        release(&module);
        /* A file without the end of the last header. */
        assert_int_equal(read_bytes(&module, bytes, length - 1), -ENOEXEC);
        release(&module);
    }
    free(headers);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_segments),
        cmocka_unit_test(test_own_build_id),
        cmocka_unit_test(test_own_unwind_table),
        cmocka_unit_test(test_file_and_memory_read_alike),
        cmocka_unit_test(test_what_is_not_elf),
        cmocka_unit_test(test_32_bit_files_are_refused),
        cmocka_unit_test(test_build_ids),
        cmocka_unit_test(test_no_build_id_and_no_unwind_table),
        cmocka_unit_test(test_unwind_table),
        cmocka_unit_test(test_unwind_tables_that_are_not_understood),
        cmocka_unit_test(test_too_many_sections),
        cmocka_unit_test(test_large_notes),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_truncated_files),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_too_many_segments),
        cmocka_unit_test(test_more_program_headers_than_the_kernel_takes),
    };
    return cmocka_run_group_tests_name("elf_file", tests, NULL, NULL);
}
