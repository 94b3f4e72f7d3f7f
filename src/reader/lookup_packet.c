#include "reader/lookup_packet.h"
#include "base/array.h"

/* ---- For unwinding ---- */

/* Which kinds there are is checked apart. */
static const struct packet_field lookup_fields[] = {
    PACKET_FIELD(struct lookup, kind, UINT32_MAX),
    PACKET_FIELD(struct lookup, address, UINT64_MAX),
    PACKET_FIELD(struct lookup, function, UINT64_MAX),
};

void lookup_packet_put_question(struct buffer *body, uint64_t slot, const struct lookup *lookup)
{
    packet_put_number(body, slot);
    packet_put_fields(body, lookup_fields, COUNT_OF(lookup_fields), lookup);
}

bool lookup_packet_take_question(struct bytes *body, uint64_t *ret_slot, struct lookup *ret_lookup)
{
    *ret_slot = packet_number(body);
    packet_take_fields(body, lookup_fields, COUNT_OF(lookup_fields), ret_lookup);
    return !body->failed && ret_lookup->kind < LOOKUP_KINDS;
}

/* The reader may not claim that a module could not be read: its parent decides that. An offset may
 * be any number of 32 bits. */
static const struct packet_field rule_fields[] = {
    PACKET_FIELD(struct rule, kind, RULE_UNREAD - 1),
    PACKET_FIELD(struct rule, has_frame_pointer, true),
    PACKET_FIELD(struct rule, may_not_be_saved, true),
    PACKET_FIELD(struct rule, may_leave_stack, true),
    PACKET_FIELD(struct rule, is_from_code, true),
    PACKET_FIELD(struct rule, has_no_record, true),
    PACKET_FIELD(struct rule, is_no_call, true),
    PACKET_FIELD(struct rule, caller_is_exact, true),
    PACKET_FIELD(struct rule, is_at_return, true),
    PACKET_FIELD(struct rule, has_caller, true),
    PACKET_FIELD(struct rule, cfa.register_number, REGISTERS_MAX - 1),
    PACKET_FIELD(struct rule, cfa.is_in_memory, true),
    PACKET_FIELD(struct rule, cfa.offset, UINT32_MAX),
    PACKET_FIELD(struct rule, cfa_index, REGISTERS_MAX - 1),
    PACKET_FIELD(struct rule, cfa_scale, UINT8_MAX),
    PACKET_FIELD(struct rule, kept, UINT32_MAX),
    PACKET_FIELD(struct rule, cfa_offset, UINT32_MAX),
    PACKET_FIELD(struct rule, return_address.register_number, RULE_CFA),
    PACKET_FIELD(struct rule, return_address.is_in_memory, true),
    PACKET_FIELD(struct rule, return_address.offset, UINT32_MAX),
    PACKET_FIELD(struct rule, frame_pointer.register_number, RULE_CFA),
    PACKET_FIELD(struct rule, frame_pointer.is_in_memory, true),
    PACKET_FIELD(struct rule, frame_pointer.offset, UINT32_MAX),
    PACKET_FIELD(struct rule, link_offset, UINT32_MAX),
    PACKET_FIELD(struct rule, base_pointer_offset, UINT32_MAX),
};

static bool has_base(const struct rule_place *place)
{
    return place->register_number < REGISTERS_MAX || place->register_number == RULE_CFA;
}

static bool take_rule(struct bytes *body, struct rule *ret_rule)
{
    *ret_rule = (struct rule){0};
    packet_take_fields(body, rule_fields, COUNT_OF(rule_fields), ret_rule);
    return has_base(&ret_rule->return_address) && has_base(&ret_rule->frame_pointer);
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
        packet_put_fields(body, rule_fields, COUNT_OF(rule_fields), &answer->rule);
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
    bool ok = true;
    switch (lookup->kind) {
    case LOOKUP_FUNCTION:
        ret_answer->function = take_up_to(body, lookup->address);
        break;
    case LOOKUP_PROLOGUE:
        ret_answer->prologue = take_prologue(body);
        break;
    default:
        ok = take_rule(body, &ret_answer->rule);
    }
    return ok && !body->failed && !bytes_left(body);
}

/* ---- By name ---- */

static const struct packet_field query_fields[] = {
    PACKET_FIELD(struct query, kind, QUERY_KINDS - 1),
    PACKET_FIELD(struct query, address, UINT64_MAX),
    PACKET_FIELD(struct query, type, UINT8_MAX),
};

void lookup_packet_put_query(struct buffer *body, uint64_t slot, const struct query *query)
{
    packet_put_number(body, slot);
    packet_put_fields(body, query_fields, COUNT_OF(query_fields), query);
    packet_put_text(body, query->name);
}

bool lookup_packet_take_query(struct bytes *body, uint64_t *ret_slot, struct query *ret_query)
{
    *ret_slot = packet_number(body);
    packet_take_fields(body, query_fields, COUNT_OF(query_fields), ret_query);
    ret_query->name = packet_text(body);
    bool needs_name = ret_query->kind == QUERY_SYMBOL || ret_query->kind == QUERY_SECTION;
    return !body->failed && (ret_query->name || !needs_name);
}

static const struct packet_field range_fields[] = {
    PACKET_FIELD(struct function_range, start, UINT64_MAX),
    PACKET_FIELD(struct function_range, end, UINT64_MAX),
};

static const struct packet_field runtime_fields[] = {
    PACKET_FIELD(struct go_runtime, minor, UINT16_MAX),
    PACKET_FIELD(struct go_runtime, adding.start, UINT64_MAX),
    PACKET_FIELD(struct go_runtime, adding.end, UINT64_MAX),
    PACKET_FIELD(struct go_runtime, idle_count, GO_IDLE_FUNCTIONS_MAX),
};

static void put_runtime(struct buffer *body, const struct go_runtime *go)
{
    packet_put_fields(body, runtime_fields, COUNT_OF(runtime_fields), go);
    for (size_t i = 0; i < go->idle_count; i++)
        packet_put_fields(body, range_fields, COUNT_OF(range_fields), &go->idle[i]);
}

static bool take_runtime(struct bytes *body, struct go_runtime *ret_go)
{
    packet_take_fields(body, runtime_fields, COUNT_OF(runtime_fields), ret_go);
    bool ok = ret_go->adding.start <= ret_go->adding.end;
    for (size_t i = 0; i < ret_go->idle_count; i++) {
        packet_take_fields(body, range_fields, COUNT_OF(range_fields), &ret_go->idle[i]);
        ok = ok && ret_go->idle[i].start <= ret_go->idle[i].end;
    }
    return ok;
}

static const struct packet_field function_fields[] = {
    PACKET_FIELD(struct query_function, start, UINT64_MAX),
    PACKET_FIELD(struct query_function, line, UINT32_MAX),
};

static void put_function(struct buffer *body, const struct query_function *function)
{
    packet_put_fields(body, function_fields, COUNT_OF(function_fields), function);
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
    packet_take_fields(body, function_fields, COUNT_OF(function_fields), function);
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
    bool ok = true;
    switch (kind) {
    case QUERY_NAME:
    case QUERY_GO_FUNCTION:
        take_function(body, &ret_answer->function);
        break;
    case QUERY_GO:
        ok = take_runtime(body, &ret_answer->go);
        break;
    default:
        ret_answer->part.address = packet_number(body);
        ret_answer->part.bytes = packet_number(body);
    }
    return ok && !body->failed && !bytes_left(body);
}

/* ---- Generated code ---- */

static const struct packet_field source_fields[] = {
    PACKET_FIELD(struct jit_source, is_dump, true),
    PACKET_FIELD(struct jit_source, is_spent, true),
    PACKET_FIELD(struct jit_source, offset, INT64_MAX),
    PACKET_FIELD(struct jit_source, bytes_read, INT64_MAX),
    PACKET_FIELD(struct jit_source, bytes_unread, UINT64_MAX),
    PACKET_FIELD(struct jit_source, map.is_in_long_line, true),
    PACKET_FIELD(struct jit_source, dump.has_header, true),
    PACKET_FIELD(struct jit_source, dump.is_swapped, true),
    PACKET_FIELD(struct jit_source, lines_start, UINT64_MAX),
    PACKET_FIELD(struct jit_source, line_count, UINT32_MAX),
};

void lookup_packet_put_source(struct buffer *body, const struct jit_source *source)
{
    packet_put_fields(body, source_fields, COUNT_OF(source_fields), source);
}

bool lookup_packet_take_source(struct bytes *body, struct jit_source *source)
{
    packet_take_fields(body, source_fields, COUNT_OF(source_fields), source);
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
