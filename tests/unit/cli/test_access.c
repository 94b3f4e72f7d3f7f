#include "unit.h"
#include "cli/secret_file.h"
#include "cli/serve/access.h"

#include <stdio.h>

#define OWN_UID 1000
#define OTHER_UID 1001

static const struct peer own = {.is_local = true, .has_uid = true, .uid = OWN_UID};
static const struct peer root = {.is_local = true, .has_uid = true, .uid = 0};
static const struct peer other = {.is_local = true, .has_uid = true, .uid = OTHER_UID};
static const struct peer unknown = {.is_local = true};
static const struct peer remote = {.address = {.s6_addr = {0x20, 0x01}}};

/* A file that contains the token, and its path. */
struct token_file {
    int fd;
    char path[32];
};

static struct token_file token_file_of(const char *text)
{
    struct token_file file = {.fd = file_of_text(text)};
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static enum access check(const char *text, const char *authorization)
{
    struct token_file file = token_file_of(text);
    const struct access_rules rules = {.own_uid = OWN_UID, .token_file = file.path};
    enum access access = access_check(&rules, &remote, authorization);
    close(file.fd);
    return access;
}

static void test_the_own_user_and_root_may_ask(void **state)
{
    (void)state;
    const struct access_rules rules = {.own_uid = OWN_UID};
    assert_int_equal(access_check(&rules, &own, NULL), ACCESS_GRANTED);
    assert_int_equal(access_check(&rules, &root, NULL), ACCESS_GRANTED);
    assert_int_equal(access_check(&rules, &other, NULL), ACCESS_OTHER_USER);
    assert_int_equal(access_check(&rules, &other, "Bearer "), ACCESS_OTHER_USER);
    /* The uid of 0 is not known, so it does not count. */
    assert_int_equal(access_check(&rules, &unknown, NULL), ACCESS_UNKNOWN_USER);
    assert_int_equal(access_check(&rules, &remote, NULL), ACCESS_UNKNOWN_USER);
}

static void test_all_local_users_may_ask_if_allowed(void **state)
{
    (void)state;
    const struct access_rules rules = {.own_uid = OWN_UID, .allows_local_users = true};
    assert_int_equal(access_check(&rules, &other, NULL), ACCESS_GRANTED);
    assert_int_equal(access_check(&rules, &unknown, NULL), ACCESS_GRANTED);
    assert_int_equal(access_check(&rules, &remote, NULL), ACCESS_UNKNOWN_USER);
}

static void test_a_token_is_demanded_of_everyone(void **state)
{
    (void)state;
    struct token_file file = token_file_of("secret\n");
    struct access_rules rules = {.own_uid = OWN_UID, .token_file = file.path};
    assert_int_equal(access_check(&rules, &own, NULL), ACCESS_WITHOUT_TOKEN);
    assert_int_equal(access_check(&rules, &root, NULL), ACCESS_WITHOUT_TOKEN);
    assert_int_equal(access_check(&rules, &other, "Bearer secret"), ACCESS_BY_TOKEN);
    assert_int_equal(access_check(&rules, &unknown, "Bearer secret"), ACCESS_BY_TOKEN);
    /* With this option, local users need no token. */
    rules.allows_local_users = true;
    assert_int_equal(access_check(&rules, &other, NULL), ACCESS_GRANTED);
    assert_int_equal(access_check(&rules, &remote, NULL), ACCESS_WITHOUT_TOKEN);
    assert_int_equal(access_check(&rules, &remote, "Bearer secret"), ACCESS_BY_TOKEN);
    close(file.fd);
}

static void test_the_whole_token_is_compared(void **state)
{
    (void)state;
    static const char *const wrong[] = {"secrex", "xecret", "secre", "secrett", "", "SECRET"};
    char header[64];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(header, sizeof header, "Bearer %s", wrong[i]);
        assert_int_equal(check("secret", header), ACCESS_WITHOUT_TOKEN);
    }
    assert_int_equal(check("secret\r\n", "Bearer secret"), ACCESS_BY_TOKEN);
    /* Line ends of the file, and spaces before the token, are not compared. */
    assert_int_equal(check("secret\n\n\n", "bearer   secret"), ACCESS_BY_TOKEN);
}

static void test_the_longest_token(void **state)
{
    (void)state;
    char token[SECRET_BYTES], header[SECRET_BYTES + 16];
    memset(token, 'x', sizeof token - 1);
    token[sizeof token - 1] = '\0';
    snprintf(header, sizeof header, "Bearer %s", token);
    assert_int_equal(check(token, header), ACCESS_BY_TOKEN);
    header[strlen(header) - 1] = 'y';
    assert_int_equal(check(token, header), ACCESS_WITHOUT_TOKEN);
    header[strlen(header) - 1] = 'x';
    strcat(header, "x");
    assert_int_equal(check(token, header), ACCESS_WITHOUT_TOKEN);
}

/* Encoded with base64(1). */
static void test_the_token_as_a_password(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        enum access expected;
    } cases[] = {
        {"Basic YW55OnNlY3JldA==", ACCESS_BY_TOKEN},      /* any:secret */
        {"basic OnNlY3JldA==", ACCESS_BY_TOKEN},          /* :secret */
        {"Basic YTpzZWNyZXQ=", ACCESS_BY_TOKEN},          /* a:secret */
        {"Basic eHg6c2VjcmV0", ACCESS_BY_TOKEN},          /* xx:secret */
        {"Basic c2VjcmV0", ACCESS_WITHOUT_TOKEN},         /* secret, without a user */
        {"Basic YW55OnNlY3JldDo=", ACCESS_WITHOUT_TOKEN}, /* any:secret: */
        {"Basic YW55OnNlY3JldA=", ACCESS_WITHOUT_TOKEN},
        {"Basic YW55OnNlY3JldA", ACCESS_WITHOUT_TOKEN},
        {"Basic YW55OnNlY3JldA===", ACCESS_WITHOUT_TOKEN},
        {"Basic YW55OnNl Y3JldA==", ACCESS_WITHOUT_TOKEN},
        {"Basic YW55OnNlY3J\377dA==", ACCESS_WITHOUT_TOKEN},
        {"Basic ====", ACCESS_WITHOUT_TOKEN},
        {"Basic", ACCESS_WITHOUT_TOKEN},
        {"Basic ", ACCESS_WITHOUT_TOKEN},
        {"Bearer", ACCESS_WITHOUT_TOKEN},
        {"secret", ACCESS_WITHOUT_TOKEN},
        {"Digest secret", ACCESS_WITHOUT_TOKEN},
        {"", ACCESS_WITHOUT_TOKEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(check("secret", cases[i].header), cases[i].expected);
}

static void test_too_long_a_password(void **state)
{
    (void)state;
    char header[3 * SECRET_BYTES] = "Basic ";
    memset(header + 6, 'A', 2 * SECRET_BYTES);
    assert_int_equal(check("secret", header), ACCESS_WITHOUT_TOKEN);
}

static void test_files_without_a_token(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "two words", "two\nlines", "a\001b"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct token_file file = token_file_of(texts[i]);
        assert_non_null(access_check_token_file(file.path));
        close(file.fd);
        assert_int_equal(check(texts[i], "Bearer "), ACCESS_TOKEN_UNREADABLE);
    }
    const struct access_rules rules = {.token_file = "/none"};
    assert_non_null(access_check_token_file("/none"));
    assert_int_equal(access_check(&rules, &root, "Bearer x"), ACCESS_TOKEN_UNREADABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_own_user_and_root_may_ask),
        cmocka_unit_test(test_all_local_users_may_ask_if_allowed),
        cmocka_unit_test(test_a_token_is_demanded_of_everyone),
        cmocka_unit_test(test_the_whole_token_is_compared),
        cmocka_unit_test(test_the_longest_token),
        cmocka_unit_test(test_the_token_as_a_password),
        cmocka_unit_test(test_too_long_a_password),
        cmocka_unit_test(test_files_without_a_token),
    };
    return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
