/* Linkage stubs (PLT entries): those of this program, and the forms of their code. */
#include "unit.h"
#include "own_module.h"
#include "elf/elf_file.h"
#include "elf/stubs.h"

static void test_own_stubs(void **state)
{
    (void)state;
    const struct stub *found = NULL;
    assert_null(stubs_find(&module, 0));
    for (size_t i = 0; i < module.stubs.count; i++) {
        const struct stub *stub = &module.stubs.items[i];
        if (stub->name && strcmp(stub->name, "_cmocka_run_group_tests") == 0)
            found = stub;
        for (uint64_t at = stub->start; at < stub->end; at++)
            assert_ptr_equal(stubs_find(&module, at), stub);
    }
    assert_non_null(found); /* main calls it */
    assert_null(stubs_find(&module, module.entry_address));
}

/* A copy of this program in which a section claims a larger size; the file is extended to match. */
static void open_with_section_bytes(struct module *grown, size_t section, uint64_t bytes)
{
    Elf64_Ehdr header;
    char *text = malloc(module.image.bytes);
    assert_non_null(text);
    assert_true(image_read(&module.image, 0, text, module.image.bytes));
    memcpy(&header, text, sizeof header);
    size_t at = header.e_shoff + section * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
    memcpy(text + at, &bytes, sizeof bytes);
    int fd = file_of(text, module.image.bytes);
    assert_int_equal(ftruncate(fd, (off_t)(module.image.bytes + bytes)), 0);
    *grown = (struct module){0};
    assert_int_equal(image_open_fd(&grown->image, fd), 0);
    assert_int_equal(elf_file_read(grown), 0);
    free(text);
}

static void test_strings_that_are_too_large(void **state)
{
    (void)state;
    GElf_Shdr header;
    size_t names, symbol_names = 0;
    Elf_Scn *scn = NULL;
    Elf *elf = module_open_elf(&module);
    assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
    while ((scn = elf_nextscn(elf, scn))) {
        if (gelf_getshdr(scn, &header) && header.sh_type == SHT_DYNSYM)
            symbol_names = header.sh_link;
    }
    elf_end(elf);
    const struct {
        size_t section;
        uint64_t bytes;
        bool are_read;
    } rows[] = {{names, 1 << 20, true},
                {names, (16 << 20) + 1, false},
                {symbol_names, 32 << 20, true},
                {symbol_names, TABLE_BYTES_MAX + 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct module grown;
        bool has_names = false;
        open_with_section_bytes(&grown, rows[i].section, rows[i].bytes);
        stubs_find(&grown, 0);
        for (size_t j = 0; j < grown.stubs.count; j++)
            has_names = has_names || grown.stubs.items[j].name;
        assert_int_equal(has_names, rows[i].are_read);
        module_clear(&grown);
    }
}

#ifdef __x86_64__

static void test_forms(void **state)
{
    (void)state;
    static const uint8_t forms[][STUB_BYTES] = {
        {0xff, 0x25, 0x10, 0, 0, 0},
        {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x0c, 0, 0, 0},
        {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x0b, 0, 0, 0},
        {0xf2, 0xff, 0x25, 0x0f, 0, 0, 0},
        {0x41, 0xbb, 7, 0, 0, 0, 0xff, 0x25, 0x0a, 0, 0, 0}, /* mold's */
        {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 7, 0, 0, 0, 0xff, 0x25, 0x06, 0, 0, 0},
    };
    uint64_t slot;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_true(stub_slot(forms[i], STUB_BYTES, 0x1000, &slot));
        assert_int_equal(slot, 0x1016);
    }
    assert_true(stub_slot(forms[0], 6, 0x1000, &slot));
    assert_false(stub_slot(forms[0], 5, 0x1000, &slot));
    assert_false(stub_slot(forms[1], 4, 0x1000, &slot));
    assert_false(stub_slot(forms[4], 11, 0x1000, &slot));
    /* push; jmp: the first entry of the table */
    assert_false(stub_slot((const uint8_t[STUB_BYTES]){0xff, 0x35, 2, 0x2f}, STUB_BYTES, 0, &slot));
}

#elif defined __aarch64__

static void test_forms(void **state)
{
    (void)state;
    static const uint32_t bti_c = 0xd503245f, ldr = 0xf9400e11, add = 0x91006210, br = 0xd61f0220;
    static const uint32_t adrp = 0x90000090, adrp_back = 0xf0fffff0, adrp_x0 = 0x90000080;
    static const struct {
        uint32_t code[STUB_BYTES / 4];
        uint64_t slot; /* 0: not a stub */
    } forms[] = {
        {{adrp, ldr, add, br}, 0x11018},   {{bti_c, adrp, ldr, add}, 0x11018},
        {{adrp_back, ldr, add, br}, 0x18}, {{adrp_x0, ldr, add, br}, 0},
        {{adrp, add, ldr, br}, 0}, /* a function that happens to start by setting x16 */
        {{bti_c, bti_c, adrp, ldr}, 0},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint64_t slot = 0;
        const uint8_t *code = (const uint8_t *)forms[i].code;
        assert_int_equal(stub_slot(code, STUB_BYTES, 0x1000, &slot), forms[i].slot != 0);
        assert_int_equal(slot, forms[i].slot);
        assert_false(stub_slot(code, 11, 0x1000, &slot));
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_stubs, open_own_module, close_own_module),
        cmocka_unit_test_setup_teardown(test_strings_that_are_too_large, open_own_module,
                                        close_own_module),
        cmocka_unit_test(test_forms),
    };
    return cmocka_run_group_tests_name("stubs", tests, NULL, NULL);
}
