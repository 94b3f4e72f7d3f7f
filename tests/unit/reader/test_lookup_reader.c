/* The reader process that unwinding asks: that it says what is looked up in this process, too, and
 * what comes of its faults. They are planted in module_tables_find and jit_source_read, which only
 * that process calls: an address that no module has stands for each, or a number of bytes. */
#include "unit.h"
#include "base/clock.h"
#include "elf/elf_file.h"
#include "reader/lookup_packet.h"
#include "reader/lookup_reader.h"
#include "reader/lookup_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT_MS 20000
#define IMPATIENT_MS 200
#define COUNT (LOOKUP_MODULES_MAX + 2)

enum fault {
    FAULT_CRASH = 1,
    FAULT_HANG,
    FAULT_EAT_MEMORY,
    FAULT_END,
    FAULT_OPEN,
    FAULT_SLOW,      /* takes half of its time */
    FAULT_NO_MEMORY, /* says so */
    FAULT_KIND,      /* answers with what no rule can be */
    FAULT_REGISTER,
    FAULTS,
};
#define FAULT_AT(fault) (UINT64_MAX - 1 - FAULTS + (fault))

static volatile int crash_at; /* not a constant: the compiler sees nothing wrong */

static void eat_memory(void)
{
    for (;;) {
        volatile char *memory = malloc(1 << 20);
        if (!memory)
            abort();
        memory[0] = 1;
    }
}

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

int __real_module_tables_find(struct module_tables *tables, struct module *module,
                              const struct lookup *lookup, struct cfi_entry *scratch,
                              union lookup_answer *ret_answer);
int __wrap_module_tables_find(struct module_tables *tables, struct module *module,
                              const struct lookup *lookup, struct cfi_entry *scratch,
                              union lookup_answer *ret_answer);
int __wrap_module_tables_find(struct module_tables *tables, struct module *module,
                              const struct lookup *lookup, struct cfi_entry *scratch,
                              union lookup_answer *ret_answer)
{
    uint64_t fault = lookup->address - FAULT_AT(0);
    if (fault && fault < FAULTS)
        return plant((enum fault)fault, ret_answer);
    return __real_module_tables_find(tables, module, lookup, scratch, ret_answer);
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
    struct module *modules; /* this program, again and again */
    size_t count;
    uint64_t code, code_bytes; /* its first segment of code */
    union lookup_answer answer;
};

static int open_program(struct module *module, uint32_t number)
{
    *module = (struct module){
        .number = number, .serial = number + 1, .path = strdup("/bin/app"), .is_readable = true};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return image_open_fd(&module->image, fd) || elf_file_read(module);
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

/* For each kind, all over the program. */
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

static void test_more_modules_than_stay_open(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < 2 * COUNT; i++)
        check_it_answers(world, i % COUNT);
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

static void check_failed(struct world *world, uint64_t address, const char *why)
{
    assert_int_equal(ask(world, 0, address), -ENOEXEC);
    assert_non_null(world->modules[0].unread);
    assert_string_equal(world->modules[0].unread, why);
}

/* The module is not read again, and others are. */
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

/* How many functions it finds in the rest of the map. */
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

/* Where this file can't be read, others are. */
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

/* What is lacking is lacking for a time only. */
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

#ifndef __SANITIZE_ADDRESS__ /* there, the reader is a thread */
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

static void test_an_end(void **state)
{
    check_fault(*state, FAULT_END, "its reader crashed");
}

static void test_a_hang(void **state)
{
    check_fault(*state, FAULT_HANG, "reading it takes too long");
}

/* Each question is in time, but all together hold up unwinding for long. */
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

/* The only child of a process with one thread. */
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

/* It is not the module's fault if something else ends the reader. */
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

/* Nothing is looked up with privileges instead. */
static void test_no_process_can_be_started(void **state)
{
    struct world *world = *state;
    check_it_answers(world, 0);
    pid_t starter = child_of(getpid()), reader = child_of(starter);
    end(starter);
    kill(reader, SIGKILL);
    while (ask(world, 0, world->code) == 0)
        ;
    assert_int_equal(ask(world, 0, world->code), -EAGAIN);
    assert_string_equal(world->modules[0].unread, "no process could be started to read it");
    assert_int_equal(ask(world, 1, world->code), -EAGAIN);
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
        WITH_READER(test_memory),
        WITH_READER(test_it_can_open_nothing),
        WITH_READER(test_a_reader_that_was_killed),
        WITH_READER(test_no_process_can_be_started),
#endif
    };
    return cmocka_run_group_tests_name("lookup_reader", tests, NULL, NULL);
}
