/* Memory of the agent's own: zeroed pages, which a child of fork finds zeroed again. It uses only
 * system calls, because mmap may be the agent's. */
#ifndef FGPROF_AGENT_PAGES_H
#define FGPROF_AGENT_PAGES_H

#include <stddef.h>

/* Returns NULL if there is no memory, or the kernel (before 4.14) can't zero it in children. */
void *pages_new(size_t bytes);

void pages_free(void *memory, size_t bytes);

#endif
