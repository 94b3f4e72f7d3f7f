#include "cli/push/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What the file holds, or if there is none what was given. */
static const char *read_secret(const char *file, const char *given, char ret_secret[SECRET_BYTES])
{
    if (file)
        return secret_file_read(file, ret_secret);
    if (strlen(given) >= SECRET_BYTES)
        return "it is longer than 8191 bytes";
    strcpy(ret_secret, given);
    return NULL;
}

static const char *read_token(const struct push_options *options, const char *given,
                              struct credentials *credentials)
{
    char token[SECRET_BYTES] = "";
    const char *problem = read_secret(options->token_file, given, token);
    if (!problem)
        problem = secret_check(token);
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
        problem = secret_file_read(options->user_file, to);
    else if (strchr(user, ':'))
        problem = "a user's name can't have a colon";
    else if (snprintf(to, SECRET_BYTES, "%s:%s", user, password ? password : "") >= SECRET_BYTES)
        problem = "it is longer than 8191 bytes";
    if (!problem)
        problem = secret_check(to);
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
    return secret_check(header);
}

/* One on each line. */
static const char *read_headers(const struct push_options *options, const char *given,
                                struct credentials *credentials)
{
    char text[SECRET_BYTES] = "", *to = credentials->others, *rest;
    bool has_account = *credentials->header || *credentials->password;
    const char *problem = read_secret(options->header_file, given, text);
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
    *ret_credentials = (struct credentials){0}; /* all bytes of it are sent */
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
