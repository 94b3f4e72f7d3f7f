#include "cli/record/trigger.h"
#include "cli/options/values.h"
#include "base/utf8.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES " \t\n"
#define PERCENT_MAX 1e6

#define WANT_CONDITION                                                                             \
    "give thread NAME, any, runnable, cpu, deadlock, exit or command CMD, with their values"
#define WANT_ACT "give 'in FUNCTION for TIME' or 'blocked TIME'"
#define WANT_TIME "give a time such as 300ms or 2s"

struct parser {
    const char *text, *at;
    struct trigger_error *error;
};

/* Says what should be at `at`. Returns -EINVAL. */
static int fail(struct parser *parser, const char *at, const char *wanted)
{
    parser->error->character = 1 + utf8_columns(parser->text, (size_t)(at - parser->text));
    snprintf(parser->error->wanted, sizeof parser->error->wanted, "%s", wanted);
    return -EINVAL;
}

/* Moves to the next word. Returns its length; 0: there is none. */
static size_t next_word(struct parser *parser)
{
    parser->at += strspn(parser->at, SPACES);
    return strcspn(parser->at, SPACES);
}

static bool next_is(struct parser *parser, const char *word)
{
    size_t length = next_word(parser);
    return length && length == strlen(word) && strncmp(parser->at, word, length) == 0;
}

/* Takes the next word if it is this one. */
static bool take(struct parser *parser, const char *word)
{
    bool is_there = next_is(parser, word);
    parser->at += is_there ? strlen(word) : 0;
    return is_there;
}

static int copy(const char *from, const char *end, char **ret_copy)
{
    *ret_copy = strndup(from, (size_t)(end - from));
    return *ret_copy ? 0 : -ENOMEM;
}

static int parse_quoted(struct parser *parser, char **ret_name)
{
    const char *begin = parser->at + 1, *end = strchr(begin, '"');
    if (!end || end == begin)
        return fail(parser, parser->at, end ? "give a name" : "this quote has no end");
    parser->at = end + 1;
    return copy(begin, end, ret_name);
}

/* Reads a name: a word, and all words before one of `ends`. */
static int parse_name(struct parser *parser, const char *const ends[2], const char *wanted,
                      char **ret_name)
{
    size_t length = next_word(parser);
    const char *begin = parser->at, *end = begin + length;
    if (!length)
        return fail(parser, begin, "give a name");
    if (*begin == '"')
        return parse_quoted(parser, ret_name);
    parser->at = end;
    while (!next_is(parser, ends[0]) && !next_is(parser, ends[1])) {
        length = next_word(parser);
        if (!length)
            return fail(parser, parser->at, wanted);
        end = parser->at += length;
    }
    return copy(begin, end, ret_name);
}

static int parse_time(struct parser *parser, uint64_t *ret_ns)
{
    char word[32];
    size_t length = next_word(parser);
    snprintf(word, sizeof word, "%.*s", (int)length, parser->at);
    if (length >= sizeof word || !duration_parse(word, ret_ns))
        return fail(parser, parser->at, WANT_TIME);
    parser->at += length;
    return 0;
}

static int parse_percent(struct parser *parser, double most, double *ret_percent)
{
    size_t length = next_word(parser);
    const char *end = decimal_parse(parser->at, ret_percent);
    if (end && *end == '%')
        end++;
    if (end != parser->at + length || *ret_percent <= 0 || *ret_percent > most)
        return fail(parser, parser->at,
                    most > 100 ? "give a percentage of one CPU, such as 180%"
                               : "give a percentage above 0, at most 100, such as 20%");
    parser->at += length;
    return 0;
}

/* Formats mark some names; they are known without the mark. */
static void remove_mark(char *function)
{
    size_t length = strlen(function);
    static const char *const marks[] = {"_[i]", "_[j]", "_[k]"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t mark = strlen(marks[i]);
        if (length > mark && strcmp(function + length - mark, marks[i]) == 0)
            function[length - mark] = '\0';
    }
}

/* What follows the thread: "in FUNCTION for TIME" or "blocked TIME". */
static int parse_act(struct parser *parser, struct condition *condition)
{
    static const char *const end[] = {"for", "for"};
    if (take(parser, "in")) {
        int err =
            parse_name(parser, end, "give 'for TIME' after the function", &condition->function);
        if (err)
            return err;
        remove_mark(condition->function);
        if (!take(parser, "for"))
            return fail(parser, parser->at, "give 'for TIME' after the function");
    } else if (!take(parser, "blocked")) {
        return fail(parser, parser->at, WANT_ACT);
    } else {
        take(parser, "for"); /* some will write it */
    }
    return parse_time(parser, &condition->least_ns);
}

static int parse_thread(struct parser *parser, struct condition *condition)
{
    static const char *const ends[] = {"in", "blocked"};
    next_word(parser);
    const char *name = parser->at;
    regex_t compiled;
    char why[sizeof parser->error->wanted];
    int err = parse_name(parser, ends, WANT_ACT " after the name", &condition->thread_name);
    if (err)
        return err;
    int failure = regcomp(&compiled, condition->thread_name, REG_EXTENDED | REG_NOSUB);
    if (!failure) {
        regfree(&compiled);
        return parse_act(parser, condition);
    }
    regerror(failure, &compiled, why, sizeof why);
    return fail(parser, name, why);
}

static int parse_cpu(struct parser *parser, struct condition *condition)
{
    bool is_above = take(parser, "above");
    if (!is_above && !take(parser, "below"))
        return fail(parser, parser->at, "give 'above N%' or 'below N%'");
    condition->kind = is_above ? CONDITION_CPU_ABOVE : CONDITION_CPU_BELOW;
    return parse_percent(parser, PERCENT_MAX, &condition->percent);
}

static int parse_command(struct parser *parser, struct condition *condition)
{
    condition->kind = CONDITION_COMMAND;
    if (!next_word(parser))
        return fail(parser, parser->at, "give a command for sh");
    const char *begin = parser->at;
    parser->at += strlen(begin);
    return copy(begin, parser->at, &condition->command);
}

static int parse_condition(struct parser *parser, struct condition *condition)
{
    if (take(parser, "thread"))
        return parse_thread(parser, condition);
    if (take(parser, "any"))
        return parse_act(parser, condition);
    if (take(parser, "cpu"))
        return parse_cpu(parser, condition);
    if (take(parser, "command"))
        return parse_command(parser, condition);
    if (take(parser, "runnable")) {
        condition->kind = CONDITION_RUNNABLE;
        return parse_percent(parser, 100, &condition->percent);
    }
    if (take(parser, "deadlock"))
        condition->kind = CONDITION_DEADLOCK;
    else if (take(parser, "exit"))
        condition->kind = CONDITION_EXIT;
    else
        return fail(parser, parser->at, WANT_CONDITION);
    return 0;
}

static int add_condition(struct trigger *trigger, struct condition **ret_condition)
{
    struct condition *grown = reallocarray(trigger->conditions, trigger->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    trigger->conditions = grown;
    *ret_condition = &grown[trigger->count++];
    **ret_condition = (struct condition){.kind = CONDITION_SPAN};
    return 0;
}

int trigger_parse(const char *text, struct trigger *ret_trigger, struct trigger_error *ret_error)
{
    struct parser parser = {.text = text, .at = text, .error = ret_error};
    struct trigger trigger = {.text = strdup(text)};
    int err = trigger.text ? 0 : -ENOMEM;
    bool goes_on = true;
    while (!err && goes_on) {
        struct condition *condition;
        err = add_condition(&trigger, &condition);
        if (!err)
            err = parse_condition(&parser, condition);
        goes_on = !err && take(&parser, "and");
    }
    if (!err && next_word(&parser))
        err = fail(&parser, parser.at, "give 'and' and another condition, or nothing more");
    if (err)
        trigger_free(&trigger);
    else
        *ret_trigger = trigger;
    return err;
}

void trigger_free(struct trigger *trigger)
{
    for (size_t i = 0; i < trigger->count; i++) {
        free(trigger->conditions[i].thread_name);
        free(trigger->conditions[i].function);
        free(trigger->conditions[i].command);
    }
    free(trigger->conditions);
    free(trigger->text);
    *trigger = (struct trigger){0};
}

bool triggers_have(const struct trigger *triggers, size_t count, unsigned kinds)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < triggers[i].count; j++) {
            if (kinds & 1u << triggers[i].conditions[j].kind)
                return true;
        }
    }
    return false;
}

uint64_t trigger_needs_ns(const struct trigger *trigger)
{
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < trigger->count; i++) {
        if (trigger->conditions[i].least_ns > longest_ns)
            longest_ns = trigger->conditions[i].least_ns;
    }
    return longest_ns;
}
