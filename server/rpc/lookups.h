/* SPDX-License-Identifier: MIT */
/* Answers of tracelake.v1.Lookups, and those about time of Ranges, as messages. */
#ifndef TL_RPC_LOOKUPS_H
#define TL_RPC_LOOKUPS_H

#include "lake_analysis.h"
#include "lake_images.h"
#include "rpc/reply.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/images.pb-c.h"
#include "tracelake/v1/lookups.pb-c.h"

tl_answer tl_answer_stats, tl_answer_insns, tl_answer_source, tl_answer_regions; /* lookup_code.c */
tl_answer tl_answer_find, tl_answer_locate, tl_answer_moments, tl_answer_names;  /* …_find.c */
tl_answer tl_answer_slices, tl_answer_log, tl_answer_states, tl_answer_counters, /* …_lanes.c */
    tl_answer_hits;
tl_answer tl_answer_call, tl_answer_profile, tl_answer_compare; /* …_calls.c */
tl_answer tl_answer_images;                                     /* images_service.c */
tl_answer tl_answer_notes;                                      /* notes.c */
tl_answer tl_answer_functions, tl_answer_calls, tl_answer_exceptions, tl_answer_gaps,
    tl_answer_extremes; /* timing.c */

#define TL_TIMING_ROWS 20000 /* maximum number in an answer about time: it is one message */

/* Fill an empty message from a row of the disassembly, whose texts are copied. */
tl_reply_fill tl_fill_insn;
#define TL_SIMPOINTS 30 /* regions, unless asked for more or fewer */
/* Answer with a message SimPoints. Errors as tl_lake_simpoints(). */
TL_MUST_USE int tl_answer_simpoints(struct tl_lake *lake,
                                    const struct tl_simpoints_request *request,
                                    struct tl_reply *reply, struct tl_fail *fail);

/* The message borrows the row's texts, which are made valid UTF-8. */
void tl_fill_image(struct tl_image_row *row, Tracelake__V1__Image *out);
/* Borrows the message's texts. */
void tl_binding_of(const Tracelake__V1__BindImageRequest *r, struct tl_lake_binding *out);

void tl_log_of(const Tracelake__V1__LogRequest *r, struct tl_soft_request *out);

/* The end of a range in a request: 0 is the end of the stream. */
static inline uint64_t tl_end_of(uint64_t to)
{
    return to ? to : UINT64_MAX;
}
/* TL_USAGE: a value that an enum of a request does not have. `n` is their number. */
TL_MUST_USE int tl_check_enum(const char *what, unsigned value, unsigned n, struct tl_fail *fail);

#endif
