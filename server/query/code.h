/* SPDX-License-Identifier: MIT */
/* Shared by code profiles and coverage: requests, and counts of their sources. */
#ifndef TL_QUERY_CODE_H
#define TL_QUERY_CODE_H

#include "lake/lakeint.h"
#include "lake_analysis.h"
#include "query/query.h"
#include "shard/codecount.h"

/* The i-th source of the request; NULL after the last. */
const struct tl_code_source *tl_code_source(const struct tl_code_request *request, size_t i);
/*
 * Return the result `r` of the i-th source; if there are several, adds the trace's name to an error
 * in `fail`.
 */
int tl_code_result(const struct tl_code_request *request, size_t i, int r, struct tl_fail *fail);
/* Add the counts of a source, for all programs, and with `samples` also those that samples tell;
 * return the counted generation, which the caller releases, also after an error. */
TL_MUST_USE int tl_code_count(struct tl_codecount *c, struct tl_lake *lake,
                              const struct tl_code_request *request,
                              const struct tl_code_source *source, bool samples,
                              struct tl_gen **gen, struct tl_fail *fail);
/* Does the request include this program? */
bool tl_code_wants(const struct tl_code_request *request, const struct tl_code_program *program);
/* The state while a program runs. */
struct tl_flow_now tl_code_now(const struct tl_code_program *program);

#endif
