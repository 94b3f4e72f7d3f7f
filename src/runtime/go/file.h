/* What a Go program's file says of its runtime. */
#ifndef FGPROF_RUNTIME_GO_FILE_H
#define FGPROF_RUNTIME_GO_FILE_H

#include "elf/go/pclntab.h"
#include "elf/query.h"

/* The version, and the functions that are wanted, of the file that has the table. */
void go_file_read(const struct pclntab *table, struct go_runtime *ret_runtime);

#endif
