/* An answer with an impossible value in any field of a rule is refused. */
#include "unit.h"
#include "elf/elf_file.h"
#include "reader/lookup_packet.h"
#include "reader/module_packet.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define NUMBERS_MAX 32

struct numbers {
    uint64_t items[NUMBERS_MAX];
    size_t count;
};

static struct bytes bytes_of(const struct numbers *numbers)
{
    const uint8_t *begin = (const uint8_t *)numbers->items;
    return (struct bytes){begin, begin + numbers->count * sizeof *numbers->items, false};
}

static struct numbers numbers_of(enum lookup_kind kind, const union lookup_answer *answer)
{
    struct buffer body = {0};
    struct numbers numbers;
    lookup_packet_put_answer(&body, kind, answer);
    assert_int_equal(body.error, 0);
    assert_in_range(body.length, sizeof(uint64_t), sizeof numbers.items);
    numbers.count = body.length / sizeof *numbers.items;
    memcpy(numbers.items, body.bytes, body.length);
    buffer_free(&body);
    return numbers;
}

static bool is_taken(enum lookup_kind kind, const struct numbers *numbers,
                     union lookup_answer *ret_answer)
{
    const struct lookup lookup = {kind, 1000, 900};
    struct bytes body = bytes_of(numbers);
    memset(ret_answer, 0, sizeof *ret_answer);
    return lookup_packet_take_answer(&body, &lookup, ret_answer);
}

static const union lookup_answer rule_answer = {
    .rule =
        {
            .kind = RULE_LEFT_STACK,
            .has_frame_pointer = true,
            .may_leave_stack = true,
            .is_no_call = true,
            .is_at_return = true,
            .has_caller = true,
            .cfa = {REGISTERS_MAX - 1, true, INT32_MIN},
            .cfa_index = REGISTERS_MAX - 2,
            .cfa_scale = UINT8_MAX,
            .kept = UINT32_MAX - 1,
            .cfa_offset = INT32_MAX,
            .return_address = {RULE_CFA, true, -8},
            .frame_pointer = {3, false, 16},
            .link_offset = -16,
            .base_pointer_offset = RULE_BASE_POINTER_LOST,
        },
};

static void test_answers_arrive(void **state)
{
    (void)state;
    union lookup_answer taken;
    struct numbers numbers = numbers_of(LOOKUP_RULE, &rule_answer);
    assert_true(is_taken(LOOKUP_RULE, &numbers, &taken));
    assert_memory_equal(&taken.rule, &rule_answer.rule, sizeof taken.rule);
    assert_true(is_taken(LOOKUP_RETURNS, &numbers, &taken));
    assert_memory_equal(&taken.rule, &rule_answer.rule, sizeof taken.rule);
    static const union lookup_answer other = {.rule = {.may_not_be_saved = true,
                                                       .is_from_code = true,
                                                       .has_no_record = true,
                                                       .caller_is_exact = true}};
    numbers = numbers_of(LOOKUP_RULE, &other);
    assert_true(is_taken(LOOKUP_RULE, &numbers, &taken));
    assert_memory_equal(&taken.rule, &other.rule, sizeof taken.rule);
    numbers = numbers_of(LOOKUP_FUNCTION, &(union lookup_answer){.function = 1000});
    assert_true(is_taken(LOOKUP_FUNCTION, &numbers, &taken));
    assert_int_equal(taken.function, 1000);
    const union lookup_answer prologue = {.prologue = {{8, UINT64_MAX}, 2}};
    numbers = numbers_of(LOOKUP_PROLOGUE, &prologue);
    assert_true(is_taken(LOOKUP_PROLOGUE, &numbers, &taken));
    assert_memory_equal(&taken.prologue, &prologue.prologue, sizeof taken.prologue);
}

/* The numbers of a rule in order, and an impossible value for each. */
static void test_no_rule(void **state)
{
    (void)state;
    static const uint64_t above_32_bits = (uint64_t)UINT32_MAX + 1;
    const uint64_t bad[] = {RULE_UNREAD, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* up to has_caller */
                            /* cfa */
                            RULE_CFA, 2, above_32_bits,
                            /* its index and scale, kept, its offset */
                            REGISTERS_MAX, 256, 1ull << 32, above_32_bits,
                            /* return_address */
                            RULE_CFA - 1, 2, above_32_bits,
                            /* frame_pointer */
                            256, 2, above_32_bits,
                            /* link_offset, base_pointer_offset */
                            above_32_bits, above_32_bits};
    union lookup_answer taken;
    const struct numbers good = numbers_of(LOOKUP_RULE, &rule_answer);
    assert_int_equal(good.count, sizeof bad / sizeof *bad);
    for (size_t i = 0; i < good.count; i++) {
        struct numbers numbers = good;
        numbers.items[i] = bad[i];
        assert_false(is_taken(LOOKUP_RULE, &numbers, &taken));
        numbers.items[i] = UINT64_MAX - 0x80000000u; /* a negative number beyond 32 bits */
        assert_false(is_taken(LOOKUP_RETURNS, &numbers, &taken));
    }
    for (unsigned kind = 0; kind < RULE_KINDS; kind++) {
        struct numbers numbers = good;
        numbers.items[0] = kind;
        assert_int_equal(is_taken(LOOKUP_RULE, &numbers, &taken), kind != RULE_UNREAD);
    }
    struct numbers numbers = good;
    numbers.items[10] = REGISTERS_MAX;
    assert_false(is_taken(LOOKUP_RULE, &numbers, &taken));
}

static void test_no_function(void **state)
{
    (void)state;
    union lookup_answer taken;
    const struct numbers behind = {{1001}, 1};
    assert_false(is_taken(LOOKUP_FUNCTION, &behind, &taken));
}

static void test_no_prologue(void **state)
{
    (void)state;
    union lookup_answer taken;
    struct numbers numbers = {{PROLOGUE_CANDIDATES_MAX}, PROLOGUE_CANDIDATES_MAX + 1};
    assert_true(is_taken(LOOKUP_PROLOGUE, &numbers, &taken));
    numbers.items[0]++;
    numbers.count++;
    assert_false(is_taken(LOOKUP_PROLOGUE, &numbers, &taken));
}

static void test_too_short_or_too_long(void **state)
{
    (void)state;
    for (enum lookup_kind kind = 0; kind < LOOKUP_KINDS; kind++) {
        union lookup_answer taken;
        struct numbers numbers = numbers_of(kind, &(union lookup_answer){.function = 0});
        assert_true(is_taken(kind, &numbers, &taken));
        numbers.items[numbers.count++] = 0;
        assert_false(is_taken(kind, &numbers, &taken));
        numbers.count -= 2;
        assert_false(is_taken(kind, &numbers, &taken));
    }
}

static void test_questions(void **state)
{
    (void)state;
    for (uint64_t kind = 0; kind < LOOKUP_KINDS + 2; kind++) {
        const struct lookup asked = {(enum lookup_kind)kind, UINT64_MAX - 1, 77};
        struct lookup taken;
        struct buffer body = {0};
        uint64_t slot;
        lookup_packet_put_question(&body, 9, &asked);
        const uint8_t *begin = (const uint8_t *)body.bytes;
        struct bytes bytes = {begin, begin + body.length, false};
        struct bytes cut = {begin, begin + body.length - 1, false};
        assert_int_equal(lookup_packet_take_question(&bytes, &slot, &taken), kind < LOOKUP_KINDS);
        assert_int_equal(slot, 9);
        assert_int_equal(taken.kind, asked.kind);
        assert_true(taken.address == asked.address && taken.function == asked.function);
        assert_false(lookup_packet_take_question(&cut, &slot, &taken));
        buffer_free(&body);
    }
}

/* ---- By name ---- */

/* Whether an answer with these numbers, followed by these texts, is accepted. */
static bool is_found(enum query_kind kind, const uint64_t *numbers, size_t number_count,
                     const char *const *texts, size_t text_count)
{
    static union query_answer taken;
    struct buffer body = {0};
    buffer_write(&body, numbers, number_count * sizeof *numbers);
    for (size_t i = 0; i < text_count; i++)
        packet_put_text(&body, texts[i]);
    const uint8_t *begin = (const uint8_t *)body.bytes;
    struct bytes bytes = {begin, begin + body.length, false};
    bool ok = lookup_packet_take_found(&bytes, kind, &taken);
    buffer_free(&body);
    return ok;
}

static void test_parts(void **state)
{
    (void)state;
    const uint64_t part[] = {UINT64_MAX, 8, 0};
    assert_true(is_found(QUERY_SYMBOL, part, 2, NULL, 0));
    assert_false(is_found(QUERY_SYMBOL, part, 1, NULL, 0));
    assert_false(is_found(QUERY_SECTION, part, 3, NULL, 0));
}

static void test_named_functions(void **state)
{
    (void)state;
    static char long_name[QUERY_TEXT_BYTES + 1];
    memset(long_name, 'a', sizeof long_name - 1);
    const uint64_t numbers[] = {4096, UINT32_MAX}, line[] = {4096, (uint64_t)UINT32_MAX + 1};
    const char *texts[] = {"f", "", "f.go"};
    assert_true(is_found(QUERY_GO_FUNCTION, numbers, 2, texts, 3));
    assert_true(is_found(QUERY_NAME, numbers, 2, texts, 3));
    assert_false(is_found(QUERY_NAME, numbers, 2, texts, 2));
    assert_false(is_found(QUERY_NAME, line, 2, texts, 3));
    for (size_t i = 0; i < 3; i++) {
        const char *bad[] = {"f", "", "f.go"};
        bad[i] = NULL;
        assert_false(is_found(QUERY_NAME, numbers, 2, bad, 3));
        bad[i] = long_name;
        assert_false(is_found(QUERY_NAME, numbers, 2, bad, 3));
        bad[i] = long_name + 1;
        assert_true(is_found(QUERY_NAME, numbers, 2, bad, 3));
    }
}

static void test_runtimes(void **state)
{
    (void)state;
    uint64_t numbers[4 + 2 * (GO_IDLE_FUNCTIONS_MAX + 1)] = {21, 8, 9, GO_IDLE_FUNCTIONS_MAX};
    size_t count = 4 + 2 * GO_IDLE_FUNCTIONS_MAX;
    assert_true(is_found(QUERY_GO, numbers, count, NULL, 0));
    assert_false(is_found(QUERY_GO, numbers, count - 1, NULL, 0));
    assert_false(is_found(QUERY_GO, numbers, count + 1, NULL, 0));
    numbers[count - 2] = 1; /* starts after its end */
    assert_false(is_found(QUERY_GO, numbers, count, NULL, 0));
    numbers[count - 2] = 0;
    numbers[2] = 7;
    assert_false(is_found(QUERY_GO, numbers, count, NULL, 0));
    numbers[2] = 9;
    numbers[0] = UINT32_MAX;
    assert_false(is_found(QUERY_GO, numbers, count, NULL, 0));
    numbers[0] = 21;
    numbers[3]++;
    assert_false(is_found(QUERY_GO, numbers, count + 2, NULL, 0));
}

static void test_queries(void **state)
{
    (void)state;
    for (uint64_t kind = 0; kind < QUERY_KINDS + 2; kind++) {
        for (int has_name = 0; has_name < 2; has_name++) {
            const struct query asked = {(enum query_kind)kind, UINT64_MAX - 1,
                                        has_name ? "name" : NULL, 2};
            struct query taken;
            struct buffer body = {0};
            uint64_t slot;
            lookup_packet_put_query(&body, 9, &asked);
            const uint8_t *begin = (const uint8_t *)body.bytes;
            struct bytes bytes = {begin, begin + body.length, false};
            struct bytes cut = {begin, begin + body.length - 1, false};
            bool needs_name = kind == QUERY_SYMBOL || kind == QUERY_SECTION;
            assert_int_equal(lookup_packet_take_query(&bytes, &slot, &taken),
                             kind < QUERY_KINDS && (has_name || !needs_name));
            assert_int_equal(slot, 9);
            assert_true(taken.address == asked.address && taken.type == asked.type);
            assert_false(lookup_packet_take_query(&cut, &slot, &taken));
            buffer_free(&body);
        }
    }
}

/* A module that is not a file becomes one, which would end this process if it were too large. */
static void test_a_small_limit_of_files(void **state)
{
    struct module module = {.path = (char *)(uintptr_t) "[vdso]", .is_readable = true}, *taken;
    struct packet packet = {.fd = -1};
    struct rlimit before, none;
    int ends[2];
    (void)state;
    image_open_memory(&module.image, calloc(1, 8192), 8192);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int err = module_packet_send(ends[0], PACKET_LOAD, 7, &module);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, 0);
    assert_int_equal(packet_receive(ends[1], 0, &packet), 0);
    struct bytes body = packet_bytes(&packet);
    assert_int_equal(packet_number(&body), 7);
    assert_int_equal(module_packet_take(&body, packet.fd, &taken), 0);
    assert_false(taken->is_readable);
    assert_int_equal(taken->error, -EFBIG);
    module_clear(taken);
    free(taken);
    image_close(&module.image);
    buffer_free(&packet.body);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_arrive),
        cmocka_unit_test(test_no_rule),
        cmocka_unit_test(test_no_function),
        cmocka_unit_test(test_no_prologue),
        cmocka_unit_test(test_too_short_or_too_long),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_named_functions),
        cmocka_unit_test(test_runtimes),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_a_small_limit_of_files),
    };
    return cmocka_run_group_tests_name("lookup_packet", tests, NULL, NULL);
}
