/* All options of all commands. The parser and --help both use this table. */
#ifndef FGPROF_CLI_OPTIONS_TABLE_H
#define FGPROF_CLI_OPTIONS_TABLE_H

#include "cli/options/options.h"

/* The groups of options, in the order of --help. */
enum option_group {
    OPTIONS_WHICH,
    OPTIONS_WHEN,
    OPTIONS_SHOWN,
    OPTIONS_OUTPUT,
    OPTION_GROUP_COUNT
};

struct cli_option {
    const char *name;
    char letter;       /* '\0': none */
    const char *value; /* as --help shows it; NULL: the option takes no value; "[=...]": the value
                          is optional, and only the long form takes it */
    unsigned commands; /* the commands that have it: one bit each, 1u << enum cli_command */
    enum option_group group;
    /* Takes the value; NULL if none was given. On failure, prints the reason on stderr and returns
     * false; if memory is short, only sets errno to ENOMEM. */
    bool (*set)(struct cli_options *options, const char *value);
    size_t flag;      /* if set is NULL: the offset of the bool to make true */
    const char *help; /* lines */
    bool is_common;   /* among the first to know of */
};

#define OPTIONS_MAX 80

/* In the order of --help, grouped. Every command also has --help and --help-all, which are
 * not listed here. */
extern const struct cli_option option_table[];
extern const size_t option_count;

static inline bool option_is_of(const struct cli_option *option, enum cli_command command)
{
    return option->commands & (1u << command);
}

#endif
