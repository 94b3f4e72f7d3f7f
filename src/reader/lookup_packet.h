/* The packets for lookups while sampling and for generated code: questions and answers.
 *
 * A malicious file may have taken over the reader that wrote an answer. So each field is checked to
 * be something that a rule can say: a false answer can then mislead unwinding only in ways that the
 * file's own tables could. */
#ifndef FGPROF_READER_LOOKUP_PACKET_H
#define FGPROF_READER_LOOKUP_PACKET_H

#include "base/packet.h"
#include "reader/packet_kind.h"
#include "unwind/lookup.h"

/* `slot` is where the reader has the module. */
void lookup_packet_put_question(struct buffer *body, uint64_t slot, const struct lookup *lookup);
/* Returns false if it is none. */
bool lookup_packet_take_question(struct bytes *body, uint64_t *ret_slot, struct lookup *ret_lookup);

void lookup_packet_put_answer(struct buffer *body, enum lookup_kind kind,
                              const union lookup_answer *answer);
/* Returns false if it can't be one. */
bool lookup_packet_take_answer(struct bytes *body, const struct lookup *lookup,
                               union lookup_answer *ret_answer);

/* The same of elf/query.h; the name stays in `body`. */
void lookup_packet_put_query(struct buffer *body, uint64_t slot, const struct query *query);
bool lookup_packet_take_query(struct bytes *body, uint64_t *ret_slot, struct query *ret_query);
void lookup_packet_put_found(struct buffer *body, enum query_kind kind,
                             const union query_answer *answer);
bool lookup_packet_take_found(struct bytes *body, enum query_kind kind,
                              union query_answer *ret_answer);

/* How far a perf map or a jitdump was read. */
void lookup_packet_put_source(struct buffer *body, const struct jit_source *source);
/* Leaves its file as it is. Returns false if it can't be one. */
bool lookup_packet_take_source(struct bytes *body, struct jit_source *source);

/* What was read of it. */
void lookup_packet_put_reading(struct buffer *body, const struct jit_reading *reading);
/* Returns false if it can't be that. */
bool lookup_packet_take_reading(struct bytes *body, const struct jit_source *source,
                                struct jit_reading *reading);

#endif
