/* Symbols of a module, here the test's own program. */
#include "unit.h"
#include "units.h"
#include "elf/elf_file.h"
#include "symbol/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct copy {
    char path[64];
    struct module module;
    struct own_debug_files own;
    int fd; /* for writing */
    off_t bytes;
};

/* A copy of this program, opened as a module. */
static int set_up(void **state)
{
    struct copy *copy = calloc(1, sizeof *copy);
    struct stat status;
    char buffer[65536];
    ssize_t got;
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    *state = copy;
    strcpy(copy->path, "/tmp/fgprof-symbols-XXXXXX");
    copy->fd = mkstemp(copy->path);
    assert_true(from >= 0 && copy->fd >= 0 && fstat(from, &status) == 0);
    while ((got = read(from, buffer, sizeof buffer)) > 0)
        assert_int_equal(write(copy->fd, buffer, (size_t)got), got);
    close(from);
    copy->bytes = status.st_size;
    copy->module.path = copy->path;
    copy->module.is_readable = true;
    assert_int_equal(image_open_fd(&copy->module.image, open(copy->path, O_RDONLY | O_CLOEXEC)), 0);
    assert_int_equal(elf_file_read(&copy->module), 0);
    own_debug_files_init(&copy->own, &copy->module, NULL);
    return 0;
}

static int tear_down(void **state)
{
    struct copy *copy = *state;
    close(copy->fd);
    unlink(copy->path);
    copy->module.path = NULL; /* belongs to the original */
    module_clear(&copy->module);
    free(copy);
    return 0;
}

extern const char __executable_start[]; /* ld's */

static uint64_t own_address(const void *address)
{
    return (uint64_t)((const char *)address - __executable_start);
}

static void test_functions_of_several_units(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    struct symbol symbol;
    const char *why;
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
    const struct {
        const char *name, *file;
        uint64_t address;
    } functions[] = {
        {"own_address", "/symbol/test_symbols.c",
         own_address((const void *)(uintptr_t)own_address)},
        {"in_one_unit", "/symbol/one_unit.c", own_address((const void *)(uintptr_t)in_one_unit)},
        {"in_other_unit", "/symbol/other_unit.c",
         own_address((const void *)(uintptr_t)in_other_unit)},
    };
    /* Twice, and not in ascending order: any address may be looked up at any time. */
    for (size_t i = 0; i < 6; i++) {
        symbols_find(symbols, functions[i % 3].address, &symbol);
        assert_int_equal(symbol.line_count, 1);
        assert_string_equal(symbol.lines[0].name, functions[i % 3].name);
        assert_non_null(strstr(symbol.lines[0].file, functions[i % 3].file));
        assert_true(symbol.lines[0].line > 0);
        assert_true(symbol.has_debug_info);
        assert_int_equal(symbol.function_offset, 0);
    }
    symbols_find(symbols, 8, &symbol); /* in the file's header */
    assert_int_equal(symbol.line_count, 0);
    symbols_close(symbols);
}

/* From made_units.c. */
extern const char nested[], packaged[];

static void assert_only_line(struct symbols *symbols, const char *code, const char *name,
                             bool has_debug_info)
{
    struct symbol symbol;
    symbols_find(symbols, own_address(code), &symbol);
    assert_int_equal(symbol.line_count, 1);
    assert_string_equal(symbol.lines[0].name, name);
    assert_int_equal(symbol.has_debug_info, has_debug_info);
}

static void test_functions_that_begin_alike(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    const char *why;
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
    assert_only_line(symbols, nested, "inner", true);
    assert_only_line(symbols, nested + 4, "outer", true);
    symbols_close(symbols);
}

static void test_a_unit_in_a_package(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    const char *why;
    char package[sizeof copy->path + 4];
    snprintf(package, sizeof package, "%s.dwp", copy->path);
    for (int has_package = 0; has_package <= 1; has_package++) {
        assert_int_equal(has_package ? link(copy->path, package) : 0, 0);
        assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
        assert_only_line(symbols, packaged, has_package ? "in_package" : "packaged", has_package);
        symbols_close(symbols);
    }
    unlink(package);
}

/* With a mapping of the file, this would end in SIGBUS. */
static void test_a_file_that_is_cut_short_meanwhile(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    struct symbol symbol;
    const char *why;
    uint64_t here = own_address((const void *)(uintptr_t)own_address),
             there = own_address((const void *)(uintptr_t)in_one_unit);
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
    symbols_find(symbols, here, &symbol);
    assert_int_equal(symbol.line_count, 1);
    assert_int_equal(ftruncate(copy->fd, 0), 0);
    symbols_find(symbols, there, &symbol);
    assert_false(symbol.has_debug_info);
    symbols_close(symbols);
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), -ENOEXEC);
    assert_non_null(why);
}

static void test_a_file_without_its_end(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    const char *why;
    assert_int_equal(ftruncate(copy->fd, copy->bytes / 2), 0);
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), -ENOEXEC);
    assert_string_equal(why, "damaged or cut short");
}

/* No reason is given. */
static void test_a_file_that_is_not_readable(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    const char *why;
    copy->module.is_readable = false;
    copy->module.error = 0;
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), -ENOEXEC);
    assert_string_equal(why, "not a valid ELF file");
}

/* Then debug information can't be read, and only the symbol table is used. */
static void test_no_file_descriptor_is_left(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    struct symbol symbol;
    struct rlimit limit, before;
    const char *why;
    int next = dup(copy->fd);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){(rlim_t)next + 1, before.rlim_max}; /* enough for one */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
    symbols_find(symbols, own_address((const void *)(uintptr_t)own_address), &symbol);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(symbol.line_count, 1);
    assert_string_equal(symbol.lines[0].name, "own_address");
    assert_false(symbol.has_debug_info);
    symbols_close(symbols);
}

#ifdef __x86_64__

/* Labels without type and size, each followed by a function without a symbol; the second label has
 * call frame information. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl label_by_code\n"
        "label_by_code:\n"
        "    test %edi, %edi\n"
        "    je 1f\n"
        "    ret\n"
        "1:  nop\n"
        "    ret\n"
        ".p2align 4\n"
        "    nop\n"
        "    ret\n"
        ".p2align 4\n"
        ".cfi_startproc\n"
        ".globl label_by_table\n"
        "label_by_table:\n"
        "    ret\n"
        "    nop\n"
        "    nop\n"
        ".cfi_endproc\n"
        ".cfi_startproc\n"
        "    nop\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".globl label_after\n"
        "label_after:\n"
        "    ret\n");
extern const char label_by_code[], label_by_table[];

/* A function, and a separate part of it that has no symbol. */
__asm__(".text\n"
        ".globl with_part, part_of_it\n"
        ".type with_part, %function\n"
        "with_part:\n"
        ".cfi_startproc\n"
        "    push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        "    jc 1f\n"
        "2:  pop %rbp\n"
        ".cfi_def_cfa_offset 8\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size with_part, . - with_part\n"
        ".pushsection .text.elsewhere, \"ax\", %progbits\n"
        "1:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        "    nop\n"
        "    jmp 2b\n"
        ".cfi_endproc\n"
        ".popsection\n"
        ".pushsection .data.rel.ro, \"aw\"\n"
        "part_of_it: .quad 1b\n"
        ".popsection\n");
extern const char *const part_of_it;

static void test_a_part_without_a_symbol(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    struct symbol symbol;
    const char *why;
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
    for (uint64_t offset = 0; offset < 3; offset++) {
        symbols_find(symbols, own_address(part_of_it) + offset, &symbol);
        assert_int_equal(symbol.line_count, 1);
        assert_string_equal(symbol.lines[0].name, "with_part");
        assert_int_equal(symbol.function_offset, offset);
    }
    symbols_close(symbols);
}

/* In a stripped file, many functions without symbols may follow a label: the label's name is not
 * theirs. */
static void test_how_far_a_label_reaches(void **state)
{
    struct copy *copy = *state;
    struct symbols *symbols;
    struct symbol symbol;
    const char *why;
    static const struct {
        const char *label, *name;
        uint64_t reach;
    } labels[] = {{label_by_code, "label_by_code", 7}, {label_by_table, "label_by_table", 3}};
    assert_int_equal(symbols_open(&copy->module, &copy->own.files, &symbols, &why), 0);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        for (uint64_t offset = 0; offset < labels[i].reach; offset++) {
            symbols_find(symbols, own_address(labels[i].label) + offset, &symbol);
            assert_int_equal(symbol.line_count, 1);
            assert_string_equal(symbol.lines[0].name, labels[i].name);
            assert_int_equal(symbol.function_offset, offset);
        }
        symbols_find(symbols, own_address(labels[i].label) + labels[i].reach, &symbol);
        assert_int_equal(symbol.line_count, 0);
    }
    symbols_find(symbols, own_address(label_by_code) + 16, &symbol);
    assert_int_equal(symbol.line_count, 0);
    symbols_close(symbols);
}

#endif

#define WITH_COPY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_COPY(test_functions_of_several_units),
        WITH_COPY(test_functions_that_begin_alike),
        WITH_COPY(test_a_unit_in_a_package),
        WITH_COPY(test_a_file_that_is_cut_short_meanwhile),
        WITH_COPY(test_a_file_without_its_end),
        WITH_COPY(test_a_file_that_is_not_readable),
        WITH_COPY(test_no_file_descriptor_is_left),
#ifdef __x86_64__
        WITH_COPY(test_a_part_without_a_symbol),
        WITH_COPY(test_how_far_a_label_reaches),
#endif
    };
    return cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
}
