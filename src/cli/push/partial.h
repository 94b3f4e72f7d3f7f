/* What an OTLP server answers if it has taken a request only in part, or has something to say of it
 * (opentelemetry-proto, docs/specification.md, "Partial Success"). */
#ifndef FGPROF_CLI_PUSH_PARTIAL_H
#define FGPROF_CLI_PUSH_PARTIAL_H

#include <stddef.h>
#include <stdint.h>

struct partial_success {
    uint64_t rejected;    /* profiles that the server has left out */
    const char *message;  /* in the answer, without a NUL; */
    size_t message_bytes; /* 0: there is none */
};

/* Reads an ExportProfilesServiceResponse, which may be anything. What can't be read is taken not to
 * be there. */
void partial_success_read(const void *answer, size_t bytes, struct partial_success *ret_partial);

#endif
