/* SPDX-License-Identifier: MIT */
/* Methods of tracelake.v1.Ranges that reply with JSON, as over HTTP. */
#ifndef TL_RPC_RANGEJSON_H
#define TL_RPC_RANGEJSON_H

#include "rpc/rpcint.h"

int tl_run_stats(struct tl_call *call, const void *message);
int tl_run_insns(struct tl_call *call, const void *message);
int tl_run_slices(struct tl_call *call, const void *message);
int tl_run_source(struct tl_call *call, const void *message);
int tl_run_log(struct tl_call *call, const void *message);
int tl_run_states(struct tl_call *call, const void *message);
int tl_run_counters(struct tl_call *call, const void *message);
int tl_run_call(struct tl_call *call, const void *message);
int tl_run_profile(struct tl_call *call, const void *message);
int tl_run_compare(struct tl_call *call, const void *message);
/* timing_doors.c */
int tl_run_functions(struct tl_call *call, const void *message);
int tl_run_calls(struct tl_call *call, const void *message);
int tl_run_exceptions(struct tl_call *call, const void *message);
int tl_run_gaps(struct tl_call *call, const void *message);
int tl_run_code(struct tl_call *call, const void *message);      /* code.c */
int tl_run_coverage(struct tl_call *call, const void *message);  /* code.c */
int tl_run_simpoints(struct tl_call *call, const void *message); /* regions.c */
int tl_run_sql(struct tl_call *call, const void *message);       /* sql.c */

/* A named region: instructions [from, to) of a stream. */
struct tl_region_place {
    char stream[32];
    uint64_t from, to;
};
/* Look up a region stored as a label of its trace, "region.NAME=STREAM FROM TO WARM-UP …"; `from`
 * is the begin of the warm-up. TL_NOTFOUND. */
TL_MUST_USE int tl_region_named(struct tl_lake *lake, const char *trace, const char *name,
                                struct tl_region_place *out, struct tl_fail *fail);

#endif
