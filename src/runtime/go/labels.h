/* The labels that a program gives its goroutines with pprof.Do. */
#ifndef FGPROF_RUNTIME_GO_LABELS_H
#define FGPROF_RUNTIME_GO_LABELS_H

#include "proc/stack_areas.h"
#include "runtime/go/layout.h"

#include <sys/types.h>

#define GO_LABELS_MAX 32 /* further ones are left out */
#define GO_LABEL_TEXT_BYTES 256u
#define GO_LABELS_BYTES_MAX (2 * GO_LABELS_MAX * GO_LABEL_TEXT_BYTES)

/* Reads the labels at `address` (g.labels): each is a key and a value, both terminated by NUL.
 * Longer texts, and those that contain a NUL, are left out. Returns how many bytes that is. */
size_t go_labels_read(const struct go_layout *layout, uint64_t address, pid_t tid,
                      const struct stack_areas *areas, char ret_text[GO_LABELS_BYTES_MAX]);

#endif
