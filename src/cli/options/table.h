/* All options of all commands: each is said once, here, for the parser and for --help. */
#ifndef FGPROF_CLI_OPTIONS_TABLE_H
#define FGPROF_CLI_OPTIONS_TABLE_H

#include "cli/options/options.h"

/* What they are about: the order and the headings of the help. */
enum option_group {
    OPTIONS_WHICH,
    OPTIONS_WHEN,
    OPTIONS_SHOWN,
    OPTIONS_OUTPUT,
    OPTION_GROUP_COUNT
};

struct cli_option {
    const char *name;
    char letter;       /* '\0': it has none */
    const char *value; /* as the help shows it; NULL: it takes none; "[=...]": it may be left out,
                          and only the long form takes it */
    unsigned commands; /* that have it: a bit for each, 1u << enum cli_command */
    enum option_group group;
    /* Takes the value (NULL: none was given). Says on stderr what is wrong, and returns false. */
    bool (*set)(struct cli_options *options, const char *value);
    size_t flag;      /* where there is no set: the offset of the bool that it makes true */
    const char *help; /* lines; NULL: said with the option before it */
};

#define OPTIONS_MAX 32

/* In the order of the help, grouped. --help itself, which every command has, is not among them. */
extern const struct cli_option option_table[];
extern const size_t option_count;

static inline bool option_is_of(const struct cli_option *option, enum cli_command command)
{
    return option->commands & (1u << command);
}

#endif
