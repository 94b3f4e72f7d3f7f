/* A minimal reader of an agent's segment: it takes all records and keeps a model of the live
 * objects. It trusts the agent, which is under test, and counts broken promises. */
#ifndef FGPROF_TESTS_AGENT_READER_H
#define FGPROF_TESTS_AGENT_READER_H

#include "agent/format.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define READER_ROWS (1u << 20) /* a power of two, more than are ever alive */

struct reader_row {
    uint64_t object; /* 0: free; 1: removed */
    uint64_t bytes;
};

struct reader {
    struct agent_header *header;
    uint64_t read;
    struct reader_row *rows;
    uint64_t made, gone, live, live_bytes, threads;
    uint64_t stack_bytes, cut;
    uint32_t tid; /* the last thread that allocated */
    /* What the agent promises never to do: free what was not allocated, or allocate what is already
     * live. */
    uint64_t unknown, twice;
    /* Called for each allocation, if not NULL. */
    void (*on_made)(const struct agent_record *record, void *context);
    void *context;
};

/* Maps the segment from this path. */
static inline bool reader_map(struct reader *reader, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    void *memory = mmap(NULL, AGENT_HEADER_BYTES + AGENT_RING_BYTES, PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return false;
    *reader = (struct reader){.header = memory};
    reader->rows = calloc(READER_ROWS, sizeof *reader->rows);
    return reader->rows && memcmp(reader->header->magic, AGENT_MAGIC, 8) == 0;
}

static inline void reader_close(struct reader *reader)
{
    munmap(reader->header, AGENT_HEADER_BYTES + AGENT_RING_BYTES);
    free(reader->rows);
    *reader = (struct reader){0};
}

/* Finds the segment of a process among its open files. Returns false if it has none. */
static inline bool reader_open(struct reader *reader, pid_t pid)
{
    for (int fd = 0; fd < 1024; fd++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t length = readlink(path, name, sizeof name - 1);
        if (length < 0)
            continue;
        name[length] = '\0';
        if (strcmp(name, "/memfd:" AGENT_MEMFD " (deleted)") != 0 || !reader_map(reader, path))
            continue;
        if (reader->header->pid == (uint32_t)pid)
            return true;
        reader_close(reader); /* inherited from the process that forked this one */
    }
    return false;
}

/* The row of an object, or a free one if it has none. */
static inline struct reader_row *reader_find(struct reader *reader, uint64_t object)
{
    struct reader_row *removed = NULL;
    for (size_t i = (size_t)(object * 0x9e3779b97f4a7c15u >> 40);; i++) {
        struct reader_row *row = &reader->rows[i % READER_ROWS];
        if (row->object == object)
            return row;
        if (row->object == 0)
            return removed ? removed : row;
        if (row->object == 1 && !removed)
            removed = row;
    }
}

static inline void reader_on_made(struct reader *reader, const struct agent_record *record)
{
    struct reader_row *row = reader_find(reader, record->object);
    reader->made++;
    if (row->object == record->object) {
        reader->twice++;
        reader->live_bytes -= row->bytes;
        reader->live--;
    }
    *row = (struct reader_row){.object = record->object, .bytes = record->object_bytes};
    reader->live++;
    reader->live_bytes += record->object_bytes;
    reader->stack_bytes += record->stack_bytes;
    reader->cut += record->is_cut;
    reader->tid = record->tid;
    if (reader->on_made)
        reader->on_made(record, reader->context);
}

static inline void reader_on_gone(struct reader *reader, const struct agent_record *record)
{
    struct reader_row *row = reader_find(reader, record->object);
    reader->gone++;
    if (row->object != record->object) {
        reader->unknown++;
        return;
    }
    row->object = 1;
    reader->live--;
    reader->live_bytes -= row->bytes;
}

/* The next record, or NULL if there is none yet. */
static inline struct agent_record *reader_next(struct reader *reader)
{
    char *ring = (char *)reader->header + AGENT_HEADER_BYTES;
    struct agent_record *record = (void *)(ring + reader->read % AGENT_RING_BYTES);
    if (atomic_load_explicit(&reader->header->written, memory_order_acquire) == reader->read ||
        atomic_load_explicit(&record->committed, memory_order_acquire) != reader->read + 1)
        return NULL;
    return record;
}

/* Frees the record's space in the ring. */
static inline void reader_skip(struct reader *reader, const struct agent_record *record)
{
    reader->read += record->bytes;
    atomic_store_explicit(&reader->header->read, reader->read, memory_order_release);
}

/* Takes all records that are there, and returns their number. */
static inline uint64_t reader_drain(struct reader *reader)
{
    struct agent_record *record;
    uint64_t count = 0;
    while ((record = reader_next(reader))) {
        if (record->kind == AGENT_ALLOCATED)
            reader_on_made(reader, record);
        else if (record->kind == AGENT_FREED)
            reader_on_gone(reader, record);
        else if (record->kind == AGENT_THREAD)
            reader->threads++;
        reader_skip(reader, record);
        count++;
    }
    return count;
}

/* Starts a new epoch: both sides forget all objects. */
static inline void reader_start(struct reader *reader, uint32_t wanted, uint64_t rate)
{
    struct agent_header *header = reader->header;
    atomic_store(&header->rate, rate);
    atomic_fetch_add(&header->epoch, 1);
    /* Skips record by record: the space of a record that is still being written must not be reused.
     */
    uint64_t until = atomic_load(&header->written);
    reader->read = atomic_load(&header->read);
    while (reader->read != until) {
        const struct agent_record *record = reader_next(reader);
        if (record)
            reader_skip(reader, record);
        else
            sched_yield();
    }
    memset(reader->rows, 0, READER_ROWS * sizeof *reader->rows);
    reader->live = reader->live_bytes = 0;
    atomic_store(&header->wanted, wanted);
}

static inline void reader_stop(struct reader *reader)
{
    atomic_store(&reader->header->wanted, 0);
}

#endif
