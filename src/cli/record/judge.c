#include "cli/record/judge.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A share of hardly any time says nothing. */
#define WANTED_LEAST_PERCENT 10
/* A sleeping thread may be observed less often than there are polls. */
#define MISSED_MAX 5

int judge_init(struct judge *judge, const struct trigger *trigger)
{
    *judge = (struct judge){trigger, calloc(trigger->count, sizeof *judge->conditions)};
    return judge->conditions ? 0 : -ENOMEM;
}

void judge_forget(struct judge *judge)
{
    for (size_t i = 0; i < judge->trigger->count; i++) {
        free(judge->conditions[i].told.items);
        free(judge->conditions[i].found.items);
        judge->conditions[i] = (struct judged_condition){0};
    }
}

void judge_free(struct judge *judge)
{
    if (judge->conditions)
        judge_forget(judge);
    free(judge->conditions);
    judge->conditions = NULL;
}

/* If memory is short, a stall may be reported twice. */
static void add(struct judged_spans *spans, const struct judged_span *span)
{
    (void)array_append(&spans->items, &spans->count, &spans->capacity, *span);
}

/* Whether it was already reported and has continued since. Its beginning may have moved, because
 * older time is forgotten; but it began before that one's end, and another one would have begun
 * after it. */
static bool was_told(struct judged_spans *told, const struct condition *condition,
                     const struct fgprof_span *span)
{
    for (size_t i = 0; i < told->count; i++) {
        struct judged_span *known = &told->items[i];
        if (known->tid != span->tid || span->begin_ns + condition->least_ns / 2 >= known->end_ns)
            continue;
        known->missed = 0;
        known->end_ns = span->begin_ns + span->time_ns;
        return true;
    }
    return false;
}

static void forget_old(struct judged_spans *told)
{
    size_t kept = 0;
    for (size_t i = 0; i < told->count; i++) {
        if (told->items[i].missed++ < MISSED_MAX)
            told->items[kept++] = told->items[i];
    }
    told->count = kept;
}

static void print_time(FILE *to, uint64_t time_ns)
{
    if (time_ns < 1000000000)
        fprintf(to, "%.0f ms", (double)time_ns / 1e6);
    else
        fprintf(to, "%.2f s", (double)time_ns / 1e9);
}

static void describe_span(FILE *to, const struct condition *condition,
                          const struct fgprof_span *span)
{
    fprintf(to, "thread \"%s\"/%d ", span->thread_name, (int)span->tid);
    if (condition->function)
        fprintf(to, "in %s for ", condition->function);
    else
        fputs("blocked for ", to);
    print_time(to, span->time_ns);
    if (span->function &&
        (!condition->function || strcmp(span->function, condition->function) != 0))
        fprintf(to, " (at %s)", span->function);
    if (span->resource && !span->owner && span->waker)
        fprintf(to, ", waiting for %s, ended by \"%s\"", span->resource, span->waker);
    if (!span->resource || !span->owner)
        return;
    fprintf(to, ", waiting for %s, which \"%s\"", span->resource, span->owner);
    if (span->owner_tid)
        fprintf(to, "/%d", (int)span->owner_tid);
    fputs(" holds", to);
    if (span->owner_function)
        fprintf(to, " (at %s)", span->owner_function);
}

/* Reported spans are followed for as long as they continue; of the new ones the longest, which
 * comes first, is described. */
static bool find_spans(const struct condition *condition, struct judged_condition *judged,
                       const fgprof_spans *spans, FILE *reason)
{
    struct fgprof_span span;
    forget_old(&judged->told);
    for (size_t i = 0; fgprof_spans_get(spans, i, &span, sizeof span) == 0; i++) {
        if (was_told(&judged->told, condition, &span))
            continue;
        if (!judged->found.count)
            describe_span(reason, condition, &span);
        const struct judged_span found = {.tid = span.tid, .end_ns = span.begin_ns + span.time_ns};
        add(&judged->found, &found);
    }
    return judged->found.count;
}

static bool span_holds(const struct condition *condition, struct judged_condition *judged,
                       const struct evidence *evidence, FILE *reason)
{
    const struct fgprof_span_query query = {
        .is_blocked = !condition->function,
        .thread_name = condition->thread_name,
        .function = condition->function,
        .least_ns = condition->least_ns,
        .last_ns = evidence->since_ns,
    };
    fgprof_spans *spans;
    judged->found.count = 0;
    if (!evidence->profile || fgprof_profile_spans(evidence->profile, &query, sizeof query, &spans))
        return false;
    bool holds = find_spans(condition, judged, spans, reason);
    fgprof_spans_free(spans);
    return holds;
}

static bool deadlock_holds(struct judged_condition *judged, const struct evidence *evidence,
                           FILE *reason)
{
    struct fgprof_summary summary;
    if (!evidence->profile)
        return false;
    fgprof_profile_summary(evidence->profile, &summary, sizeof summary);
    judged->deadlocks = summary.deadlocks;
    if (judged->deadlocks <= judged->deadlocks_told)
        return false;
    const char *line = fgprof_profile_deadlock(evidence->profile, judged->deadlocks_told);
    fputs(line ? line : "deadlock", reason);
    return true;
}

static bool rate_holds(const struct condition *condition, const struct evidence *evidence,
                       FILE *reason)
{
    bool is_above = condition->kind == CONDITION_CPU_ABOVE;
    if (!evidence->has_rates)
        return false;
    if (condition->kind == CONDITION_RUNNABLE) {
        fprintf(reason, "threads waited for a CPU %.0f %% of the time they wanted one",
                evidence->runnable_percent);
        return evidence->runnable_percent >= condition->percent &&
               evidence->wanted_percent >= WANTED_LEAST_PERCENT;
    }
    fprintf(reason, "%.0f %% of a CPU used", evidence->cpu_percent);
    return is_above ? evidence->cpu_percent > condition->percent
                    : evidence->cpu_percent < condition->percent;
}

static bool holds(const struct condition *condition, struct judged_condition *judged,
                  const struct evidence *evidence, FILE *reason)
{
    switch (condition->kind) {
    case CONDITION_SPAN:
        return span_holds(condition, judged, evidence, reason);
    case CONDITION_DEADLOCK:
        return deadlock_holds(judged, evidence, reason);
    case CONDITION_EXIT:
        fputs("the processes have ended", reason);
        return evidence->has_ended;
    case CONDITION_COMMAND:
        fputs("the command exited with 0", reason);
        return evidence->command && evidence->command(condition->command, evidence->context);
    default:
        return rate_holds(condition, evidence, reason);
    }
}

bool judge_holds(struct judge *judge, const struct evidence *evidence, FILE *reason)
{
    const struct trigger *trigger = judge->trigger;
    bool all = true;
    fprintf(reason, "%s: ", trigger->text);
    for (size_t i = 0; i < trigger->count; i++) {
        const struct condition *condition = &trigger->conditions[i];
        /* Spans are followed at each poll. A command, which is the last, may be dear. */
        if (!all && condition->kind == CONDITION_COMMAND)
            break;
        fputs(i ? "; " : "", reason);
        all = holds(condition, &judge->conditions[i], evidence, reason) && all;
    }
    return all;
}

void judge_tell(struct judge *judge)
{
    for (size_t i = 0; i < judge->trigger->count; i++) {
        struct judged_condition *judged = &judge->conditions[i];
        for (size_t j = 0; j < judged->found.count; j++)
            add(&judged->told, &judged->found.items[j]);
        judged->found.count = 0;
        judged->deadlocks_told = judged->deadlocks;
    }
}
