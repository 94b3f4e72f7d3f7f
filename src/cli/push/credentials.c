#include "cli/push/credentials.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A line end at the end, which editors add, is left out. */
static const char *read_file(const char *path, char *text, size_t text_bytes)
{
    size_t length = 0;
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return "its file can't be read";
    while (length < text_bytes && (got = read(fd, text + length, text_bytes - length)) > 0)
        length += (size_t)got;
    close(fd);
    if (got < 0)
        return "its file can't be read";
    while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    if (length >= text_bytes)
        return "it is longer than 8191 bytes";
    text[length] = '\0';
    return strlen(text) == length ? NULL : "it has control characters";
}

static const char *check(const char *text)
{
    if (!*text)
        return "it is empty";
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "it has control characters";
    }
    return NULL;
}

static const char *read_token(const struct push_options *options, const char *given,
                              struct credentials *credentials)
{
    char token[CREDENTIAL_BYTES] = "";
    const char *problem = NULL;
    if (options->token_file)
        problem = read_file(options->token_file, token, sizeof token);
    else if (strlen(given) < sizeof token)
        strcpy(token, given);
    else
        problem = "it is longer than 8191 bytes";
    if (!problem)
        problem = check(token);
    if (!problem)
        snprintf(credentials->header, sizeof credentials->header, "Authorization: Bearer %s",
                 token);
    explicit_bzero(token, sizeof token);
    return problem;
}

static const char *read_password(const struct push_options *options, const char *user,
                                 struct credentials *credentials)
{
    const char *password = getenv("FGPROF_PUSH_PASSWORD");
    char *to = credentials->password;
    const char *problem = NULL;
    if (options->user_file)
        problem = read_file(options->user_file, to, CREDENTIAL_BYTES);
    else if (strchr(user, ':'))
        problem = "a user's name can't have a colon";
    else if (snprintf(to, CREDENTIAL_BYTES, "%s:%s", user, password ? password : "") >=
             CREDENTIAL_BYTES)
        problem = "it is longer than 8191 bytes";
    if (!problem)
        problem = check(to);
    return problem                         ? problem
           : strchr(to, ':') && *to != ':' ? NULL
                                           : "its file must hold USER:PASSWORD";
}

/* Whether the header is one of those that each request has. */
static bool is_set_already(const char *header, size_t name_length)
{
    static const char *const names[] = {
        "Host",       "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding",
        "Connection", "Expect"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == name_length && strncasecmp(names[i], header, name_length) == 0)
            return true;
    }
    return false;
}

/* A name is a token (RFC 9110, 5.6.2). */
static const char *check_header(const char *header, bool has_account)
{
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "!#$%&'*+-.^_`|~";
    static const char account[] = "Authorization";
    size_t length = strspn(header, token);
    if (!length || header[length] != ':' || !header[length + 1 + strspn(header + length + 1, " ")])
        return "a header must be NAME: VALUE";
    if (is_set_already(header, length))
        return "a header is one that each request has anyway";
    if (has_account && length == strlen(account) && strncasecmp(header, account, length) == 0)
        return "a token or password and the header Authorization are one too many";
    return check(header);
}

/* One on each line. */
static const char *read_headers(const struct push_options *options, const char *given,
                                struct credentials *credentials)
{
    char text[CREDENTIAL_BYTES] = "", *to = credentials->others, *rest;
    bool has_account = *credentials->header || *credentials->password;
    const char *problem = NULL;
    if (options->header_file)
        problem = read_file(options->header_file, text, sizeof text);
    else if (strlen(given) < sizeof text)
        strcpy(text, given);
    else
        problem = "it is longer than 8191 bytes";
    for (char *line = strtok_r(text, "\r\n", &rest); line && !problem;
         line = strtok_r(NULL, "\r\n", &rest)) {
        problem = check_header(line, has_account);
        to = stpcpy(to, line) + 1;
    }
    *to = '\0';
    if (!problem && !*credentials->others)
        problem = "it is empty";
    explicit_bzero(text, sizeof text);
    return problem;
}

const char *credentials_read(const struct push_options *options,
                             struct credentials *ret_credentials)
{
    const char *token = getenv("FGPROF_PUSH_TOKEN"), *user = getenv("FGPROF_PUSH_USER");
    const char *headers = getenv("FGPROF_PUSH_HEADERS"), *problem = NULL;
    *ret_credentials->header = *ret_credentials->password = *ret_credentials->others = '\0';
    if (options->token_file || (token && *token))
        problem = read_token(options, token, ret_credentials);
    else if (options->user_file || (user && *user))
        problem = read_password(options, user, ret_credentials);
    if (!problem && (options->header_file || (headers && *headers)))
        problem = read_headers(options, headers, ret_credentials);
    if (problem)
        credentials_forget(ret_credentials);
    return problem;
}

void credentials_forget(struct credentials *credentials)
{
    explicit_bzero(credentials, sizeof *credentials);
}
