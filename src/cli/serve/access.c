#include "cli/serve/access.h"
#include "cli/secret_file.h"

#include <string.h>
#include <strings.h>

/* Takes as long for any two: a client can't find out by time how much of its token is right. */
static bool is_equal(const char one[SECRET_BYTES], const char other[SECRET_BYTES])
{
    volatile unsigned char difference = 0;
    for (size_t i = 0; i < SECRET_BYTES; i++)
        difference = difference | (unsigned char)(one[i] ^ other[i]);
    return !difference;
}

/* Pads it with zeros. Returns NULL, or the reason why it can't. */
static const char *read_token(const char *path, char ret_token[SECRET_BYTES])
{
    memset(ret_token, 0, SECRET_BYTES);
    const char *problem = secret_file_read(path, ret_token);
    if (!problem)
        problem = secret_check(ret_token);
    if (!problem && strchr(ret_token, ' '))
        problem = "it has a space";
    /* What secret_file_read has left out may be behind the NUL. */
    size_t length = problem ? 0 : strlen(ret_token);
    memset(ret_token + length, 0, SECRET_BYTES - length);
    return problem;
}

const char *access_check_token_file(const char *path)
{
    char token[SECRET_BYTES];
    const char *problem = read_token(path, token);
    explicit_bzero(token, sizeof token);
    return problem;
}

/* RFC 4648, 4. Returns the number of bytes, or -1. */
static int decode_base64(const char *text, char ret_bytes[SECRET_BYTES])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strspn(text, digits), padding = strspn(text + length, "=");
    unsigned bits = 0, bit_count = 0;
    int count = 0;
    if (text[length + padding] || padding > 2 || (length + padding) % 4 ||
        length / 4 * 3 + 3 > SECRET_BYTES)
        return -1;
    for (size_t i = 0; i < length; i++) {
        bits = bits << 6 | (unsigned)(strchr(digits, text[i]) - digits);
        bit_count += 6;
        if (bit_count < 8)
            continue;
        bit_count -= 8;
        ret_bytes[count++] = (char)(bits >> bit_count & 0xff);
    }
    return count;
}

/* The password of "USER:PASSWORD" in base64 (RFC 7617), with zeros behind it. */
static bool take_password(const char *encoded, char ret_token[SECRET_BYTES])
{
    char account[SECRET_BYTES];
    int length = decode_base64(encoded, account);
    const char *colon = length < 0 ? NULL : memchr(account, ':', (size_t)length);
    if (colon)
        memcpy(ret_token, colon + 1, (size_t)(account + length - colon - 1));
    explicit_bzero(account, sizeof account);
    return colon;
}

/* "Bearer TOKEN" (RFC 6750), or "Basic ...", which browsers and URLs with a password send. Copies
 * the token, padded with zeros. */
static bool take_token(const char *authorization, char ret_token[SECRET_BYTES])
{
    size_t scheme_length = strcspn(authorization, " ");
    const char *value = authorization + scheme_length + strspn(authorization + scheme_length, " ");
    memset(ret_token, 0, SECRET_BYTES);
    if (scheme_length == 5 && strncasecmp(authorization, "Basic", 5) == 0)
        return take_password(value, ret_token);
    if (scheme_length != 6 || strncasecmp(authorization, "Bearer", 6) != 0 ||
        strlen(value) >= SECRET_BYTES)
        return false;
    memcpy(ret_token, value, strlen(value));
    return true;
}

/* The file is read again for each request, since it may be replaced. */
static enum access check_token(const char *token_file, const char *authorization)
{
    char token[SECRET_BYTES], sent[SECRET_BYTES];
    enum access access = ACCESS_WITHOUT_TOKEN;
    if (!authorization || !take_token(authorization, sent))
        return access;
    if (read_token(token_file, token))
        access = ACCESS_TOKEN_UNREADABLE;
    else if (is_equal(sent, token))
        access = ACCESS_BY_TOKEN;
    explicit_bzero(token, sizeof token);
    explicit_bzero(sent, sizeof sent);
    return access;
}

enum access access_check(const struct access_rules *rules, const struct peer *peer,
                         const char *authorization)
{
    if (rules->allows_local_users && peer->is_local)
        return ACCESS_GRANTED;
    if (rules->token_file)
        return check_token(rules->token_file, authorization);
    if (!peer->has_uid)
        return ACCESS_UNKNOWN_USER;
    return peer->uid == 0 || peer->uid == rules->own_uid ? ACCESS_GRANTED : ACCESS_OTHER_USER;
}
