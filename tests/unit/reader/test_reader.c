/* The reader process: its answers, its restrictions, and its faults. They are planted in
 * symbols_find, which only that process calls: an address outside any module selects each fault. */
#include "unit.h"
#include "planted.h"
#include "elf/elf_file.h"
#include "reader/module_packet.h"
#include "reader/naming.h"
#include "reader/reader.h"
#include "symbol/symbols.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT_MS 20000
#define COUNT (OPEN_MODULES_MAX + 2)

enum fault {
    FAULT_CRASH = 1,
    FAULT_HANG,
    FAULT_EAT_MEMORY,
    FAULT_END,
    FAULT_OPEN,
    FAULT_CREATE,
    FAULT_SOCKET,
    FAULT_FORK,
    FAULT_EXEC,
    FAULT_KILL,
    FAULT_CODE,
    FAULT_LONG_TEXT,
    FAULTS,
};
#define FAULT_AT(fault) (UINT64_MAX - FAULTS + (fault))

/* Not a fault: at this address, the file has names that are longer than any that is shown. */
#define LONG_NAMES_AT FAULT_AT(FAULTS)
static char long_name[READER_TEXT_MAX + 100];

/* Its only socket is the one for questions. */
static void send_to_parent(enum packet_kind kind, const struct buffer *body, int fd)
{
    for (int socket = 3; socket < 1000 && packet_send(socket, kind, body, fd);)
        socket++;
}

/* Sends an answer with one symbol whose texts were not cut. */
static void send_long_text(void)
{
    struct buffer body = {0};
    static const uint64_t before[] = {1, 1, 0, 0, 0}; /* one symbol, with one line */
    buffer_write(&body, before, sizeof before);
    for (unsigned i = 0; i < 3; i++)
        packet_put_text(&body, long_name);
    packet_put_number(&body, 1);
    packet_put_number(&body, 0);
    send_to_parent(PACKET_SYMBOLS, &body, -1);
    buffer_free(&body);
}

/* Returns only if the sandbox permits the attempt. */
static void plant(enum fault fault)
{
    char *const none[] = {NULL};
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
    case FAULT_CREATE:
        open("/tmp/fgprof-reader-was-here", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        break;
    case FAULT_SOCKET:
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        break;
    case FAULT_FORK:
        if (fork() == 0)
            _exit(0);
        break;
    case FAULT_EXEC:
        execve("/bin/true", none, none);
        break;
    case FAULT_KILL:
        kill(getppid(), SIGKILL);
        break;
    case FAULT_LONG_TEXT:
        send_long_text();
        break;
    default:
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

void __real_symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol);
void __wrap_symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol);
void __wrap_symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol)
{
    if (address > FAULT_AT(0) && address < FAULT_AT(FAULTS))
        plant((enum fault)(address - FAULT_AT(0)));
    __real_symbols_find(symbols, address, ret_symbol);
    if (address == LONG_NAMES_AT) {
        ret_symbol->lines[0] = (struct symbol_line){.name = long_name, .file = long_name};
        ret_symbol->line_count = 1;
    }
}

#define SENDS_FILE "_Z a symbol whose answer comes with a file"

char *__real_demangle(const char *symbol, enum fgprof_names names);
char *__wrap_demangle(const char *symbol, enum fgprof_names names);
char *__wrap_demangle(const char *symbol, enum fgprof_names names)
{
    struct buffer body = {0};
    if (strncmp(symbol, SENDS_FILE, strlen(SENDS_FILE)) != 0)
        return __real_demangle(symbol, names);
    packet_put_text(&body, "shown");
    send_to_parent(PACKET_SHOWN, &body, STDIN_FILENO);
    buffer_free(&body);
    return NULL;
}

/* How many starts fail, as where there may be no more processes. */
static unsigned refused_starts;

int __real_starter_start(struct starter *starter);
int __wrap_starter_start(struct starter *starter);
int __wrap_starter_start(struct starter *starter)
{
    if (!refused_starts)
        return __real_starter_start(starter);
    refused_starts--;
    return -EAGAIN;
}

struct world {
    struct reader *reader;
    struct module modules[COUNT]; /* this program, many times */
    uint64_t address;             /* of set_up, in the modules */
    size_t named;
    char name[64];
    const char *why;
};

extern const char __executable_start[]; /* ld's */

/* The code's address in the module: this program's first mapping is its first segment. */
static uint64_t own_address(const struct module *module, const void *code)
{
    return (uintptr_t)code - (uintptr_t)__executable_start + module->segments[0].address;
}

__attribute__((noinline)) static int a_function_with_a_name(void)
{
    return crash_at;
}

static int open_program(struct module *module, uint32_t number)
{
    *module =
        (struct module){.serial = number + 1, .path = strdup("/bin/app"), .is_readable = true};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return image_open_fd(&module->image, fd) || elf_file_read(module);
}

static int set_up_with(void **state, unsigned limit_ms)
{
    /* The character at the limit has two bytes. */
    memset(long_name, 'n', sizeof long_name - 1);
    memcpy(&long_name[READER_TEXT_MAX - 1], "\u00e4", 2);
    struct world *world = *state = calloc(1, sizeof *world);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (open_program(&world->modules[i], i))
            return -1;
    }
    world->address = own_address(&world->modules[0], a_function_with_a_name);
    return reader_new(limit_ms, &world->reader);
}

static int set_up(void **state)
{
    return set_up_with(state, LIMIT_MS);
}

#ifndef __SANITIZE_ADDRESS__
static int set_up_impatient(void **state)
{
    return set_up_with(state, 200);
}
#endif

static int tear_down(void **state)
{
    struct world *world = *state;
    reader_free(world->reader);
    for (size_t i = 0; i < COUNT; i++)
        module_clear(&world->modules[i]);
    free(world);
    return 0;
}

static int take(void *context, uint64_t address, const struct symbol *symbol, bool is_trampoline)
{
    struct world *world = context;
    assert_false(is_trampoline);
    if (address == world->address && symbol->line_count)
        snprintf(world->name, sizeof world->name, "%s", symbol->lines[0].shown);
    world->named++;
    return 0;
}

static int ask(struct world *world, size_t module, const uint64_t *addresses, size_t count)
{
    const struct reader_question question = {
        .module = &world->modules[module], .addresses = addresses, .count = count};
    world->named = 0;
    world->name[0] = '\0';
    return reader_ask(world->reader, &question, take, world, &world->why);
}

static void check_it_names(struct world *world, size_t module)
{
    assert_int_equal(ask(world, module, &world->address, 1), 0);
    assert_int_equal(world->named, 1);
    assert_string_equal(world->name, "a_function_with_a_name");
}

static void test_it_names(void **state)
{
    check_it_names(*state, 0);
    check_it_names(*state, 0);
}

static void test_more_modules_than_stay_open(void **state)
{
    for (size_t i = 0; i < 2 * COUNT; i++)
        check_it_names(*state, i % COUNT);
}

static void test_more_symbols_than_one_packet_has(void **state)
{
    struct world *world = *state;
    enum { MANY = 5000 };
    uint64_t *addresses = calloc(MANY, sizeof *addresses);
    for (size_t i = 0; i < MANY; i++)
        addresses[i] = world->address;
    assert_int_equal(ask(world, 0, addresses, MANY), 0);
    assert_int_equal(world->named, MANY);
    free(addresses);
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
    check_it_names(world, 1);
}

static void test_what_cannot_be_read_says_why(void **state)
{
    struct world *world = *state;
    world->modules[0].is_readable = false;
    world->modules[0].error = -EMFILE;
    assert_int_equal(ask(world, 0, &world->address, 1), -ENOEXEC);
    assert_string_equal(world->why, "too many open files");
    check_it_names(world, 1);
}

#ifndef __SANITIZE_ADDRESS__ /* under AddressSanitizer, the reader is a thread */
/* The only child of a process with a single thread. */
static pid_t child_of(pid_t pid)
{
    char path[64], children[32] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(children, sizeof children, file));
    fclose(file);
    pid_t child = (pid_t)strtol(children, NULL, 10);
    assert_true(child > 1);
    return child;
}

/* The standard streams, the socket for questions, and "." and ".." in the listing. */
static void test_it_has_no_other_files(void **state)
{
    struct world *world = *state;
    char path[64];
    size_t count = 0;
    world->modules[0].is_readable = false; /* so no file is sent with the question */
    world->modules[0].error = -ENOENT;
    assert_int_equal(ask(world, 0, &world->address, 1), -ENOEXEC);
    snprintf(path, sizeof path, "/proc/%d/fd", child_of(child_of(getpid())));
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    assert_int_equal(count, 4 + 2);
}

static void kill_reader(void)
{
    pid_t pid = child_of(child_of(getpid()));
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(poll(&ended, 1, LIMIT_MS), 1);
    close(ended.fd);
}

/* A module is not blamed if something else kills the reader. */
static void test_a_reader_that_was_killed(void **state)
{
    struct world *world = *state;
    check_it_names(world, 0);
    kill_reader();
    check_it_names(world, 0);
    check_it_names(world, 1);
}

/* Nor if no other could be started at that time. */
static void test_a_reader_that_cannot_be_started(void **state)
{
    struct world *world = *state;
    uint64_t offset;
    char *name;
    const char *shown;
    check_it_names(world, 0);
    kill_reader();
    refused_starts = 3;
    assert_int_equal(ask(world, 0, &world->address, 1), -ENOEXEC);
    assert_string_equal(world->why, "no process to read it could be started");
    assert_int_equal(
        reader_find_variable(world->reader, &world->modules[1], world->address, &name, &offset),
        -ENOENT);
    assert_null(reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_SHORT));
    assert_int_equal(refused_starts, 0);
    check_it_names(world, 0);
    check_it_names(world, 1);
    shown = reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_SHORT);
    assert_string_equal(shown, "app::read");
}
#endif

int a_variable_with_a_name[4] = {1};

static void test_it_names_data(void **state)
{
    struct world *world = *state;
    const struct module *module = &world->modules[0];
    uint64_t address = own_address(module, &a_variable_with_a_name[1]), offset;
    char *name;
    assert_int_equal(reader_find_variable(world->reader, module, address, &name, &offset), 0);
    assert_string_equal(name, "a_variable_with_a_name");
    assert_int_equal(offset, sizeof(int));
    free(name);
    assert_int_equal(reader_find_variable(world->reader, module, 0, &name, &offset), -ENOENT);
    assert_int_equal(reader_find_class(world->reader, module, address, &name), -ENOENT);
}

static void test_it_shows_names(void **state)
{
    struct world *world = *state;
    const char *shown = reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_SHORT);
    assert_string_equal(shown, "app::read");
    shown = reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_FULL);
    assert_string_equal(shown, "app::read(int)");
    shown = reader_show(world->reader, "List<int>.Add", FGPROF_NAMES_SHORT);
    assert_string_equal(shown, "List.Add");
    assert_null(reader_show(world->reader, "read", FGPROF_NAMES_SHORT));
}

#ifndef __SANITIZE_ADDRESS__
static size_t own_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* An answer with a name must not carry a file. */
static void test_a_name_that_comes_with_a_file(void **state)
{
    struct world *world = *state;
    check_it_names(world, 0); /* starts the reader */
    size_t files = own_files();
    assert_null(reader_show(world->reader, SENDS_FILE, FGPROF_NAMES_SHORT));
    assert_true(own_files() <= files);
    /* A new reader answers. */
    assert_string_equal(reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_SHORT),
                        "app::read");
    check_it_names(world, 0);
    pid_t reader = child_of(child_of(getpid()));
    assert_null(reader_show(world->reader, SENDS_FILE, FGPROF_NAMES_SHORT));
    assert_int_equal(child_of(child_of(getpid())), reader); /* it was not asked again */
}

/* Each makes the reader fail, and might as well make it hang. */
static void test_many_names_that_cannot_be_shown(void **state)
{
    struct world *world = *state;
    char name[80];
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, SENDS_FILE " %u", i);
        assert_null(reader_show(world->reader, name, FGPROF_NAMES_SHORT));
    }
    assert_null(reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_SHORT));
    check_it_names(world, 0);
}

/* Whether the reader is asked, when it has ended and no other can be started. */
static bool is_asked(struct world *world, const char *name, enum fgprof_names names)
{
    kill_reader();
    refused_starts = 1;
    reader_show(world->reader, name, names);
    bool was_started = !refused_starts;
    refused_starts = 0;
    check_it_names(world, 0); /* starts it again */
    return was_started;
}

static void test_names_that_are_shown_without_asking(void **state)
{
    struct world *world = *state;
    check_it_names(world, 0);
    assert_false(is_asked(world, "_ZN3app4readEi", FGPROF_NAMES_RAW));
    assert_false(is_asked(world, "read", FGPROF_NAMES_SHORT));
    assert_false(is_asked(world, "_start", FGPROF_NAMES_SHORT));
    assert_false(is_asked(world, "List<int>.Add", FGPROF_NAMES_FULL));
    assert_true(is_asked(world, "_ZN3app4readEi", FGPROF_NAMES_SHORT));
    assert_non_null(reader_show(world->reader, "_ZN3app4readEi", FGPROF_NAMES_SHORT));
    assert_null(reader_show(world->reader, "_Z", FGPROF_NAMES_SHORT));
    assert_false(is_asked(world, "_ZN3app4readEi", FGPROF_NAMES_SHORT));
    assert_false(is_asked(world, "_Z", FGPROF_NAMES_SHORT));
    assert_true(is_asked(world, "_ZN3app4readEi", FGPROF_NAMES_FULL));
}

/* Not all names of a program that generates code for ever are kept. */
static void test_more_names_than_are_kept(void **state)
{
    struct world *world = *state;
    char name[4000];
    for (unsigned i = 0; i < 20000000 / sizeof name; i++) {
        snprintf(name, sizeof name, "_Z%0*u", (int)sizeof name - 4, i);
        assert_null(reader_show(world->reader, name, FGPROF_NAMES_SHORT));
        if (!i)
            assert_false(is_asked(world, name, FGPROF_NAMES_SHORT));
    }
    snprintf(name, sizeof name, "_Z%0*u", (int)sizeof name - 4, 0);
    assert_true(is_asked(world, name, FGPROF_NAMES_SHORT));
}
#endif

static int take_cut(void *context, uint64_t address, const struct symbol *symbol,
                    bool is_trampoline)
{
    (void)address, (void)is_trampoline;
    const struct symbol_line *line = &symbol->lines[0];
    const char *const texts[] = {line->name, line->shown, line->file};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(strlen(texts[i]), READER_TEXT_MAX - 1);
        assert_memory_equal(texts[i], long_name, READER_TEXT_MAX - 1);
    }
    ++*(size_t *)context;
    return 0;
}

static void test_long_names_are_cut(void **state)
{
    struct world *world = *state;
    const uint64_t address = LONG_NAMES_AT;
    const struct reader_question question = {
        .module = &world->modules[0], .addresses = &address, .count = 1};
    size_t count = 0;
    assert_int_equal(reader_ask(world->reader, &question, take_cut, &count, &world->why), 0);
    assert_int_equal(count, 1);
}

static int stop(void *context, uint64_t address, const struct symbol *symbol, bool is_trampoline)
{
    (void)address, (void)symbol, (void)is_trampoline;
    ++*(size_t *)context;
    return -ENOMEM;
}

static void test_a_visit_can_end_it(void **state)
{
    struct world *world = *state;
    const uint64_t addresses[] = {world->address, world->address};
    const struct reader_question question = {
        .module = &world->modules[0], .addresses = addresses, .count = 2};
    size_t count = 0;
    assert_int_equal(reader_ask(world->reader, &question, stop, &count, &world->why), -ENOMEM);
    assert_int_equal(count, 1);
    check_it_names(world, 0);
}

#ifndef __SANITIZE_ADDRESS__
/* Names before the fault are kept, the module is not read again, and others are. */
static void check_fault(struct world *world, enum fault fault, const char *why)
{
    const uint64_t addresses[] = {world->address, FAULT_AT(fault)};
    assert_int_equal(ask(world, 0, &addresses[1], 1), -ENOEXEC);
    assert_string_equal(world->why, why);
    assert_int_equal(ask(world, 0, addresses, 1), -ENOEXEC);
    assert_string_equal(world->why, why);
    check_it_names(world, 1);
}

static void test_a_crash(void **state)
{
    check_fault(*state, FAULT_CRASH, "its reader crashed");
}

static void test_an_end(void **state)
{
    check_fault(*state, FAULT_END, "its reader crashed");
}

static void test_text_that_was_not_cut(void **state)
{
    check_fault(*state, FAULT_LONG_TEXT, "its reader failed");
}

static void test_a_hang(void **state)
{
    check_fault(*state, FAULT_HANG, "reading it takes too long");
}

static void test_memory(void **state)
{
    check_fault(*state, FAULT_EAT_MEMORY, "its reader crashed");
}

static void test_it_can_open_nothing(void **state)
{
    check_fault(*state, FAULT_OPEN, "its reader crashed");
}

static void test_it_can_create_nothing(void **state)
{
    check_fault(*state, FAULT_CREATE, "its reader crashed");
    assert_int_equal(access("/tmp/fgprof-reader-was-here", F_OK), -1);
}

static void test_it_can_make_no_socket(void **state)
{
    check_fault(*state, FAULT_SOCKET, "its reader crashed");
}

static void test_it_can_start_no_process(void **state)
{
    check_fault(*state, FAULT_FORK, "its reader crashed");
}

static void test_it_can_run_no_program(void **state)
{
    check_fault(*state, FAULT_EXEC, "its reader crashed");
}

static void test_it_can_signal_nobody(void **state)
{
    check_fault(*state, FAULT_KILL, "its reader crashed");
}

static void test_it_can_make_no_code(void **state)
{
    check_fault(*state, FAULT_CODE, "its reader crashed");
}
#endif

#define WITH_READER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_READER(test_it_names),
        WITH_READER(test_more_modules_than_stay_open),
        WITH_READER(test_more_symbols_than_one_packet_has),
        WITH_READER(test_a_module_in_memory),
        WITH_READER(test_what_cannot_be_read_says_why),
        WITH_READER(test_it_names_data),
        WITH_READER(test_it_shows_names),
        WITH_READER(test_long_names_are_cut),
        WITH_READER(test_a_visit_can_end_it),
#ifndef __SANITIZE_ADDRESS__
        WITH_READER(test_it_has_no_other_files),
        WITH_READER(test_a_reader_that_was_killed),
        WITH_READER(test_a_reader_that_cannot_be_started),
        WITH_READER(test_a_crash),
        WITH_READER(test_an_end),
        WITH_READER(test_text_that_was_not_cut),
        WITH_READER(test_a_name_that_comes_with_a_file),
        WITH_READER(test_many_names_that_cannot_be_shown),
        WITH_READER(test_names_that_are_shown_without_asking),
        WITH_READER(test_more_names_than_are_kept),
        cmocka_unit_test_setup_teardown(test_a_hang, set_up_impatient, tear_down),
        WITH_READER(test_memory),
        WITH_READER(test_it_can_open_nothing),
        WITH_READER(test_it_can_create_nothing),
        WITH_READER(test_it_can_make_no_socket),
        WITH_READER(test_it_can_start_no_process),
        WITH_READER(test_it_can_run_no_program),
        WITH_READER(test_it_can_signal_nobody),
        WITH_READER(test_it_can_make_no_code),
#endif
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
