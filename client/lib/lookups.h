/* SPDX-License-Identifier: MIT */
/*
 * Look-ups that are given both as structs and as JSON. Each stores the answer's message in
 * `*reply`, which the caller frees with protobuf_c_message_free_unpacked().
 */
#ifndef TL_CLIENT_LOOKUPS_H
#define TL_CLIENT_LOOKUPS_H

#include "ask.h"
#include "tracelake/v1/lookups.pb-c.h"

TL_MUST_USE int tl_lookup_call(struct tracelake *lake, const char *trace, const char *stream,
                               uint64_t insn, uint32_t depth, Tracelake__V1__CallReply **reply,
                               struct tracelake_error *error);
TL_MUST_USE int tl_lookup_profile(struct tracelake *lake, const struct tracelake_range *range,
                                  enum tracelake_weight weight, bool callers, uint32_t nodes,
                                  Tracelake__V1__ProfileReply **reply,
                                  struct tracelake_error *error);
TL_MUST_USE int tl_lookup_slices(struct tracelake *lake, const struct tracelake_range *range,
                                 uint32_t columns, Tracelake__V1__SlicesReply **reply,
                                 struct tracelake_error *error);
TL_MUST_USE int tl_lookup_counters(struct tracelake *lake, const struct tracelake_range *range,
                                   uint32_t columns, Tracelake__V1__CountersReply **reply,
                                   struct tracelake_error *error);
TL_MUST_USE int tl_lookup_log(struct tracelake *lake, const struct tracelake_range *range,
                              uint32_t limit, bool last, Tracelake__V1__LogReply **reply,
                              struct tracelake_error *error);

#endif
