/* An OTLP server's answer if it has accepted only part of a request, or has a warning about it
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

/* Reads an ExportProfilesServiceResponse, which may be arbitrary bytes. Unreadable parts are
 * treated as absent. */
void partial_success_read(const void *answer, size_t bytes, struct partial_success *ret_partial);

#endif
