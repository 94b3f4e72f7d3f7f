/* An agent's memory in this program, and a program object for this process, for tests of the reader
 * in objects/agent.h. */
#ifndef FGPROF_TESTS_MAKE_AGENT_H
#define FGPROF_TESTS_MAKE_AGENT_H

#include "agent/format.h"
#include "objects/agent.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct segment {
    int fd;
    struct agent_header *header;
    size_t bytes;
};

static inline void segment_fill(struct segment *segment)
{
    struct agent_header *header = segment->header;
    header->version = AGENT_VERSION;
    header->header_bytes = AGENT_HEADER_BYTES;
    header->ring_bytes = segment->bytes - AGENT_HEADER_BYTES;
    header->pid = (uint32_t)getpid();
    memcpy(header->magic, AGENT_MAGIC, sizeof header->magic);
}

/* `ring_bytes` should be a power of two, and `seals` F_SEAL_SHRINK. */
static inline struct segment segment_make(size_t ring_bytes, int seals)
{
    struct segment segment = {.bytes = AGENT_HEADER_BYTES + ring_bytes};
    segment.fd = memfd_create(AGENT_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (segment.fd < 0 || ftruncate(segment.fd, (off_t)segment.bytes) ||
        fcntl(segment.fd, F_ADD_SEALS, seals))
        abort();
    segment.header = mmap(NULL, segment.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd, 0);
    if (segment.header == MAP_FAILED)
        abort();
    segment_fill(&segment);
    return segment;
}

static inline void segment_free(struct segment *segment)
{
    munmap(segment->header, segment->bytes);
    if (segment->fd >= 0)
        close(segment->fd);
}

static inline struct agent_record *segment_record(const struct segment *segment, uint64_t position)
{
    size_t ring_bytes = segment->bytes - AGENT_HEADER_BYTES;
    char *ring = (char *)segment->header + AGENT_HEADER_BYTES;
    return (void *)(ring + (position & (ring_bytes - 1)));
}

static inline struct program own_program(void)
{
    struct program program = {.process_id = getpid(), .tid = getpid()};
    program.proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    program.mem_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    program.maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (program.proc_fd < 0 || program.mem_fd < 0 || program.maps_fd < 0)
        abort();
    return program;
}

static inline void own_program_close(struct program *program)
{
    close(program->proc_fd);
    close(program->mem_fd);
    close(program->maps_fd);
}

#endif
