#include "reader/lookup_packet.h"

void lookup_packet_put_question(struct buffer *body, uint64_t slot, const struct lookup *lookup)
{
    packet_put_number(body, slot);
    packet_put_number(body, lookup->kind);
    packet_put_number(body, lookup->address);
    packet_put_number(body, lookup->function);
}

bool lookup_packet_take_question(struct bytes *body, uint64_t *ret_slot, struct lookup *ret_lookup)
{
    *ret_slot = packet_number(body);
    uint64_t kind = packet_number(body), address = packet_number(body);
    *ret_lookup = (struct lookup){(enum lookup_kind)kind, address, packet_number(body)};
    return !body->failed && kind < LOOKUP_KINDS;
}

/* ---- Answers ---- */

static void put_signed(struct buffer *body, int64_t number)
{
    packet_put_number(body, (uint64_t)number);
}

static void put_place(struct buffer *body, const struct rule_place *place)
{
    packet_put_number(body, place->register_number);
    packet_put_number(body, place->is_in_memory);
    put_signed(body, place->offset);
}

static void put_rule(struct buffer *body, const struct rule *rule)
{
    packet_put_number(body, rule->kind);
    packet_put_number(body, rule->has_frame_pointer);
    packet_put_number(body, rule->may_not_be_saved);
    packet_put_number(body, rule->may_leave_stack);
    packet_put_number(body, rule->is_from_code);
    packet_put_number(body, rule->has_no_record);
    packet_put_number(body, rule->is_no_call);
    packet_put_number(body, rule->caller_is_exact);
    packet_put_number(body, rule->is_at_return);
    packet_put_number(body, rule->has_caller);
    put_place(body, &rule->cfa);
    packet_put_number(body, rule->cfa_index);
    packet_put_number(body, rule->cfa_scale);
    packet_put_number(body, rule->kept);
    put_signed(body, rule->cfa_offset);
    put_place(body, &rule->return_address);
    put_place(body, &rule->frame_pointer);
    put_signed(body, rule->link_offset);
    put_signed(body, rule->base_pointer_offset);
}

void lookup_packet_put_answer(struct buffer *body, enum lookup_kind kind,
                              const union lookup_answer *answer)
{
    const struct lookup_prologue *prologue = &answer->prologue;
    switch (kind) {
    case LOOKUP_FUNCTION:
        packet_put_number(body, answer->function);
        break;
    case LOOKUP_PROLOGUE:
        packet_put_number(body, prologue->count);
        for (size_t i = 0; i < prologue->count; i++)
            packet_put_number(body, prologue->distances[i]);
        break;
    default:
        put_rule(body, &answer->rule);
    }
}

/* A number that is at most `max`; else it sets `failed`. */
static uint64_t take_up_to(struct bytes *body, uint64_t max)
{
    uint64_t number = packet_number(body);
    if (number <= max)
        return number;
    body->failed = true;
    return 0;
}

static int32_t take_offset(struct bytes *body)
{
    int64_t offset = (int64_t)packet_number(body);
    if (offset == (int32_t)offset)
        return (int32_t)offset;
    body->failed = true;
    return 0;
}

static struct rule_place take_place(struct bytes *body, bool may_be_cfa)
{
    uint64_t number = packet_number(body);
    struct rule_place place = {.register_number = (uint8_t)number};
    if (number >= REGISTERS_MAX && !(may_be_cfa && number == RULE_CFA))
        body->failed = true;
    place.is_in_memory = take_up_to(body, 1);
    place.offset = take_offset(body);
    return place;
}

static struct rule take_rule(struct bytes *body)
{
    /* The reader may not claim that a module could not be read: its parent decides that. */
    struct rule rule = {.kind = (uint8_t)take_up_to(body, RULE_UNREAD - 1)};
    rule.has_frame_pointer = take_up_to(body, 1);
    rule.may_not_be_saved = take_up_to(body, 1);
    rule.may_leave_stack = take_up_to(body, 1);
    rule.is_from_code = take_up_to(body, 1);
    rule.has_no_record = take_up_to(body, 1);
    rule.is_no_call = take_up_to(body, 1);
    rule.caller_is_exact = take_up_to(body, 1);
    rule.is_at_return = take_up_to(body, 1);
    rule.has_caller = take_up_to(body, 1);
    rule.cfa = take_place(body, false);
    rule.cfa_index = (uint8_t)take_up_to(body, REGISTERS_MAX - 1);
    rule.cfa_scale = (uint8_t)take_up_to(body, UINT8_MAX);
    rule.kept = (uint32_t)take_up_to(body, UINT32_MAX);
    rule.cfa_offset = take_offset(body);
    rule.return_address = take_place(body, true);
    rule.frame_pointer = take_place(body, true);
    rule.link_offset = take_offset(body);
    rule.base_pointer_offset = take_offset(body);
    return rule;
}

static struct lookup_prologue take_prologue(struct bytes *body)
{
    struct lookup_prologue prologue = {.count =
                                           (uint32_t)take_up_to(body, PROLOGUE_CANDIDATES_MAX)};
    for (size_t i = 0; i < prologue.count; i++)
        prologue.distances[i] = packet_number(body);
    return prologue;
}

bool lookup_packet_take_answer(struct bytes *body, const struct lookup *lookup,
                               union lookup_answer *ret_answer)
{
    switch (lookup->kind) {
    case LOOKUP_FUNCTION:
        ret_answer->function = take_up_to(body, lookup->address);
        break;
    case LOOKUP_PROLOGUE:
        ret_answer->prologue = take_prologue(body);
        break;
    default:
        ret_answer->rule = take_rule(body);
    }
    return !body->failed && !bytes_left(body);
}

/* ---- By name ---- */

void lookup_packet_put_query(struct buffer *body, uint64_t slot, const struct query *query)
{
    packet_put_number(body, slot);
    packet_put_number(body, query->kind);
    packet_put_number(body, query->address);
    packet_put_number(body, query->type);
    packet_put_text(body, query->name);
}

bool lookup_packet_take_query(struct bytes *body, uint64_t *ret_slot, struct query *ret_query)
{
    *ret_slot = packet_number(body);
    uint64_t kind = take_up_to(body, QUERY_KINDS - 1);
    *ret_query = (struct query){.kind = (enum query_kind)kind, .address = packet_number(body)};
    ret_query->type = (unsigned char)take_up_to(body, UINT8_MAX);
    ret_query->name = packet_text(body);
    bool needs_name = kind == QUERY_SYMBOL || kind == QUERY_SECTION;
    return !body->failed && (ret_query->name || !needs_name);
}

static void put_range(struct buffer *body, const struct function_range *range)
{
    packet_put_number(body, range->start);
    packet_put_number(body, range->end);
}

static struct function_range take_range(struct bytes *body)
{
    uint64_t start = packet_number(body), end = packet_number(body);
    if (start > end)
        body->failed = true;
    return (struct function_range){start, end};
}

static void put_runtime(struct buffer *body, const struct go_runtime *go)
{
    packet_put_number(body, go->minor);
    put_range(body, &go->adding);
    packet_put_number(body, go->idle_count);
    for (size_t i = 0; i < go->idle_count; i++)
        put_range(body, &go->idle[i]);
}

static struct go_runtime take_runtime(struct bytes *body)
{
    struct go_runtime go = {.minor = (unsigned)take_up_to(body, UINT16_MAX)};
    go.adding = take_range(body);
    go.idle_count = take_up_to(body, GO_IDLE_FUNCTIONS_MAX);
    for (size_t i = 0; i < go.idle_count; i++)
        go.idle[i] = take_range(body);
    return go;
}

static void put_function(struct buffer *body, const struct query_function *function)
{
    packet_put_number(body, function->start);
    packet_put_number(body, function->line);
    packet_put_text(body, function->name);
    packet_put_text(body, function->innermost);
    packet_put_text(body, function->file);
}

static void take_name(struct bytes *body, char name[QUERY_TEXT_BYTES])
{
    const char *text = packet_text(body);
    size_t bytes = text ? strlen(text) + 1 : 0;
    if (!bytes || bytes > QUERY_TEXT_BYTES)
        body->failed = true;
    else
        memcpy(name, text, bytes);
}

static void take_function(struct bytes *body, struct query_function *function)
{
    function->start = packet_number(body);
    function->line = (uint32_t)take_up_to(body, UINT32_MAX);
    take_name(body, function->name);
    take_name(body, function->innermost);
    take_name(body, function->file);
}

void lookup_packet_put_found(struct buffer *body, enum query_kind kind,
                             const union query_answer *answer)
{
    switch (kind) {
    case QUERY_NAME:
    case QUERY_GO_FUNCTION:
        put_function(body, &answer->function);
        break;
    case QUERY_GO:
        put_runtime(body, &answer->go);
        break;
    default:
        packet_put_number(body, answer->part.address);
        packet_put_number(body, answer->part.bytes);
    }
}

bool lookup_packet_take_found(struct bytes *body, enum query_kind kind,
                              union query_answer *ret_answer)
{
    switch (kind) {
    case QUERY_NAME:
    case QUERY_GO_FUNCTION:
        take_function(body, &ret_answer->function);
        break;
    case QUERY_GO:
        ret_answer->go = take_runtime(body);
        break;
    default:
        ret_answer->part.address = packet_number(body);
        ret_answer->part.bytes = packet_number(body);
    }
    return !body->failed && !bytes_left(body);
}

/* ---- Generated code ---- */

void lookup_packet_put_source(struct buffer *body, const struct jit_source *source)
{
    packet_put_number(body, source->is_dump);
    packet_put_number(body, source->is_spent);
    put_signed(body, source->offset);
    put_signed(body, source->bytes_read);
    packet_put_number(body, source->bytes_unread);
    packet_put_number(body, source->map.is_in_long_line);
    packet_put_number(body, source->dump.has_header);
    packet_put_number(body, source->dump.is_swapped);
    packet_put_number(body, source->lines_start);
    packet_put_number(body, source->line_count);
}

bool lookup_packet_take_source(struct bytes *body, struct jit_source *source)
{
    source->is_dump = take_up_to(body, 1);
    source->is_spent = take_up_to(body, 1);
    source->offset = (off_t)take_up_to(body, INT64_MAX);
    source->bytes_read = (off_t)take_up_to(body, INT64_MAX);
    source->bytes_unread = packet_number(body);
    source->map.is_in_long_line = take_up_to(body, 1);
    source->dump.has_header = take_up_to(body, 1);
    source->dump.is_swapped = take_up_to(body, 1);
    source->lines_start = packet_number(body);
    source->line_count = (uint32_t)take_up_to(body, UINT32_MAX);
    return !body->failed;
}

void lookup_packet_put_reading(struct buffer *body, const struct jit_reading *reading)
{
    lookup_packet_put_source(body, &reading->source);
    packet_put_number(body, reading->is_at_end);
    packet_put_number(body, reading->cpu_ns);
    buffer_write(body, reading->announced.bytes, reading->announced.length);
}

bool lookup_packet_take_reading(struct bytes *body, const struct jit_source *source,
                                struct jit_reading *reading)
{
    reading->source = *source;
    bool ok = lookup_packet_take_source(body, &reading->source);
    reading->source.is_dump = source->is_dump;
    reading->is_at_end = take_up_to(body, 1);
    reading->cpu_ns = packet_number(body);
    reading->announced.length = 0;
    reading->announced.error = 0;
    buffer_write(&reading->announced, body->at, bytes_left(body));
    return ok && !body->failed && !reading->announced.error;
}
