/* Faults in each parser that runs in the reader process. Calls of parsers from other files are
 * wrapped. A parser fails if its input is marked: a module with a certain path, or a file of
 * generated code that is read with a certain number of bytes. The same question about an input
 * without the mark must then be answered. */
#include "make_elf.h"
#include "make_jitdump.h"
#include "make_pclntab.h"
#include "unit.h"
#include "planted.h"
#include "../symbol/units.h"
#include "elf/bounded_elf.h"
#include "elf/compressed.h"
#include "elf/dwarf.h"
#include "elf/dynamic_symbol.h"
#include "elf/elf_file.h"
#include "elf/functions.h"
#include "elf/stubs.h"
#include "reader/lookup_reader.h"
#include "reader/module_packet.h"
#include "reader/reader.h"
#include "symbol/debug_file.h"
#include "symbol/dwarf/symbols.h"
#include "symbol/symbol_table.h"
#include "symbol/variables.h"
#include "unwind/code/code_end.h"
#include "unwind/code/code_frame.h"
#include "unwind/code/code_return.h"
#include "unwind/moved_part.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <lzma.h>
#include <stdio.h>

#define LIMIT_MS 20000
#define IMPATIENT_MS 200
#define TRIES_MAX 50
#define MARKED_PATH "/marked"
#define MARKED_BYTES 4095

enum fault { FAULT_NONE, FAULT_CRASH, FAULT_HANG, FAULT_EAT_MEMORY, FAULT_WRITE_WILD };
static const char *const fault_names[] = {"works", "crashes", "hangs", "eats memory",
                                          "writes wild"};
#ifdef __SANITIZE_ADDRESS__ /* there, the reader is a thread, and faults can't be planted */
#define FAULTS 1
#else
#define FAULTS 5
#endif

/* ---- In the reader ---- */

/* In memory that the reader shares with the test. */
struct plan {
    const char *parser; /* the one that fails */
    enum fault fault;
    unsigned reached; /* how often the parser was called for marked input */
};
static struct plan *plan;

static bool is_marked; /* the input being read is marked */

/* Overwrites its callers' frames, and returns into them. */
__attribute__((noinline)) static void write_wild(void)
{
    volatile char *frame = __builtin_frame_address(0);
    for (size_t i = 0; i < 2048; i++)
        frame[i] = 0x41;
}

static void plant(enum fault fault)
{
    if (fault == FAULT_CRASH)
        *(volatile char *)(uintptr_t)crash_at = 1;
    while (fault == FAULT_HANG)
        ;
    if (fault == FAULT_EAT_MEMORY)
        eat_memory();
    if (fault == FAULT_WRITE_WILD)
        write_wild();
}

static void reach(const char *parser)
{
    if (!is_marked || strcmp(parser, plan->parser) != 0)
        return;
    __atomic_fetch_add(&plan->reached, 1, __ATOMIC_RELAXED);
    plant(plan->fault);
}

/* Not hidden: other libraries refer to the wrapped name of liblzma's function. */
#define WRAP(function)                                                                             \
    extern __attribute__((visibility("default"))) __typeof__(function) __real_##function,          \
        __wrap_##function

WRAP(module_packet_take);
int __wrap_module_packet_take(struct bytes *body, int fd, struct module **ret_module)
{
    struct bytes ahead = *body;
    const char *path = packet_text(&ahead);
    is_marked = path && strcmp(path, MARKED_PATH) == 0;
    return __real_module_packet_take(body, fd, ret_module);
}

WRAP(jit_source_read);
int __wrap_jit_source_read(const struct jit_source *source, off_t most, struct jit_reading *reading)
{
    is_marked = most == MARKED_BYTES;
    return __real_jit_source_read(source, most, reading);
}

WRAP(die_read_attributes);
bool __wrap_die_read_attributes(const struct unit *unit, struct bytes *bytes,
                                const struct abbrev *abbrev, struct die *ret_die)
{
    if (abbrev->tag == DW_TAG_inlined_subroutine)
        reach("die_read_attributes");
    return __real_die_read_attributes(unit, bytes, abbrev, ret_die);
}

#define PARSER(type, name, parameters, ...)                                                        \
    WRAP(name);                                                                                    \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        reach(#name);                                                                              \
        return __real_##name(__VA_ARGS__);                                                         \
    }

PARSER(size_t, bounded_elf_build_id, (Elf * elf, unsigned char *id), elf, id)
PARSER(bool, dynamic_symbol_find,
       (struct module * module, const char *name, unsigned char type, struct module_part *symbol),
       module, name, type, symbol)
PARSER(bool, functions_find,
       (struct module * module, uint64_t address, struct function_range *range), module, address,
       range)
PARSER(const struct stub *, stubs_find, (struct module * module, uint64_t address), module, address)
PARSER(unsigned char *, section_decompress,
       (const struct section *section, bool is_gnu, uint64_t most, size_t *bytes), section, is_gnu,
       most, bytes)
PARSER(int, symbol_table_add, (struct symbol_table * table, struct object *object), table, object)
PARSER(lzma_ret, lzma_stream_buffer_decode,
       (uint64_t * memory, uint32_t flags, const lzma_allocator *allocator, const uint8_t *in,
        size_t *in_at, size_t in_bytes, uint8_t *out, size_t *out_at, size_t out_bytes),
       memory, flags, allocator, in, in_at, in_bytes, out, out_at, out_bytes)
PARSER(int, debug_file_find,
       (struct object * object, struct debug_files *files, const char *path, struct object *found,
        char **found_path),
       object, files, path, found, found_path)
PARSER(int, variable_find,
       (const struct module *module, uint64_t address, char **name, uint64_t *offset), module,
       address, name, offset)
PARSER(int, class_find, (const struct module *module, uint64_t address, char **name), module,
       address, name)
PARSER(int, unit_read, (struct debug_info * info, uint64_t at, struct unit *unit), info, at, unit)
PARSER(bool, value_read,
       (const struct unit *unit, struct bytes *bytes, unsigned form, int64_t implicit,
        struct value *value),
       unit, bytes, form, implicit, value)
PARSER(int, ranges_read,
       (struct code_ranges * ranges, const struct unit *unit, const struct die *die), ranges, unit,
       die)
PARSER(int, lines_read, (struct lines * lines, const struct unit *unit, const struct die *root),
       lines, unit, root)
PARSER(int, debug_functions_read, (struct debug_functions * functions, const struct unit *unit),
       functions, unit)
PARSER(int, split_read,
       (struct split * split, const struct unit *skeleton, const struct die *root,
        struct unit *unit),
       split, skeleton, root, unit)
PARSER(int, cplus_demangle_v3_callback,
       (const char *symbol, int options, demangle_callbackref callback, void *context), symbol,
       options, callback, context)
PARSER(int, rust_demangle_callback,
       (const char *symbol, int options, demangle_callbackref callback, void *context), symbol,
       options, callback, context)
PARSER(char *, dlang_demangle, (const char *symbol, int options), symbol, options)
PARSER(bool, pclntab_open, (struct pclntab * table, struct module *module), table, module)
PARSER(bool, go_module_find, (const struct pclntab *table, struct go_module *module), table, module)
PARSER(bool, pclntab_find,
       (const struct pclntab *table, uint64_t address, struct pclntab_function *function), table,
       address, function)
PARSER(bool, pclntab_function,
       (const struct pclntab *table, uint64_t number, struct pclntab_function *function), table,
       number, function)
PARSER(bool, pclntab_name, (const struct pclntab *table, uint32_t offset, char *name), table,
       offset, name)
PARSER(bool, pclntab_line,
       (const struct pclntab *table, const struct pclntab_function *function, uint64_t address,
        char *file, uint32_t *line),
       table, function, address, file, line)
PARSER(bool, pclntab_inlined,
       (const struct pclntab *table, const struct pclntab_function *function, uint64_t address,
        struct pclntab_inlined *inlined),
       table, function, address, inlined)
PARSER(bool, pclntab_frame_bytes,
       (const struct pclntab *table, const struct pclntab_function *function, uint64_t address,
        uint32_t *bytes),
       table, function, address, bytes)
PARSER(bool, cfi_read_entry,
       (const struct cfi_source *source, uint64_t position, struct cfi_entry *entry), source,
       position, entry)
PARSER(bool, cfi_find_row, (const struct cfi_entry *entry, uint64_t address, struct cfi_row *row),
       entry, address, row)
PARSER(struct code_frame, code_frame_at, (const uint8_t *code, size_t bytes, size_t at), code,
       bytes, at)
PARSER(bool, code_return_find,
       (struct module * module, uint64_t address, bool is_after_call, struct code_return *found),
       module, address, is_after_call, found)
PARSER(uint64_t, code_end_of_function, (struct module * module, uint64_t start, uint64_t limit),
       module, start, limit)
PARSER(uint64_t, moved_part_function,
       (struct rule_tables * tables, struct module *module, const struct function_range *part),
       tables, module, part)
PARSER(size_t, prologue_frame_bytes, (const uint8_t *code, size_t bytes, uint64_t *candidates),
       code, bytes, candidates)
PARSER(size_t, perf_map_read,
       (struct perf_map * map, const char *text, size_t bytes, perf_map_visit_fn *visit,
        void *context),
       map, text, bytes, visit, context)
PARSER(enum jitdump_result, jitdump_next,
       (struct jitdump * dump, const uint8_t *bytes, size_t length, uint64_t available,
        struct jitdump_record *record, uint64_t *used),
       dump, bytes, length, available, record, used)
PARSER(bool, jitdump_next_line, (struct jitdump_record * record, struct jitdump_line *line), record,
       line)

/* ---- What is read: this program, Go's tables, and files of generated code ---- */

/* Damaged sections; code that has a symbol without a size and no call frame information; and code
 * that has call frame information but no symbol. */
__asm__(".pushsection .gnu_debugdata, \"\", %progbits\n"
        "    .byte 0\n"
        ".popsection\n"
        ".pushsection .zdebug_ranges, \"\", %progbits\n"
        "    .byte 0\n"
        ".popsection\n"
        ".pushsection .text.parsers, \"ax\", %progbits\n"
        ".globl sizeless\n"
        "sizeless:\n"
        "    nop\n"
        "    ret\n"
        ".p2align 4\n"
        ".Lnameless:\n"
        ".cfi_startproc\n"
        "    nop\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".popsection\n");
extern const char sizeless[], nameless[] __asm__(".Lnameless");

extern const uintptr_t vtable[4] __asm__("_ZTVN3net4PoolE");
const uintptr_t vtable[4] = {1, 2, 3, 4};
int variable = 1;

int in_cpp(void) __asm__("_ZN3app4readEi");
int in_rust(void) __asm__("_RNvC6_123foo3bar");
int in_d(void) __asm__("_D8demangle4testFaZv");
int with_call(void);

int in_cpp(void)
{
    return variable;
}

int in_rust(void)
{
    return variable + 1;
}

int in_d(void)
{
    return variable + 2;
}

__attribute__((always_inline)) static inline int is_inlined(int number)
{
    return number * variable;
}

int with_call(void)
{
    return is_inlined(variable + 3);
}

static int go_program(void)
{
    static const struct made_function functions[] = {
        {.name = "main.main", .code_bytes = 64, .frame_bytes = 24, .has_inlined = true},
        {.name = "main.other", .code_bytes = 64},
    };
    struct made_elf elf;
    struct made_go go;
    make_elf(&elf);
    make_segment(&elf, PT_LOAD, PF_R | PF_X, 0x1000, MADE_GO_CODE, 0x1000, 0x1000);
    make_segment(&elf, PT_LOAD, PF_R | PF_W, 0x2000, MADE_GO_DATA, 0x4000, 0x4000);
    make_go(&go, PCLNTAB_1_20, functions, 2);
    memcpy(go.bytes, elf.bytes, 0x1000);
    int fd = file_of(go.bytes, MADE_GO_BYTES);
    made_go_free(&go);
    return fd;
}

static int dump_of_code(void)
{
    static struct made_dump made;
    made.length = 0;
    make_header(&made);
    make_lines(&made, 0x1000, (struct made_jit_line[]){{0x1000, 1, "a.js"}, {0}});
    make_load(&made, 0x1000, 16, 1, "generated");
    return file_of(made.bytes, made.length);
}

enum question {
    NAME,
    VARIABLE,
    CLASS,
    RULE,
    RETURNS,
    PROLOGUE,
    SYMBOL,
    SPLIT,
    GO,
    HEADERS,
    MAP,
    DUMP
};

/* The result of a fault: an error, or no name. */
static const int errors[] = {
    [NAME] = -ENOEXEC,    [VARIABLE] = -ENOENT,  [CLASS] = -ENOENT,  [RULE] = -ENOEXEC,
    [RETURNS] = -ENOEXEC, [PROLOGUE] = -ENOEXEC, [SYMBOL] = -ENOENT, [SPLIT] = -ENOENT,
    [GO] = -ENOENT,       [HEADERS] = -EIO,      [MAP] = -ENOEXEC,   [DUMP] = -ENOEXEC,
};

static const struct row {
    const char *parser;
    enum question question;
    const void *place; /* the place in this program to ask about; NULL: a place in Go's code */
    const char *name;  /* the expected name; NULL: none */
} rows[] = {
    {"bounded_elf_build_id", HEADERS, vtable, NULL},
    {"dynamic_symbol_find", SYMBOL, vtable, NULL},
    {"symbol_table_add", NAME, in_one_unit, "in_one_unit"},
    {"lzma_stream_buffer_decode", NAME, in_one_unit, "in_one_unit"},
    {"section_decompress", NAME, in_one_unit, "in_one_unit"},
    {"debug_file_find", SPLIT, in_one_unit, "in_one_unit"},
    {"stubs_find", NAME, nameless, ""},
    {"variable_find", VARIABLE, &variable, "variable"},
    {"class_find", CLASS, &vtable[2], "net::Pool"},
    {"unit_read", NAME, with_call, "with_call"},
    {"value_read", NAME, with_call, "with_call"},
    {"ranges_read", NAME, with_call, "with_call"},
    {"lines_read", NAME, with_call, "with_call"},
    {"debug_functions_read", NAME, with_call, "with_call"},
    {"die_read_attributes", NAME, with_call, "with_call"}, /* of an inlined call */
    {"split_read", NAME, in_one_unit, "in_one_unit"},
    {"cplus_demangle_v3_callback", NAME, in_cpp, "app::read"},
    {"rust_demangle_callback", NAME, in_rust, "123foo::bar"},
    {"dlang_demangle", NAME, in_d, "demangle.test(char)"},
    {"pclntab_open", NAME, NULL, "main.inlined"},
    {"go_module_find", NAME, NULL, "main.inlined"},
    {"pclntab_find", NAME, NULL, "main.inlined"},
    {"pclntab_name", NAME, NULL, "main.inlined"},
    {"pclntab_line", NAME, NULL, "main.inlined"},
    {"pclntab_inlined", NAME, NULL, "main.inlined"},
    {"pclntab_frame_bytes", RULE, NULL, NULL},
    {"pclntab_function", GO, NULL, NULL},
    {"cfi_read_entry", RULE, in_one_unit, NULL},
    {"cfi_find_row", RULE, in_one_unit, NULL},
    {"functions_find", RULE, sizeless, NULL},
    {"code_frame_at", RULE, sizeless, NULL},
    {"code_return_find", RETURNS, sizeless, NULL},
    {"code_end_of_function", NAME, sizeless, "sizeless"},
    {"moved_part_function", NAME, nameless, ""},
    {"prologue_frame_bytes", PROLOGUE, in_one_unit, NULL},
    {"perf_map_read", MAP, vtable, NULL},
    {"jitdump_next", DUMP, vtable, NULL},
    {"jitdump_next_line", DUMP, vtable, NULL},
};
#define ROWS (sizeof rows / sizeof *rows)

static struct trial {
    const struct row *row;
    enum fault fault;
    char title[64];
} trials[ROWS][FAULTS];

/* ---- Questions ---- */

static struct reader *reader;
static struct lookup_reader *lookup_reader;
static struct module modules[2];    /* the marked one, and the same without the mark */
static char name[QUERY_TEXT_BYTES]; /* of the last answer */
static const char *why;             /* why there was no answer; NULL: no reason given */

static int set_up(void **state)
{
    const struct trial *trial = *state;
    unsigned limit_ms = trial->fault == FAULT_HANG ? IMPATIENT_MS : LIMIT_MS;
    *plan = (struct plan){trial->row->parser, trial->fault, 0};
    for (uint32_t i = 0; i < 2; i++) {
        int fd = trial->row->place ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : go_program();
        modules[i] = (struct module){.number = i,
                                     .serial = i + 1,
                                     .path = strdup(i ? "/not-marked" : MARKED_PATH),
                                     .is_readable = true};
        if (image_open_fd(&modules[i].image, fd))
            return -1;
    }
    return reader_new(limit_ms, &reader) || lookup_reader_new(limit_ms, &lookup_reader);
}

static int tear_down(void **state)
{
    (void)state;
    reader_free(reader);
    lookup_reader_free(lookup_reader);
    module_clear(&modules[0]);
    module_clear(&modules[1]);
    return 0;
}

static uint64_t address_of(const struct row *row)
{
    extern const char __executable_start[]; /* ld's */
    return row->place ? (uintptr_t)row->place - (uintptr_t)__executable_start : MADE_GO_CODE;
}

static int take(void *context, uint64_t address, const struct symbol *symbol, bool is_trampoline)
{
    (void)context, (void)address, (void)is_trampoline;
    snprintf(name, sizeof name, "%s", symbol->line_count ? symbol->lines[0].shown : "");
    return 0;
}

static int ask_for_name(const struct row *row, const struct module *module)
{
    uint64_t address = address_of(row), offset;
    const struct reader_question question = {.module = module, .addresses = &address, .count = 1};
    char *found;
    if (row->question == NAME)
        return reader_ask(reader, &question, take, NULL, &why);
    int err = row->question == CLASS
                  ? reader_find_class(reader, module, address, &found)
                  : reader_find_variable(reader, module, address, &found, &offset);
    if (!err) {
        snprintf(name, sizeof name, "%s", found);
        free(found);
    }
    return err;
}

static int ask_of_module(const struct row *row, struct module *module)
{
    static const enum query_kind kinds[] = {
        [SYMBOL] = QUERY_SYMBOL, [SPLIT] = QUERY_NAME, [GO] = QUERY_GO, [HEADERS] = QUERY_KINDS};
    struct lookups *lookups = lookup_reader_lookups(lookup_reader);
    const struct query query = {kinds[row->question], address_of(row), "main", STT_FUNC};
    union query_answer answer;
    int err = row->question == HEADERS ? lookups->queries.read(&lookups->queries, module)
                                       : query_ask(&lookups->queries, module, &query, &answer);
    if (!err && row->question == SPLIT)
        snprintf(name, sizeof name, "%s", answer.function.name);
    why = module->unread;
    return err;
}

static int look_up(const struct row *row, struct module *module)
{
    struct lookups *lookups = lookup_reader_lookups(lookup_reader);
    uint64_t address = address_of(row);
    struct lookup lookup = {LOOKUP_RULE, address, 0};
    union lookup_answer answer;
    if (row->question == RETURNS)
        lookup.kind = LOOKUP_RETURNS;
    if (row->question == PROLOGUE)
        lookup = (struct lookup){LOOKUP_PROLOGUE, address + 4, address};
    int err = lookups->find(lookups, module, &lookup, &answer);
    why = module->unread;
    return err;
}

static int read_code(const struct row *row, bool marked)
{
    struct lookups *lookups = lookup_reader_lookups(lookup_reader);
    struct jit_source source = {0};
    struct jit_reading reading = {0};
    bool is_dump = row->question == DUMP;
    jit_source_open(&source, is_dump ? dump_of_code() : file_of_text("1000 10 generated\n"),
                    is_dump);
    int err = lookups->read_code(lookups, &source, MARKED_BYTES + !marked, &reading);
    assert_int_equal(!err, reading.announced.length > 0);
    buffer_free(&reading.announced);
    jit_source_close(&source);
    return err;
}

static int ask(const struct row *row, bool marked)
{
    struct module *module = &modules[!marked];
    name[0] = '\0';
    why = NULL;
    int err = row->question <= CLASS      ? ask_for_name(row, module)
              : row->question <= PROLOGUE ? look_up(row, module)
              : row->question <= HEADERS  ? ask_of_module(row, module)
                                          : read_code(row, marked);
    if (!err && row->name)
        assert_string_equal(name, row->name);
    return err;
}

/* On a busy machine, a question may time out before it reaches the parser that hangs, or before it
 * is answered: then it is asked again about another module. */
static int ask_again(const struct trial *trial, bool marked)
{
    for (unsigned tries = 1;; tries++) {
        int err = ask(trial->row, marked);
        if (trial->fault != FAULT_HANG || tries == TRIES_MAX || (marked ? plan->reached : !err))
            return err;
        modules[!marked].serial += 2;
    }
}

/* The question fails, the file is not read again, and a new reader answers the same question about
 * another file. */
static void test_parser(void **state)
{
    const struct trial *trial = *state;
    const struct row *row = trial->row;
    int err = ask_again(trial, true);
    unsigned reached = plan->reached;
    assert_true(reached > 0);
    assert_int_equal(err, trial->fault ? errors[row->question] : 0);
    if (!trial->fault)
        return;
    if (why)
        assert_string_equal(why, trial->fault == FAULT_HANG ? "reading it takes too long"
                                                            : "its reader crashed");
    else
        assert_true(row->question == VARIABLE || row->question == CLASS || row->question > HEADERS);
    if (row->question <= HEADERS) { /* the asking process itself gives up files of generated code */
        assert_int_equal(ask(row, true), err);
        assert_int_equal(plan->reached, reached);
    }
    assert_int_equal(ask_again(trial, false), 0);
    assert_int_equal(plan->reached, reached);
}

int main(void)
{
    static struct CMUnitTest tests[ROWS * FAULTS];
    plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < ROWS * FAULTS; i++) {
        struct trial *trial = &trials[i / FAULTS][i % FAULTS];
        trial->row = &rows[i / FAULTS];
        trial->fault = (enum fault)(i % FAULTS);
        snprintf(trial->title, sizeof trial->title, "%s %s", trial->row->parser,
                 fault_names[trial->fault]);
        tests[i] = (struct CMUnitTest){trial->title, test_parser, set_up, tear_down, trial};
    }
    return cmocka_run_group_tests_name("parsers", tests, NULL, NULL);
}
