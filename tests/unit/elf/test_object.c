/* ELF files and their sections, including impossibly large ones. */
#include "make_elf.h"
#include "elf/object.h"

#include <errno.h>
#include <sys/resource.h>
#include <zlib.h>

#define HEADERS_AT 0x2000u /* section headers */
#define NAMES_AT 0x3000u
#define CONTENTS_AT 0x1000u
#define FILE_BYTES ((off_t)3 << 30) /* mostly a hole */

static const Elf64_Shdr names = {
    .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = 64};

/* A file with these two sections; the second is named ".debug_str", or ".zdebug_str". */
static int open_sections(struct object *object, Elf64_Shdr first, Elf64_Shdr second,
                         const void *contents, size_t bytes)
{
    struct made_elf elf;
    make_elf(&elf);
    elf.header.e_shoff = HEADERS_AT;
    elf.header.e_shentsize = sizeof first;
    elf.header.e_shnum = 3;
    elf.header.e_shstrndx = 1;
    memcpy(elf.bytes, &elf.header, sizeof elf.header);
    memcpy(elf.bytes + HEADERS_AT + sizeof first, &first, sizeof first);
    memcpy(elf.bytes + HEADERS_AT + 2 * sizeof second, &second, sizeof second);
    memcpy(elf.bytes + NAMES_AT, "\0.names\0.debug_str\0.zdebug_str", 31);
    memcpy(elf.bytes + CONTENTS_AT, contents, bytes);
    int fd = file_of(elf.bytes, sizeof elf.bytes);
    assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
    return object_open_fd(object, fd);
}

static Elf64_Shdr debug_str(bool is_gnu, uint64_t flags, uint64_t bytes)
{
    return (Elf64_Shdr){.sh_name = is_gnu ? 19 : 8,
                        .sh_type = SHT_PROGBITS,
                        .sh_flags = flags,
                        .sh_offset = CONTENTS_AT,
                        .sh_size = bytes};
}

static void test_number_of_sections(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct made_elf elf;
        struct object object;
        make_elf(&elf);
        elf.header.e_shoff = HEADERS_AT;
        elf.header.e_shentsize = sizeof(Elf64_Shdr);
        memcpy(elf.bytes, &elf.header, sizeof elf.header);
        memcpy(elf.bytes + HEADERS_AT, &(Elf64_Shdr){.sh_size = 65536 + more}, sizeof(Elf64_Shdr));
        int fd = file_of(elf.bytes, sizeof elf.bytes);
        assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
        assert_int_equal(object_open_fd(&object, fd), more ? -ENOEXEC : 0);
        if (more)
            assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed, although opening failed */
        else
            object_close(&object);
    }
}

static void test_names_that_are_too_large(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct object object;
        struct section section;
        Elf64_Shdr grown = names;
        grown.sh_size = (16 << 20) + more;
        assert_int_equal(open_sections(&object, grown, debug_str(false, 0, 5), "text", 5), 0);
        assert_int_equal(object_section(&object, ".debug_str", &section), !more);
        object_close(&object);
    }
}

/* The rest of the file can be used, but a note of that size is not searched for a build id. */
static void test_notes_that_are_too_large(void **state)
{
    (void)state;
    static const uint32_t note[] = {4, 4, NT_GNU_BUILD_ID, 0x554e47, 0x01020304};
    for (unsigned more = 0; more < 2; more++) {
        struct object object;
        Elf64_Shdr notes = debug_str(false, 0, (1 << 20) + more);
        notes.sh_type = SHT_NOTE;
        assert_int_equal(open_sections(&object, names, notes, note, sizeof note), 0);
        assert_int_equal(object.build_id_bytes, more ? 0 : 4);
        assert_true(object_has_section(&object, ".names"));
        object_close(&object);
    }
}

static long peak_kib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* libelf reads the whole section before it reports the uncompressed size. */
static void test_compressed_and_too_large(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool is_gnu = i & 1, is_large = i & 2;
        struct object object;
        struct section section;
        Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 5, .ch_addralign = 1};
        static const unsigned char gnu_head[] = {'Z', 'L', 'I', 'B', 0, 0, 0, 0, 0, 0, 0, 5};
        unsigned char contents[128];
        size_t head_bytes = is_gnu ? sizeof gnu_head : sizeof head;
        uLongf bytes = sizeof contents - head_bytes;
        memcpy(contents, is_gnu ? (const void *)gnu_head : &head, head_bytes);
        assert_int_equal(compress(contents + head_bytes, &bytes, (const Bytef *)"text", 5), Z_OK);
        bytes += head_bytes;
        uint64_t claimed = is_large ? ((uint64_t)1 << 30) + 1 : bytes;
        Elf64_Shdr header = debug_str(is_gnu, is_gnu ? 0 : SHF_COMPRESSED, claimed);
        assert_int_equal(open_sections(&object, names, header, contents, bytes), 0);
        long before_kib = peak_kib();
        assert_int_equal(object_section(&object, ".debug_str", &section), !is_large);
        assert_true(peak_kib() - before_kib < 512 << 10);
        if (!is_large) {
            assert_int_equal(section.bytes, 5);
            assert_string_equal((const char *)section.memory, "text");
        }
        object_close(&object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_of_sections),
        cmocka_unit_test(test_names_that_are_too_large),
        cmocka_unit_test(test_notes_that_are_too_large),
        cmocka_unit_test(test_compressed_and_too_large),
    };
    return cmocka_run_group_tests_name("object", tests, NULL, NULL);
}
