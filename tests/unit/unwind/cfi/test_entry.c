/* CIEs and FDEs: their heads, their forms, and what is rejected. */
#include "make_cfi.h"

static struct made_section eh, debug;
static struct cfi_entry entry;

static const struct made_form forms_of_eh[] = {
    {1, false, "", 0, 1, -8, 16},        {1, false, "zR", 0x1b, 1, -8, 16},
    {1, false, "zPLR", 0x1b, 1, -8, 16}, {1, false, "zRS", 0x1b, 1, -8, 16},
    {1, false, "zRB", 0x1b, 4, -8, 30},  {1, false, "zRBG", 0x1b, 4, -8, 30},
    {3, false, "zR", 0x1b, 1, -8, 16},   {3, false, "zR", 0x1b, 1, -4, 0x1234},
    {4, false, "zR", 0x1b, 1, -8, 16},   {1, true, "zR", 0x1b, 1, -8, 16},
    {1, false, "z", 0, 1, -8, 16},       {1, false, "zR", 0x1b, 300, -800, 255},
    {1, false, "zRPL", 0x03, 1, -8, 16},
};

static const struct made_form forms_of_debug[] = {
    {1, false, "", 0, 1, -8, 16}, {3, false, "", 0, 1, -8, 16}, {4, false, "", 0, 1, -8, 16},
    {4, true, "", 0, 1, -8, 16},  {3, true, "", 0, 4, -8, 30},
};

static void begin(void)
{
    eh.length = debug.length = 0;
    debug.is_debug_frame = true;
}

/* Reads the entry at `position` of a module with the section. */
static bool read_of(const struct made_section *section, uint64_t position)
{
    struct module module;
    make_module(&module, NULL, section->is_debug_frame ? NULL : section,
                section->is_debug_frame ? section : NULL);
    const struct cfi_source source = {&module, section->is_debug_frame};
    bool is_read = cfi_read_entry(&source, position, &entry);
    made_module_free(&module);
    return is_read;
}

static bool head_of(const struct made_section *section, uint64_t position, struct cfi_head *head)
{
    struct module module;
    make_module(&module, NULL, section->is_debug_frame ? NULL : section,
                section->is_debug_frame ? section : NULL);
    const struct cfi_source source = {&module, section->is_debug_frame};
    bool is_read = cfi_read_head(&source, position, head);
    made_module_free(&module);
    return is_read;
}

static void assert_entry(const struct made_form *form, uint64_t start, uint64_t bytes)
{
    assert_int_equal(entry.start, start);
    assert_int_equal(entry.end, start + bytes);
    assert_int_equal(entry.code_factor, form->code_factor);
    assert_int_equal(entry.data_factor, form->data_factor);
    assert_int_equal(entry.return_register, form->return_register);
    assert_int_equal(entry.is_signal_frame, strchr(form->letters, 'S') != NULL);
    assert_int_equal(entry.has_augmentation, form->letters[0] == 'z');
    /* The programs come after all that, and end with the entry. */
    assert_int_equal(bytes_left(&entry.common_program), 5);
    assert_memory_equal(entry.common_program.at, ((uint8_t[]){MADE_ENTRY_ROW}), 5);
    assert_int_equal(bytes_left(&entry.program), 3);
    assert_memory_equal(entry.program.at, ((uint8_t[]){0x41, DW_CFA_def_cfa_offset, 16}), 3);
}

static void check_forms(struct made_section *section, const struct made_form *forms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        begin();
        put_bytes(section, BYTES(4, 0, 0, 0, 1, 2, 3, 4)); /* nothing lies at 0 */
        uint64_t cie = put_cie(section, &forms[i], BYTES(MADE_ENTRY_ROW));
        uint64_t first = put_fde(section, &forms[i], cie, MADE_ADDRESS + 0x1000, 0x120,
                                 BYTES(0x41, DW_CFA_def_cfa_offset, 16));
        uint64_t second = put_fde(section, &forms[i], cie, MADE_ADDRESS + 0x10, 1,
                                  BYTES(0x41, DW_CFA_def_cfa_offset, 16));
        assert_true(read_of(section, first));
        assert_entry(&forms[i], MADE_ADDRESS + 0x1000, 0x120);
        assert_true(read_of(section, second));
        assert_entry(&forms[i], MADE_ADDRESS + 0x10, 1);
        assert_false(read_of(section, cie)); /* not an FDE */
    }
}

static void test_forms_of_eh_frame(void **state)
{
    (void)state;
    check_forms(&eh, forms_of_eh, sizeof forms_of_eh / sizeof *forms_of_eh);
}

static void test_forms_of_debug_frame(void **state)
{
    (void)state;
    check_forms(&debug, forms_of_debug, sizeof forms_of_debug / sizeof *forms_of_debug);
}

static void test_heads(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct made_section *section = i & 1 ? &debug : &eh;
        bool has_64_bits = i & 2;
        struct made_form form = i & 1 ? made_debug_form : made_eh_form;
        struct cfi_head head;
        form.has_64_bits = has_64_bits;
        /* The id has 64 bits only in .debug_frame. */
        unsigned head_bytes = !has_64_bits ? 8 : i & 1 ? 20 : 16;
        begin();
        put_bytes(section, BYTES(4, 0, 0, 0, 1, 2, 3, 4)); /* nothing lies at 0 */
        uint64_t cie = put_cie(section, &form, BYTES(MADE_ENTRY_ROW));
        uint64_t fde = put_fde(section, &form, cie, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
        uint64_t end = made_position(section);
        put_number(section, 0, 4);
        assert_true(head_of(section, cie, &head));
        assert_true(head.is_cie);
        assert_int_equal(head.next, fde);
        assert_int_equal(head.body, cie + head_bytes);
        assert_int_equal(head.body_bytes, fde - cie - head_bytes);
        assert_true(head_of(section, fde, &head));
        assert_false(head.is_cie);
        assert_int_equal(head.cie_position, cie);
        assert_int_equal(head.next, end);
        assert_int_equal(head.body, fde + head_bytes);
        assert_int_equal(head.body_bytes, end - fde - head_bytes);
        assert_false(head_of(section, end, &head)); /* a length of 0 ends the section */
        assert_false(head_of(section, end + 1, &head));
        assert_false(head_of(section, end + 4, &head));
        assert_false(head_of(section, UINT64_MAX - 3, &head));
    }
}

static void test_heads_that_cannot_be(void **state)
{
    (void)state;
    static const uint64_t huge[] = {0, 3, UINT64_MAX, UINT64_MAX - 8};
    struct cfi_head head;
    for (uint32_t length = 1; length < 4; length++) { /* too short for an id */
        begin();
        put_number(&eh, length, 4);
        put_number(&eh, 0, 8);
        assert_false(head_of(&eh, MADE_EH_FRAME, &head));
    }
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        begin();
        put_number(&debug, UINT32_MAX, 4);
        put_number(&debug, huge[i], 8);
        put_number(&debug, UINT64_MAX, 8);
        assert_false(head_of(&debug, 0, &head));
    }
    begin(); /* an id of 64 bits in 4 bytes */
    put_number(&debug, UINT32_MAX, 4);
    put_number(&debug, 4, 8);
    put_number(&debug, UINT64_MAX, 8);
    assert_false(head_of(&debug, 0, &head));
}

/* Writes a CIE and an FDE of a form. */
static uint64_t put_both(struct made_section *section, const struct made_form *form)
{
    begin();
    put_bytes(section, BYTES(4, 0, 0, 0, 1, 2, 3, 4));
    uint64_t cie = put_cie(section, form, BYTES(MADE_ENTRY_ROW));
    return put_fde(section, form, cie, MADE_ADDRESS + 0x20, 0x10, BYTES(DW_CFA_nop));
}

static void test_unknown_forms_are_refused(void **state)
{
    (void)state;
    static const struct made_form unknown[] = {
        {0, false, "zR", 0x1b, 1, -8, 16},  {2, false, "zR", 0x1b, 1, -8, 16},
        {5, false, "zR", 0x1b, 1, -8, 16},  {1, false, "eh", 0x1b, 1, -8, 16},
        {1, false, "R", 0x1b, 1, -8, 16},   {1, false, "zRX", 0x1b, 1, -8, 16},
        {1, false, "zX", 0x1b, 1, -8, 16},  {1, false, "armcc+", 0, 1, -8, 16},
        {1, false, "zRz", 0x1b, 1, -8, 16},
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_false(read_of(&eh, put_both(&eh, &unknown[i])));
    assert_true(read_of(&eh, put_both(&eh, &made_eh_form)));
}

static void test_pointer_encodings(void **state)
{
    (void)state;
    static const uint8_t known[] = {0x00, 0x03, 0x04, 0x0b, 0x0c, 0x10,
                                    0x13, 0x14, 0x1a, 0x1b, 0x1c, 0x12};
    for (size_t i = 0; i < sizeof known; i++) {
        struct made_form form = made_eh_form;
        form.pointer_encoding = known[i];
        /* 16 bits only reach near addresses; without a sign, only addresses behind. */
        bool is_short = (known[i] & 7) == 2;
        bool is_behind = known[i] == 0x12 || known[i] == 0x13;
        uint64_t start =
            is_behind ? MADE_EH_FRAME + 0x1000 : MADE_ADDRESS + (is_short ? 0x3f00 : 0x20);
        begin();
        uint64_t cie = put_cie(&eh, &form, BYTES(MADE_ENTRY_ROW));
        uint64_t fde = put_fde(&eh, &form, cie, start, 0x10, BYTES(DW_CFA_nop));
        assert_true(read_of(&eh, fde));
        assert_int_equal(entry.start, start);
        assert_int_equal(entry.end, start + 0x10);
    }
    /* A LEB128, relative to the text, the data, the function; aligned, indirect, none. */
    static const uint8_t unknown[] = {0x01, 0x09, 0x2b, 0x3b, 0x4b, 0x50, 0x9b, 0xff, 0x08, 0x05};
    struct made_form form = made_eh_form;
    uint64_t fde = put_both(&eh, &form);
    uint8_t *encoding = memchr(eh.bytes + 8, 0x1b, 32);
    assert_non_null(encoding);
    for (size_t i = 0; i < sizeof unknown; i++) {
        *encoding = unknown[i];
        assert_false(read_of(&eh, fde));
    }
}

static void test_addresses_of_other_sizes_are_refused(void **state)
{
    (void)state;
    uint64_t fde = put_both(&debug, &made_debug_form);
    uint8_t *sizes = debug.bytes + 8 + 8 + 2; /* behind the head, the version and the "" */
    assert_int_equal(sizes[0], 8);
    assert_true(read_of(&debug, fde));
    sizes[0] = 4;
    assert_false(read_of(&debug, fde));
}

static void test_functions_without_code(void **state)
{
    (void)state;
    uint64_t cie, fde;
    begin();
    cie = put_cie(&debug, &made_debug_form, BYTES(MADE_ENTRY_ROW));
    fde = put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, 0, BYTES(DW_CFA_nop));
    assert_false(read_of(&debug, fde));
    /* Beyond the end of the address space. */
    fde = put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, UINT64_MAX - 8, BYTES(DW_CFA_nop));
    assert_false(read_of(&debug, fde));
}

/* An FDE whose CIE is an FDE, or does not exist. */
static void test_wrong_cies(void **state)
{
    (void)state;
    uint64_t fde = put_both(&debug, &made_debug_form);
    uint64_t other = put_fde(&debug, &made_debug_form, fde, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
    assert_true(read_of(&debug, fde));
    assert_false(read_of(&debug, other));
    other = put_fde(&debug, &made_debug_form, 0xfffffff0, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
    assert_false(read_of(&debug, other));
    other = put_fde(&debug, &made_debug_form, other, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
    assert_false(read_of(&debug, other)); /* itself */
    fde = put_both(&eh, &made_eh_form);
    other = put_fde(&eh, &made_eh_form, fde, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
    assert_false(read_of(&eh, other));
    other = put_fde(&eh, &made_eh_form, 16, MADE_ADDRESS, 1, BYTES(DW_CFA_nop)); /* not mapped */
    assert_false(read_of(&eh, other));
}

/* Cut short after each of its bytes, an entry is refused, and so is one that claims to be longer
 * than its section. */
static void test_longer_than_the_section(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct made_section *section = i ? &debug : &eh;
        const struct made_form *form = i ? &made_debug_form : &made_eh_form;
        uint64_t fde = put_both(section, form);
        size_t length = section->length;
        assert_true(read_of(section, fde));
        for (section->length = 0; section->length < length; section->length++)
            assert_false(read_of(section, fde));
        size_t at = fde - (i ? 0 : MADE_EH_FRAME);
        section->bytes[at]++;
        assert_false(read_of(section, fde));
        section->bytes[at]--;
        section->bytes[8]++; /* its CIE's: the CIE is read into the FDE, and is still valid */
        assert_true(read_of(section, fde));
        section->bytes[8 + 1] = 0xff;
        assert_false(read_of(section, fde));
    }
}

static void test_the_longest(void **state)
{
    (void)state;
    static uint8_t program[CFI_ENTRY_BYTES_MAX];
    uint64_t cie, fde;
    /* The program comes after the head and two pointers of 8 bytes. */
    size_t most = CFI_ENTRY_BYTES_MAX - 16;
    begin();
    cie = put_cie(&debug, &made_debug_form, BYTES(MADE_ENTRY_ROW));
    fde = put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, 1, program, most);
    assert_true(read_of(&debug, fde));
    assert_int_equal(bytes_left(&entry.program), most);
    begin();
    cie = put_cie(&debug, &made_debug_form, BYTES(MADE_ENTRY_ROW));
    fde = put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, 1, program, most + 1);
    assert_false(read_of(&debug, fde));
    begin();
    /* A CIE has 7 bytes between its head and its program. */
    cie = put_cie(&debug, &made_debug_form, program, CFI_CIE_BYTES_MAX - 7);
    fde = put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
    assert_true(read_of(&debug, fde));
    begin();
    cie = put_cie(&debug, &made_debug_form, program, CFI_CIE_BYTES_MAX - 6);
    fde = put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, 1, BYTES(DW_CFA_nop));
    assert_false(read_of(&debug, fde));
}

/* Augmentation data that is shorter than its letters say, or longer than the entry. */
static void test_short_augmentation_data(void **state)
{
    (void)state;
    uint64_t fde = put_both(&eh, &made_eh_form);
    uint8_t *length = (uint8_t *)memchr(eh.bytes + 8, 0x1b, 32) - 1;
    assert_int_equal(*length, 1);
    assert_true(read_of(&eh, fde));
    *length = 0;
    assert_false(read_of(&eh, fde));
    *length = 7;
    assert_false(read_of(&eh, fde));
    *length = 1;
    /* Also in the FDE, whose data has length 0: after a head of 8 bytes and pointers of 8 bytes. */
    uint8_t *own = eh.bytes + (fde - MADE_EH_FRAME) + 16;
    assert_int_equal(*own, 0);
    *own = 1;
    assert_true(read_of(&eh, fde));
    assert_int_equal(bytes_left(&entry.program), 0);
    *own = 2;
    assert_false(read_of(&eh, fde));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_of_eh_frame),
        cmocka_unit_test(test_forms_of_debug_frame),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_heads_that_cannot_be),
        cmocka_unit_test(test_unknown_forms_are_refused),
        cmocka_unit_test(test_pointer_encodings),
        cmocka_unit_test(test_addresses_of_other_sizes_are_refused),
        cmocka_unit_test(test_functions_without_code),
        cmocka_unit_test(test_wrong_cies),
        cmocka_unit_test(test_longer_than_the_section),
        cmocka_unit_test(test_the_longest),
        cmocka_unit_test(test_short_augmentation_data),
    };
    return cmocka_run_group_tests_name("cfi_entry", tests, NULL, NULL);
}
