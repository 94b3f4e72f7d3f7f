/* The writers of a dump. Errors are in the sink. */
#ifndef FGPROF_OUTPUT_DUMP_DUMP_H
#define FGPROF_OUTPUT_DUMP_DUMP_H

#include "base/name.h"
#include "base/sink.h"
#include "profile/dump.h"

void output_dump_text(const struct fgprof_dump *dump, struct sink *sink);
void output_dump_addresses(const struct fgprof_dump *dump, struct sink *sink);
void output_dump_grouped(const struct fgprof_dump *dump, struct sink *sink);
void output_dump_json(const struct fgprof_dump *dump, struct sink *sink);

/* The thread's name as the target has it; "" if it is not known. */
const char *dump_thread_name(const struct fgprof_dump *dump, const struct dump_thread *thread);

/* What the thread waits for, such as "mutex g_lock" or "pipe:[123]". The name comes from the target
 * and is not escaped. */
void dump_resource_name(const struct fgprof_dump *dump, const struct dump_thread *thread,
                        char ret_name[RESOURCE_NAME_BYTES]);

/* Appends what the thread is doing, such as "running" or "futex, mutex g_lock, owner 1235
 * \"name\"", and whether it was paused to copy its stack. */
void dump_append_state(struct buffer *buffer, const struct fgprof_dump *dump,
                       const struct dump_thread *thread, bool has_addresses);

/* Its state: of a goroutine in Go's words, like "chan receive", "running" or "syscall". */
const char *dump_task_state(const struct fgprof_dump *dump, const struct dump_task *task);

/* Appends `before` and the thread's creator or start, such as "made by main/1235 in start_pool" or
 * "began in worker"; nothing if that is not known, or if its stack shows where it began. */
void dump_append_birth(struct buffer *buffer, const struct fgprof_dump *dump,
                       const struct dump_thread *thread, const char *before);

/* Writes a paragraph for each deadlock. */
void dump_put_deadlocks(struct sink *sink, const struct fgprof_dump *dump, const char *prefix);

#endif
