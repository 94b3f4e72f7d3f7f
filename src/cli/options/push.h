/* The options of `serve` that push profiles to servers. */
#ifndef FGPROF_CLI_OPTIONS_PUSH_H
#define FGPROF_CLI_OPTIONS_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSH_TARGETS_MAX 4
#define PUSH_TAGS_MAX 16 /* Pyroscope takes 30 labels, some of which we set */

/* The protocol of a server. */
enum push_api {
    PUSH_PYROSCOPE, /* push.v1.PusherService/Push */
    PUSH_INGEST,    /* Pyroscope's classic /ingest */
    PUSH_OTLP,
};

struct push_target {
    enum push_api api;
    const char *given; /* as the user wrote it: "pyroscope=http://localhost:4040" */
    char *url;         /* with the API's path */
    char *shown;       /* "http://localhost:4040": for people */
};

/* The numbers are those of the words in the option's value. */
enum push_kind { PUSH_WALL, PUSH_CPU, PUSH_OFF_CPU, PUSH_MUTEX, PUSH_BLOCK, PUSH_KIND_COUNT };
#define PUSH_KINDS_DEFAULT (1u << PUSH_WALL | 1u << PUSH_CPU | 1u << PUSH_OFF_CPU)

struct push_tag {
    char *key;
    const char *value;
};

struct push_options {
    struct push_target targets[PUSH_TARGETS_MAX];
    size_t target_count;
    struct push_tag tags[PUSH_TAGS_MAX];
    size_t tag_count;
    uint64_t every_ns;
    unsigned kinds;       /* a bit for each */
    const char *service;  /* NULL: the name of the process */
    const char *spool;    /* a directory; NULL: the default */
    uint64_t spool_bytes; /* 0: the default */
    const char *token_file, *user_file, *header_file, *ca_file;
};

/* Each reads the value of an option. On failure, prints the reason on stderr and returns false. */
bool push_target_parse(struct push_options *push, const char *value);
bool push_tag_parse(struct push_options *push, const char *value);
bool push_kinds_parse(struct push_options *push, const char *value);

/* Whether the options go together. Prints why they don't. */
bool push_check(const struct push_options *push);

void push_options_free(struct push_options *push);

#endif
