/* Names addresses in a process without privileges.
 *
 * A target, or the author of its files, controls ELF files, debug information and mangled names,
 * and most of this program's code reads them. So they are read in a process that can do nothing
 * else (see sandbox.h). If it crashes, hangs or takes too much memory, the file that it read is not
 * tried again, and another process reads the next one. */
#ifndef FGPROF_READER_READER_H
#define FGPROF_READER_READER_H

#include "elf/module.h"
#include "fgprof.h"
#include "symbol/debug_fetch.h"
#include "symbol/symbol.h"

struct reader;

/* A reader that takes this long for one question is killed. Opening the largest programs takes
 * seconds. */
#define READER_LIMIT_MS 120000

/* To be called before any file of a target is opened. Returns 0 or a negative errno. */
int reader_new(unsigned limit_ms, struct reader **ret_reader);
void reader_free(struct reader *reader);

struct reader_question {
    const struct module *module;
    const uint64_t *addresses; /* the module's own, ascending */
    size_t count;
    enum fgprof_names names;
    struct debug_fetch *fetch; /* for files that are not on this machine; may be NULL */
};

/* Called for each address in turn; `symbol` is valid until it returns. Returns 0, or another value
 * to stop. */
typedef int reader_visit_fn(void *context, uint64_t address, const struct symbol *symbol,
                            bool is_trampoline);

/* Returns what the last visit returned; -ENOEXEC if the module can't be read, or not to the end:
 * *ret_why then has the reason, until the next question; or -ENOMEM. */
int reader_ask(struct reader *reader, const struct reader_question *question,
               reader_visit_fn *visit, void *context, const char **ret_why);

/* The same as variable_find and class_find of symbol/variables.h. */
int reader_find_variable(struct reader *reader, const struct module *module, uint64_t address,
                         char **ret_name, uint64_t *ret_offset);
int reader_find_class(struct reader *reader, const struct module *module, uint64_t address,
                      char **ret_name);

/* The name to show for a name that a process gives (see demangle). NULL: the name itself, also if
 * the reader fails. Valid until the next call. */
const char *reader_show(struct reader *reader, const char *name, enum fgprof_names names);

#endif
