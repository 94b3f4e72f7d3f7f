/* Profiles as requests to servers. */
#ifndef FGPROF_CLI_PUSH_BODY_H
#define FGPROF_CLI_PUSH_BODY_H

#include "cli/push/labels.h"
#include "fgprof.h"

#include <time.h>

/* The body of a POST request, and what its head says of it. */
struct body {
    char *bytes;
    size_t length;
    char *query;      /* of the URL; NULL: none */
    const char *type; /* Content-Type */
    bool is_gzip;     /* Content-Encoding */
};

/* Content types. The boundary stands between the parts of a form. */
#define BODY_BOUNDARY "fgprof-c-7f1c52d8a6b94e03"
#define BODY_FORM ("multipart/form-data; boundary=" BODY_BOUNDARY)
#define BODY_PPROF "application/octet-stream"
#define BODY_CONNECT "application/proto" /* of the Connect protocol */
#define BODY_OTLP "application/x-protobuf"

void body_free(struct body *body);

/* What is pushed at once. */
struct pushed {
    fgprof_profile *profile; /* of FGPROF_KIND_WALL; its settings are changed */
    unsigned kinds;          /* see push_kind */
    const struct labels *labels;
    time_t from, until;
};

/* As many requests as a server needs for it. */
#define BODIES_MAX PUSH_KIND_COUNT
struct bodies {
    struct body items[BODIES_MAX];
    size_t count;
};

/* The caller frees each body, also after an error. Returns 0 or a negative errno. */
int bodies_make(const struct pushed *pushed, enum push_api api, struct bodies *ret_bodies);

#endif
