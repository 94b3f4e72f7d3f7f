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

/* How the value is stored: the type of the field, and the value. */
enum option_type {
    OPTION_FLAG,   /* bool, true: the option takes no value */
    OPTION_TEXT,   /* const char *, not empty */
    OPTION_TIME,   /* uint64_t, from `least` to `most`: in nanoseconds, */
    OPTION_BYTES,  /* in bytes, */
    OPTION_NUMBER, /* or without a unit */
    OPTION_CHOICE, /* an enum, `number`, unless another option has chosen already */
    OPTION_GROUP,  /* the name of a control group, which is given by `number` */
};

struct cli_option {
    const char *name;
    char letter;       /* '\0': none */
    const char *value; /* as --help shows it; NULL: the option takes no value; "[=...]": the value
                          is optional, and only the long form can have one */
    unsigned commands; /* the commands that have it: one bit each, 1u << enum cli_command */
    enum option_group group;
    const char *help; /* lines */
    bool is_common;   /* among the first to know of */

    /* Parses and stores the value; NULL if none was given. On failure, prints the reason on stderr
     * and returns false; if memory is short, only sets errno to ENOMEM. */
    bool (*set)(struct cli_options *options, const char *value);
    bool (*set_push)(struct push_options *push, const char *value); /* the same */
    /* If both are NULL: */
    enum option_type type;
    size_t at; /* the offset of the member that it sets */
    unsigned number;
    uint64_t least, most;      /* 0: there is no limit */
    const char *what, *wanted; /* see complain; of a choice, what there is without any */
};

#define OPTIONS_MAX 80

/* In the order of --help, grouped. Every command also has --help and --help-all, which are not in
 * the table. */
extern const struct cli_option option_table[];
extern const size_t option_count;

/* Takes the value, with errors as of cli_option.set. */
bool option_take(const struct cli_option *option, const char *value, struct cli_options *options);

static inline bool option_is_of(const struct cli_option *option, enum cli_command command)
{
    return option->commands & (1u << command);
}

#endif
