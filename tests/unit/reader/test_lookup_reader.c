/* The reader process that answers the unwinder's questions: its answers equal those of this
 * process, and its faults are survived. Faults are planted in module_look_up, module_query,
 * elf_file_read and jit_source_read, which only the reader calls. An address outside any module, a
 * number of bytes, or a path selects the fault. */
#include "unit.h"
#include "planted.h"
#include "base/clock.h"
#include "elf/elf_file.h"
#include "reader/lookup_packet.h"
#include "reader/lookup_reader.h"
#include "reader/lookup_server.h"
#include "reader/module_packet.h"
#include "symbol/module_query.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT_MS 20000
#define IMPATIENT_MS 800 /* half of it may pass without a CPU */
#define COUNT (LOOKUP_MODULES_MAX + 2)

enum fault {
    FAULT_CRASH = 1,
    FAULT_HANG,
    FAULT_EAT_MEMORY,
    FAULT_END,
    FAULT_OPEN,
    FAULT_SLOW,      /* takes half of its time */
    FAULT_NO_MEMORY, /* reports -ENOMEM */
    FAULT_KIND,      /* answers with an impossible rule */
    FAULT_REGISTER,
    FAULTS,
};
#define FAULT_AT(fault) (UINT64_MAX - 1 - FAULTS + (fault))

static void be_slow(void)
{
    uint64_t until_ns = monotonic_ns() + IMPATIENT_MS / 2 * (uint64_t)1000000;
    while (monotonic_ns() < until_ns)
        ;
}

static int plant(enum fault fault, union lookup_answer *ret_answer)
{
    ret_answer->rule = (struct rule){.kind = RULE_CALLER};
    switch (fault) {
    case FAULT_CRASH:
        *(volatile char *)(uintptr_t)crash_at = 1;
        break;
    case FAULT_HANG:
        for (;;)
            ;
    case FAULT_EAT_MEMORY:
        eat_memory();
        break;
    case FAULT_END:
        _exit(0);
    case FAULT_OPEN:
        open("/etc/passwd", O_RDONLY | O_CLOEXEC);
        break;
    case FAULT_SLOW:
        be_slow();
        break;
    case FAULT_NO_MEMORY:
        return -ENOMEM;
    case FAULT_KIND:
        ret_answer->rule.kind = RULE_UNREAD;
        break;
    default:
        ret_answer->rule.cfa.register_number = REGISTERS_MAX;
    }
    return 0;
}

int __real_module_look_up(struct module *module, const struct lookup *lookup,
                          struct cfi_entry *scratch, union lookup_answer *ret_answer);
int __wrap_module_look_up(struct module *module, const struct lookup *lookup,
                          struct cfi_entry *scratch, union lookup_answer *ret_answer);
int __wrap_module_look_up(struct module *module, const struct lookup *lookup,
                          struct cfi_entry *scratch, union lookup_answer *ret_answer)
{
    uint64_t fault = lookup->address - FAULT_AT(0);
    if (fault && fault < FAULTS)
        return plant((enum fault)fault, ret_answer);
    return __real_module_look_up(module, lookup, scratch, ret_answer);
}

int __real_module_query(struct module_names *names, struct module *module,
                        struct debug_files *files, const struct query *query,
                        union query_answer *ret_answer);
int __wrap_module_query(struct module_names *names, struct module *module,
                        struct debug_files *files, const struct query *query,
                        union query_answer *ret_answer);
int __wrap_module_query(struct module_names *names, struct module *module,
                        struct debug_files *files, const struct query *query,
                        union query_answer *ret_answer)
{
    union lookup_answer answer;
    uint64_t fault = query->address - FAULT_AT(0);
    if (!fault || fault >= FAULTS)
        return __real_module_query(names, module, files, query, ret_answer);
    memset(ret_answer, 0, sizeof *ret_answer);
    ret_answer->go.minor = UINT32_MAX; /* FAULT_KIND */
    return plant((enum fault)fault, &answer);
}

#define FAULT_PATH "/fault/"

int __real_elf_file_read(struct module *module);
int __wrap_elf_file_read(struct module *module);
int __wrap_elf_file_read(struct module *module)
{
    union lookup_answer answer;
    if (!module->path || strncmp(module->path, FAULT_PATH, strlen(FAULT_PATH)) != 0)
        return __real_elf_file_read(module);
    module->build_id_bytes = BUILD_ID_BYTES_MAX + 1; /* FAULT_KIND */
    return plant((enum fault)atoi(module->path + strlen(FAULT_PATH)), &answer);
}

int __real_jit_source_read(const struct jit_source *source, off_t most,
                           struct jit_reading *reading);
int __wrap_jit_source_read(const struct jit_source *source, off_t most,
                           struct jit_reading *reading);
int __wrap_jit_source_read(const struct jit_source *source, off_t most, struct jit_reading *reading)
{
    union lookup_answer answer;
    int err = __real_jit_source_read(source, most, reading);
    if (!err && most == FAULT_KIND)
        buffer_puts(&reading->announced, "no announcement");
    return err || most >= FAULTS ? err : plant((enum fault)most, &answer);
}

struct world {
    struct lookup_reader *reader;
    struct lookups *lookups;
    struct own_lookups own;
    struct module *modules; /* this program, many times */
    size_t count;
    uint64_t code, code_bytes; /* its first code segment */
    union lookup_answer answer;
};

static int open_program(struct module *module, uint32_t number)
{
    *module = (struct module){
        .number = number, .serial = number + 1, .path = strdup("/bin/app"), .is_readable = true};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return image_open_fd(&module->image, fd) || __real_elf_file_read(module);
}

static int open_modules(struct world *world, size_t count)
{
    world->modules = calloc(count, sizeof *world->modules);
    for (; world->count < count; world->count++) {
        if (open_program(&world->modules[world->count], (uint32_t)world->count))
            return -1;
    }
    for (size_t i = world->modules[0].segment_count; i-- > 0;) {
        const struct segment *segment = &world->modules[0].segments[i];
        if (segment->executable) {
            world->code = segment->address;
            world->code_bytes = segment->file_bytes;
        }
    }
    own_lookups_init(&world->own);
    return world->code_bytes ? 0 : -1;
}

static int set_up_with(void **state, unsigned limit_ms, size_t count)
{
    struct world *world = *state = calloc(1, sizeof *world);
    if (lookup_reader_new(limit_ms, &world->reader))
        return -1;
    world->lookups = lookup_reader_lookups(world->reader);
    return open_modules(world, count);
}

static int set_up(void **state)
{
    return set_up_with(state, LIMIT_MS, 2);
}

static int set_up_many(void **state)
{
    return set_up_with(state, LIMIT_MS, COUNT);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    lookup_reader_free(world->reader);
    own_lookups_free(&world->own);
    for (size_t i = 0; i < world->count; i++)
        module_clear(&world->modules[i]);
    free(world->modules);
    free(world);
    return 0;
}

static int ask(struct world *world, size_t module, uint64_t address)
{
    const struct lookup lookup = {LOOKUP_RULE, address, 0};
    return world->lookups->find(world->lookups, &world->modules[module], &lookup, &world->answer);
}

static void assert_same(enum lookup_kind kind, const union lookup_answer *one,
                        const union lookup_answer *other)
{
    struct buffer left = {0}, right = {0};
    lookup_packet_put_answer(&left, kind, one);
    lookup_packet_put_answer(&right, kind, other);
    assert_int_equal(left.length, right.length);
    assert_memory_equal(left.bytes, right.bytes, left.length);
    buffer_free(&left);
    buffer_free(&right);
}

static void check_it_answers(struct world *world, size_t module)
{
    union lookup_answer expected = {0};
    for (uint64_t at = 0; at < 20; at++) {
        const struct lookup lookup = {LOOKUP_RULE, world->code + world->code_bytes / 2 + at, 0};
        assert_int_equal(world->own.lookups.find(&world->own.lookups, &world->modules[module],
                                                 &lookup, &expected),
                         0);
        assert_int_equal(ask(world, module, lookup.address), 0);
        assert_same(LOOKUP_RULE, &world->answer, &expected);
    }
    assert_null(world->modules[module].unread);
}

/* Compares the answers for all kinds of questions, all over the program. */
static void test_it_says_what_is_said_here(void **state)
{
    struct world *world = *state;
    struct module *module = &world->modules[0];
    unsigned callers = 0, functions = 0, prologues = 0;
    for (unsigned kind = 0; kind < LOOKUP_KINDS; kind++) {
        for (uint64_t at = 0; at < world->code_bytes; at += 97) {
            struct lookup lookup = {(enum lookup_kind)kind, world->code + at, world->code};
            union lookup_answer here = {0}, there = {0};
            if (kind == LOOKUP_PROLOGUE && at >= 64)
                lookup.function = lookup.address - 64;
            assert_int_equal(world->own.lookups.find(&world->own.lookups, module, &lookup, &here),
                             0);
            assert_int_equal(world->lookups->find(world->lookups, module, &lookup, &there), 0);
            assert_same(lookup.kind, &here, &there);
            callers += kind == LOOKUP_RULE && here.rule.kind == RULE_CALLER;
            functions += kind == LOOKUP_FUNCTION && here.function;
            prologues += kind == LOOKUP_PROLOGUE && here.prologue.count;
        }
    }
    assert_true(callers > 10 && functions > 10);
#ifdef __x86_64__
    assert_true(prologues > 0);
#endif
}

static unsigned modules_sent;

int __real_module_packet_send(int socket, enum packet_kind kind, uint64_t number,
                              const struct module *module);
int __wrap_module_packet_send(int socket, enum packet_kind kind, uint64_t number,
                              const struct module *module);
int __wrap_module_packet_send(int socket, enum packet_kind kind, uint64_t number,
                              const struct module *module)
{
    modules_sent++;
    return __real_module_packet_send(socket, kind, number, module);
}

/* Each is sent once for many questions, and again after others have replaced it. */
static void test_more_modules_than_stay_open(void **state)
{
    struct world *world = *state;
    modules_sent = 0;
    for (size_t i = 0; i < 2 * COUNT; i++)
        check_it_answers(world, i % COUNT);
    assert_int_equal(modules_sent, 2 * COUNT);
}

static void test_a_module_in_memory(void **state)
{
    struct world *world = *state;
    struct module *module = &world->modules[1];
    size_t bytes = module->image.bytes;
    unsigned char *copy = malloc(bytes);
    assert_true(image_read(&module->image, 0, copy, bytes));
    image_close(&module->image);
    image_open_memory(&module->image, copy, bytes);
    check_it_answers(world, 1);
}

/* ---- Headers ---- */

/* A new module for the path, of which nothing has been read. */
static struct module *unread_module(struct world *world, size_t number, const char *path)
{
    static uint32_t serial = 1000;
    struct module *module = &world->modules[number];
    module_clear(module);
    *module = (struct module){.number = (uint32_t)number,
                              .serial = serial++,
                              .path = strdup(path),
                              .is_readable = true,
                              .image.fd = -1};
    return module;
}

static int read_headers(struct world *world, struct module *module, const char *file)
{
    assert_int_equal(image_open_fd(&module->image, open(file, O_RDONLY | O_CLOEXEC)), 0);
    return world->lookups->queries.read(&world->lookups->queries, module);
}

static void test_it_reads_headers(void **state)
{
    struct world *world = *state;
    struct buffer left = {0}, right = {0};
    module_packet_put_headers(&left, &world->modules[1]);
    assert_int_equal(read_headers(world, unread_module(world, 0, "/bin/app"), "/proc/self/exe"), 0);
    module_packet_put_headers(&right, &world->modules[0]);
    assert_int_equal(left.length, right.length);
    assert_memory_equal(left.bytes, right.bytes, left.length);
    assert_true(world->modules[0].segment_count > 1);
    assert_null(world->modules[0].unread);
    check_it_answers(world, 0);
    buffer_free(&left);
    buffer_free(&right);
}

/* The reader did not fail; later questions about the module find nothing. */
static void test_no_headers(void **state)
{
    struct world *world = *state;
    struct module_part symbol;
    struct module *module = unread_module(world, 0, "/bin/app");
    assert_int_equal(read_headers(world, module, "/etc/passwd"), -ENOEXEC);
    assert_null(module->unread);
    assert_int_equal(query_symbol(&world->lookups->queries, module, "main", STT_FUNC, &symbol),
                     -ENOENT);
    check_it_answers(world, 1);
}

static void test_headers_that_are_cut(void **state)
{
    struct world *world = *state;
    struct buffer body = {0};
    module_packet_put_headers(&body, &world->modules[0]);
    const uint8_t *begin = (const uint8_t *)body.bytes;
    for (size_t length = 0; length <= body.length; length++) {
        struct module module = {.image.fd = -1};
        struct bytes bytes = {begin, begin + length, false};
        assert_int_equal(module_packet_take_headers(&bytes, &module), length == body.length);
        module_clear(&module);
    }
    buffer_free(&body);
}

/* The offset of each number that is checked, and an impossible value for it. */
static void test_headers_that_can_not_be(void **state)
{
    static const struct {
        size_t at;
        uint64_t number;
    } bad[] = {{3, (uint64_t)UINT32_MAX + 1}, {11, 2},          {12, 2},
               {13, SEGMENTS_MAX + 1},        {13, UINT64_MAX}, {18, 2}};
    struct world *world = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct module module = {.image.fd = -1};
        struct buffer body = {0};
        module_packet_put_headers(&body, &world->modules[0]);
        memcpy(body.bytes + bad[i].at * sizeof bad[i].number, &bad[i].number, sizeof bad[i].number);
        const uint8_t *begin = (const uint8_t *)body.bytes;
        struct bytes bytes = {begin, begin + body.length, false};
        assert_false(module_packet_take_headers(&bytes, &module));
        module_clear(&module);
        buffer_free(&body);
    }
}

static void check_header_fault(struct world *world, enum fault fault, const char *why)
{
    char path[32];
    snprintf(path, sizeof path, FAULT_PATH "%d", fault);
    struct module *module = unread_module(world, 0, path);
    assert_int_equal(read_headers(world, module, "/proc/self/exe"), -EIO);
    assert_non_null(module->unread);
    assert_string_equal(module->unread, why);
    assert_int_equal(world->lookups->queries.read(&world->lookups->queries, module), -EIO);
    check_it_answers(world, 1);
}

static void test_a_build_id_that_can_not_be(void **state)
{
    check_header_fault(*state, FAULT_KIND, "its reader failed");
}

static void test_no_memory_for_headers(void **state)
{
    check_header_fault(*state, FAULT_NO_MEMORY, "reading it takes too much memory");
}

/* ---- By name ---- */

static int query_of(struct world *world, size_t module, const struct query *query,
                    union query_answer *ret_answer)
{
    return query_ask(&world->lookups->queries, &world->modules[module], query, ret_answer);
}

/* Checks that the reader finds what this process finds. */
static int check_same(struct world *world, size_t module, const struct query *query)
{
    union query_answer here, there;
    struct buffer left = {0}, right = {0};
    struct module_names names = {0};
    struct own_debug_files own;
    own_debug_files_init(&own, &world->modules[module], NULL);
    int err = __real_module_query(&names, &world->modules[module], &own.files, query, &here);
    assert_int_equal(query_of(world, module, query, &there), err);
    if (!err) {
        lookup_packet_put_found(&left, query->kind, &here);
        lookup_packet_put_found(&right, query->kind, &there);
        assert_int_equal(left.length, right.length);
        assert_memory_equal(left.bytes, right.bytes, left.length);
    }
    buffer_free(&left);
    buffer_free(&right);
    module_names_free(&names);
    assert_null(world->modules[module].unread);
    return err;
}

static void test_it_finds_by_name(void **state)
{
    struct world *world = *state;
    const struct query symbol = {.kind = QUERY_SYMBOL, .name = "main", .type = STT_FUNC};
    const struct query other_type = {.kind = QUERY_SYMBOL, .name = "main", .type = STT_OBJECT};
    const struct query section = {.kind = QUERY_SECTION, .name = ".data"};
    const struct query no_section = {.kind = QUERY_SECTION, .name = ".no-data"};
    const struct query not_mapped = {.kind = QUERY_SECTION, .name = ".symtab"};
    union query_answer answer;
    assert_int_equal(check_same(world, 0, &symbol), 0);
    assert_int_equal(check_same(world, 0, &other_type), -ENOENT);
    assert_int_equal(check_same(world, 0, &section), 0);
    assert_int_equal(check_same(world, 0, &no_section), -ENOENT);
    assert_int_equal(check_same(world, 0, &not_mapped), -ENOENT);
    assert_int_equal(query_of(world, 0, &symbol, &answer), 0);
    const struct query name = {.kind = QUERY_NAME, .address = answer.part.address + 1};
    const struct query nowhere = {.kind = QUERY_NAME, .address = UINT64_MAX};
    assert_int_equal(check_same(world, 0, &nowhere), -ENOENT);
    assert_int_equal(check_same(world, 0, &name), 0);
    assert_int_equal(query_of(world, 0, &name, &answer), 0);
    assert_string_equal(answer.function.name, "main");
}

static void test_a_program_without_go(void **state)
{
    const struct query runtime = {.kind = QUERY_GO};
    const struct query function = {.kind = QUERY_GO_FUNCTION, .address = 1};
    assert_int_equal(check_same(*state, 0, &runtime), -ENOENT);
    assert_int_equal(check_same(*state, 0, &function), -ENOENT);
}

/* Nothing is found in a module without a file. */
static void test_no_file_has_no_names(void **state)
{
    struct world *world = *state;
    struct module_part symbol;
    world->modules[0].is_readable = false;
    assert_int_equal(
        query_symbol(&world->lookups->queries, &world->modules[0], "main", STT_FUNC, &symbol),
        -ENOENT);
    assert_int_equal(query_symbol(NULL, &world->modules[1], "main", STT_FUNC, &symbol), -ENOENT);
    world->modules[0].is_readable = true;
}

static void check_failed(struct world *world, uint64_t address, const char *why)
{
    assert_int_equal(ask(world, 0, address), -ENOEXEC);
    assert_non_null(world->modules[0].unread);
    assert_string_equal(world->modules[0].unread, why);
}

/* After a fault, the module is not read again, but others are. */
static void check_fault(struct world *world, enum fault fault, const char *why)
{
    check_it_answers(world, 0);
    check_failed(world, FAULT_AT(fault), why);
    check_failed(world, world->code, why);
    check_it_answers(world, 1);
}

static struct jit_source map_of(const char *text)
{
    struct jit_source source = {0};
    jit_source_open(&source, file_of_text(text), false);
    return source;
}

/* Reads the rest of the map, and returns the number of functions found. */
static size_t read_map(struct world *world, struct jit_source *source, off_t most)
{
    struct jit_reading reading = {0};
    struct jit_code code;
    assert_int_equal(jit_code_init(&code), 0);
    assert_int_equal(world->lookups->read_code(world->lookups, source, most, &reading), 0);
    assert_int_equal(jit_source_take(source, &reading, &code), 0);
    size_t count = code.symbol_count;
    jit_code_free(&code);
    buffer_free(&reading.announced);
    return count;
}

static void test_it_reads_generated_code(void **state)
{
    struct world *world = *state;
    struct jit_source source = map_of("1000 10 first\n2000 10 sec");
    int fd = source.fd;
    assert_int_equal(read_map(world, &source, 1 << 20), 1);
    assert_int_equal(source.offset, 14);
    assert_int_equal(source.fd, fd);
    assert_int_equal(pwrite(fd, "ond\n3000 10 third\n", 18, 25), 18);
    assert_int_equal(read_map(world, &source, 1 << 20), 2);
    assert_false(jit_source_has_more(&source));
    jit_source_close(&source);
}

static void test_announcements_that_can_not_be(void **state)
{
    struct jit_source source = map_of("1000 10 first\n");
    assert_int_equal(read_map(*state, &source, FAULT_KIND), 1);
    assert_true(source.is_spent);
    jit_source_close(&source);
    assert_int_equal(source.bytes_unread, 14);
}

/* After a fault, this file is not read again, but others are. */
static void check_code_fault(struct world *world, enum fault fault)
{
    struct jit_source source = map_of("1000 10 first\n");
    struct jit_reading reading = {0};
    assert_int_equal(world->lookups->read_code(world->lookups, &source, fault, &reading), -ENOEXEC);
    assert_int_equal(read_map(world, &source, 1 << 20), 1);
    check_it_answers(world, 0);
    buffer_free(&reading.announced);
    jit_source_close(&source);
}

/* The search goes on as if the module lacked what was asked for; the module is not read again, but
 * others are. */
static void check_query_fault(struct world *world, enum fault fault, const char *why)
{
    const struct query query = {.kind = QUERY_GO, .address = FAULT_AT(fault)};
    const struct query section = {.kind = QUERY_SECTION, .name = ".data"};
    union query_answer answer;
    assert_int_equal(check_same(world, 0, &section), 0);
    assert_int_equal(query_of(world, 0, &query, &answer), -ENOENT);
    assert_non_null(world->modules[0].unread);
    assert_string_equal(world->modules[0].unread, why);
    assert_int_equal(query_of(world, 0, &section, &answer), -ENOENT);
    assert_int_equal(check_same(world, 1, &section), 0);
    check_it_answers(world, 1);
}

static void test_a_runtime_that_can_not_be(void **state)
{
    check_query_fault(*state, FAULT_KIND, "its reader failed");
}

static void test_no_memory_for_names(void **state)
{
    check_query_fault(*state, FAULT_NO_MEMORY, "reading it takes too much memory");
}

static void test_no_memory_for_code(void **state)
{
    check_code_fault(*state, FAULT_NO_MEMORY);
}

static void test_answers_that_can_not_be(void **state)
{
    check_fault(*state, FAULT_REGISTER, "its reader failed");
}

static void test_a_kind_that_can_not_be(void **state)
{
    check_fault(*state, FAULT_KIND, "its reader failed");
}

static void test_no_memory(void **state)
{
    check_fault(*state, FAULT_NO_MEMORY, "reading it takes too much memory");
}

/* A temporary lack of descriptors. */
static void test_no_more_files(void **state)
{
    struct world *world = *state;
    struct module *module = &world->modules[0];
    module->is_readable = false;
    module->error = -EMFILE;
    assert_int_equal(ask(world, 0, world->code), -EAGAIN);
    assert_non_null(module->unread);
    module->is_readable = true;
    check_it_answers(world, 0);
}

#ifndef __SANITIZE_ADDRESS__ /* under AddressSanitizer, the reader is a thread */
static int set_up_impatient(void **state)
{
    return set_up_with(state, IMPATIENT_MS, 2);
}

static void test_a_crash(void **state)
{
    check_fault(*state, FAULT_CRASH, "its reader crashed");
}

static void test_a_crash_over_code(void **state)
{
    check_code_fault(*state, FAULT_CRASH);
}

static void test_a_hang_over_code(void **state)
{
    check_code_fault(*state, FAULT_HANG);
}

static void test_a_crash_over_names(void **state)
{
    check_query_fault(*state, FAULT_CRASH, "its reader crashed");
}

static void test_a_hang_over_names(void **state)
{
    check_query_fault(*state, FAULT_HANG, "reading it takes too long");
}

static void test_a_crash_over_headers(void **state)
{
    check_header_fault(*state, FAULT_CRASH, "its reader crashed");
}

static void test_a_hang_over_headers(void **state)
{
    check_header_fault(*state, FAULT_HANG, "reading it takes too long");
}

static void test_headers_can_open_nothing(void **state)
{
    check_header_fault(*state, FAULT_OPEN, "its reader crashed");
}

static void test_memory_for_names(void **state)
{
    check_query_fault(*state, FAULT_EAT_MEMORY, "its reader crashed");
}

static void test_names_can_open_nothing(void **state)
{
    check_query_fault(*state, FAULT_OPEN, "its reader crashed");
}

static void test_an_end(void **state)
{
    check_fault(*state, FAULT_END, "its reader crashed");
}

static void test_a_hang(void **state)
{
    check_fault(*state, FAULT_HANG, "reading it takes too long");
}

/* Each answer is in time, but together they delay unwinding for too long. */
static void test_slow_answers(void **state)
{
    struct world *world = *state;
    unsigned answers = 0;
    check_it_answers(world, 0);
    while (answers < 100 && ask(world, 0, FAULT_AT(FAULT_SLOW)) == 0)
        answers++;
    assert_in_range(answers, 3, 10);
    check_failed(world, world->code, "reading it takes too long");
    check_it_answers(world, 1);
}

static void test_memory(void **state)
{
    check_fault(*state, FAULT_EAT_MEMORY, "its reader crashed");
}

static void test_it_can_open_nothing(void **state)
{
    check_fault(*state, FAULT_OPEN, "its reader crashed");
}

/* The only child of a process with a single thread. */
static pid_t child_of(pid_t pid)
{
    char path[64], children[32] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(children, sizeof children, file));
    fclose(file);
    return (pid_t)strtol(children, NULL, 10);
}

static void end(pid_t pid)
{
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(poll(&ended, 1, LIMIT_MS), 1);
    close(ended.fd);
}

/* A module is not blamed if something else kills the reader. */
static void test_a_reader_that_was_killed(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++) {
        check_it_answers(world, 0);
        end(child_of(child_of(getpid())));
    }
    check_it_answers(world, 0);
    check_it_answers(world, 1);
}

/* Nothing is looked up in this privileged process instead. Symbols are read once: every process
 * that has mapped the module asks for the same ones. */
static void test_no_process_can_be_started(void **state)
{
    struct world *world = *state;
    struct queries *queries = &world->lookups->queries;
    struct module_part symbol, again;
    check_it_answers(world, 0);
    assert_int_equal(query_symbol(queries, &world->modules[0], "main", STT_FUNC, &symbol), 0);
    assert_int_equal(query_symbol(queries, &world->modules[0], "none", STT_FUNC, &again), -ENOENT);
    pid_t starter = child_of(getpid()), reader = child_of(starter);
    end(starter);
    kill(reader, SIGKILL);
    while (ask(world, 0, world->code) == 0)
        ;
    assert_int_equal(ask(world, 0, world->code), -EAGAIN);
    assert_string_equal(world->modules[0].unread, "no process could be started to read it");
    assert_int_equal(ask(world, 1, world->code), -EAGAIN);
    assert_int_equal(query_symbol(queries, &world->modules[0], "main", STT_FUNC, &again), 0);
    assert_memory_equal(&again, &symbol, sizeof symbol);
    assert_int_equal(query_symbol(queries, &world->modules[0], "none", STT_FUNC, &again), -ENOENT);
    assert_int_equal(query_symbol(queries, &world->modules[0], "main", STT_OBJECT, &again),
                     -EAGAIN);
    world->modules[0].serial += COUNT;
    assert_int_equal(query_symbol(queries, &world->modules[0], "main", STT_FUNC, &again), -EAGAIN);
}
#endif

#define WITH_READER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_READER(test_it_says_what_is_said_here),
        WITH_READER(test_it_reads_generated_code),
        WITH_READER(test_announcements_that_can_not_be),
        WITH_READER(test_no_memory_for_code),
        WITH_READER(test_it_reads_headers),
        WITH_READER(test_no_headers),
        WITH_READER(test_headers_that_are_cut),
        WITH_READER(test_headers_that_can_not_be),
        WITH_READER(test_a_build_id_that_can_not_be),
        WITH_READER(test_no_memory_for_headers),
        WITH_READER(test_it_finds_by_name),
        WITH_READER(test_a_program_without_go),
        WITH_READER(test_no_file_has_no_names),
        WITH_READER(test_a_runtime_that_can_not_be),
        WITH_READER(test_no_memory_for_names),
        cmocka_unit_test_setup_teardown(test_more_modules_than_stay_open, set_up_many, tear_down),
        WITH_READER(test_a_module_in_memory),
        WITH_READER(test_answers_that_can_not_be),
        WITH_READER(test_a_kind_that_can_not_be),
        WITH_READER(test_no_memory),
        WITH_READER(test_no_more_files),
#ifndef __SANITIZE_ADDRESS__
        WITH_READER(test_a_crash),
        WITH_READER(test_an_end),
        WITH_READER(test_a_crash_over_code),
        cmocka_unit_test_setup_teardown(test_a_hang_over_code, set_up_impatient, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hang, set_up_impatient, tear_down),
        cmocka_unit_test_setup_teardown(test_slow_answers, set_up_impatient, tear_down),
        WITH_READER(test_a_crash_over_headers),
        cmocka_unit_test_setup_teardown(test_a_hang_over_headers, set_up_impatient, tear_down),
        WITH_READER(test_headers_can_open_nothing),
        WITH_READER(test_a_crash_over_names),
        cmocka_unit_test_setup_teardown(test_a_hang_over_names, set_up_impatient, tear_down),
        WITH_READER(test_memory_for_names),
        WITH_READER(test_names_can_open_nothing),
        WITH_READER(test_memory),
        WITH_READER(test_it_can_open_nothing),
        WITH_READER(test_a_reader_that_was_killed),
        WITH_READER(test_no_process_can_be_started),
#endif
    };
    return cmocka_run_group_tests_name("lookup_reader", tests, NULL, NULL);
}
