#include "cli/options/push.h"
#include "base/utf8.h"
#include "cli/options/values.h"
#include "cli/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG_KEY_MAX 128
#define TAG_VALUE_MAX 1024
#define URL_MAX 2048

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* The defaults of Pyroscope (pkg/api/api.go) and of OTLP/HTTP (opentelemetry-proto,
 * docs/specification.md). */
#define PYROSCOPE_PATH "/push.v1.PusherService/Push"
#define INGEST_PATH "/ingest"
#define OTLP_PATH "/v1development/profiles"

static bool ends_with(const char *text, size_t length, const char *ending)
{
    size_t ending_length = strlen(ending);
    return length >= ending_length &&
           memcmp(text + length - ending_length, ending, ending_length) == 0;
}

/* "host", "host:4040", "[::1]:4040" */
static bool is_authority(const char *text, size_t length)
{
    char copy[512], host[sizeof copy];
    const char *port;
    uint64_t number;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!host_parse(copy, host, sizeof host, &port) ||
        (port && !number_parse(port, 1, 65535, &number)))
        return false;
    return !host[strspn(host, *copy == '[' ? DIGITS "abcdefABCDEF:." : LETTERS DIGITS "-._")];
}

static const char *path_to_add(enum push_api api, const char *path, size_t length)
{
    switch (api) {
    case PUSH_OTLP:
        return length ? "" : OTLP_PATH;
    case PUSH_PYROSCOPE:
        return ends_with(path, length, PYROSCOPE_PATH) ? "" : PYROSCOPE_PATH;
    default:
        return "";
    }
}

/* What may be a password is not repeated: it would be in a log. */
static bool complain_url(const char *value, const char *why)
{
    return complain("server to push to", strchr(value, '@') ? "...@..." : value, why);
}

/* Fills in what follows from the URL. */
static bool url_parse(struct push_target *target, const char *url)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    if (!scheme)
        return complain_url(target->given, "the URL must begin with http:// or https://");
    const char *host = url + scheme, *path = host + strcspn(host, "/?#");
    if (memchr(host, '@', (size_t)(path - host)))
        return complain_url(target->given,
                            "others can read the command line: give FGPROF_PUSH_USER and "
                            "FGPROF_PUSH_PASSWORD, or --push-user-file FILE");
    if (!is_authority(host, (size_t)(path - host)))
        return complain_url(target->given, "give a host, and a port if it is not the usual one");
    size_t length = strlen(path);
    if (strspn(path, LETTERS DIGITS "/-._~%:@!$&'()*+,;=") != length || strlen(url) > URL_MAX)
        return complain_url(target->given, "give a URL without a query, a fragment or spaces");
    while (length && path[length - 1] == '/')
        length--;
    if (target->api == PUSH_PYROSCOPE && ends_with(path, length, INGEST_PATH))
        target->api = PUSH_INGEST;
    if (asprintf(&target->shown, "%.*s", (int)(path - url), url) < 0)
        target->shown = NULL;
    if (asprintf(&target->url, "%s%.*s%s", target->shown, (int)length, path,
                 path_to_add(target->api, path, length)) < 0)
        target->url = NULL;
    return target->shown && target->url;
}

bool push_target_parse(struct push_options *push, const char *value)
{
    static const struct {
        const char *word;
        enum push_api api;
    } kinds[] = {{"pyroscope=", PUSH_PYROSCOPE}, {"otlp=", PUSH_OTLP}};
    if (push->target_count == PUSH_TARGETS_MAX)
        return complain_url(value, "at most 4 can be given");
    for (size_t i = 0; i < push->target_count; i++) {
        if (strcmp(push->targets[i].given, value) == 0)
            return complain_url(value, "it is given twice");
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].word);
        if (strncmp(value, kinds[i].word, length) != 0)
            continue;
        struct push_target *target = &push->targets[push->target_count++];
        *target = (struct push_target){.api = kinds[i].api, .given = value};
        return url_parse(target, value + length);
    }
    return complain_url(value, "give pyroscope=URL or otlp=URL");
}

/* For Pyroscope dots become underscores. */
static bool is_same_key(const char *left, const char *right)
{
    for (; *left && *right; left++, right++) {
        if (*left != *right && !(strchr("._", *left) && strchr("._", *right)))
            return false;
    }
    return *left == *right;
}

/* Set by us, or by the servers. */
static bool is_reserved(const char *key)
{
    static const char *const names[] = {"service_name", "host_name",     "process_pid",
                                        "container_id", "pyroscope_spy", "process_executable_name"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_same_key(key, names[i]))
            return true;
    }
    return strchr("._", key[0]) && key[1] && strchr("._", key[1]);
}

/* Both servers take UTF-8 alone. */
static bool is_printable(const char *text)
{
    size_t bytes;
    while (*text && (bytes = utf8_printable_bytes(text)))
        text += bytes;
    return !*text;
}

bool push_tag_parse(struct push_options *push, const char *value)
{
    const char *equals = strchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    bool is_key = length && length <= TAG_KEY_MAX && strspn(value, LETTERS "_") &&
                  strspn(value, LETTERS DIGITS "_.") == length;
    if (!is_key)
        return complain("tag", value,
                        "give KEY=VALUE; a key has letters, digits, _ and ., and begins with a "
                        "letter or _");
    if (!equals[1] || strlen(equals + 1) > TAG_VALUE_MAX || !is_printable(equals + 1))
        return complain("tag", value, "give a value of 1 to 1024 printable characters, in UTF-8");
    if (push->tag_count == PUSH_TAGS_MAX)
        return complain("tag", value, "at most 16 can be given");
    char *key = strndup(value, length);
    if (!key)
        return false;
    push->tags[push->tag_count++] = (struct push_tag){key, equals + 1};
    if (is_reserved(key))
        return complain("tag", value, "this key is set already; --service sets the service's name");
    for (size_t i = 0; i + 1 < push->tag_count; i++) {
        if (is_same_key(push->tags[i].key, key))
            return complain("tag", value, "its key is given twice");
    }
    return true;
}

bool push_kinds_parse(struct push_options *push, const char *value)
{
    static const char *const words[PUSH_KIND_COUNT] = {"wall", "cpu", "off_cpu", "mutex", "block"};
    push->kinds = 0;
    for (const char *at = value;; at++) {
        size_t length = strcspn(at, ",");
        unsigned kind = 0;
        while (kind < PUSH_KIND_COUNT &&
               (strlen(words[kind]) != length || memcmp(words[kind], at, length) != 0))
            kind++;
        if (kind == PUSH_KIND_COUNT)
            return complain("list of kinds", value,
                            "give some of wall, cpu, off_cpu, mutex and block, with commas");
        push->kinds |= 1u << kind;
        at += length;
        if (!*at)
            return true;
    }
}

static bool is_in_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* What is known to one server is not sent to another. */
static bool check_credentials(const struct push_options *push)
{
    bool has_token = push->token_file || is_in_environment("FGPROF_PUSH_TOKEN");
    bool has_user = push->user_file || is_in_environment("FGPROF_PUSH_USER");
    if (has_token && has_user)
        return say("there is a token and a password to push with: give one of them");
    bool has_any =
        has_token || has_user || push->header_file || is_in_environment("FGPROF_PUSH_HEADERS");
    for (size_t i = 1; i < push->target_count && has_any; i++) {
        if (strcmp(push->targets[i].shown, push->targets[0].shown) == 0)
            continue;
        return say(
            "%s and %s would both get the same token, password or headers: push to one server only",
            push->targets[0].shown, push->targets[i].shown);
    }
    return true;
}

bool push_check(const struct push_options *push)
{
    bool is_used = push->tag_count || push->every_ns || push->kinds || push->service ||
                   push->spool || push->spool_bytes || push->token_file || push->user_file ||
                   push->header_file || push->ca_file;
    if (!push->target_count && is_used)
        return say("there is no server to push to: give --push pyroscope=URL or --push otlp=URL");
    return !push->target_count || check_credentials(push);
}

void push_options_free(struct push_options *push)
{
    for (size_t i = 0; i < push->target_count; i++) {
        free(push->targets[i].url);
        free(push->targets[i].shown);
    }
    for (size_t i = 0; i < push->tag_count; i++)
        free(push->tags[i].key);
}
