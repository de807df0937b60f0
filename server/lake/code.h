/* SPDX-License-Identifier: MIT */
/* What profiles of code and coverage have in common: requests, and counts of their sources. */
#ifndef TL_LAKE_CODE_H
#define TL_LAKE_CODE_H

#include "lake/lakeint.h"
#include "lake/query.h"
#include "store/codecount.h"

/* The request's traces, one after another; NULL behind the last. */
const struct tl_code_source *tl_code_source(const struct tl_code_request *request, size_t i);
/* The result `r` of the i-th source; an error of one among several names its trace in `fail`. */
int tl_code_result(const struct tl_code_request *request, size_t i, int r, struct tl_fail *fail);
/* Add the counts of a source, of all programs, and get the generation that was counted; the caller
 * releases it, also after an error. */
TL_MUST_USE int tl_code_count(struct tl_codecount *c, struct tl_lake *lake,
                              const struct tl_code_request *request,
                              const struct tl_code_source *source, struct tl_gen **gen,
                              struct tl_fail *fail);
/* Does what a program ran count? */
bool tl_code_wants(const struct tl_code_request *request, const struct tl_code_program *program);
/* What holds while it runs. */
struct tl_flow_now tl_code_now(const struct tl_code_program *program);

#endif
