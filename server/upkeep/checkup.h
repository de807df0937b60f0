/* SPDX-License-Identifier: MIT */
/*
 * A check of stored bytes: what it has found, and its parts. What it finds are lines of its report.
 * One thread at a time.
 */
#ifndef TL_UPKEEP_CHECKUP_H
#define TL_UPKEEP_CHECKUP_H

#include "lake/lakeint.h"

struct tl_checkup {
    struct tl_lake *lake;
    struct tl_trace *trace;
    struct tl_buf *report;
    struct tl_fail *fail;
    int findings;
    int raw_lost;       /* lost spans of raw bytes */
    struct tl_buf lost; /* these spans: pairs of uint64_t, the offset and the end */
    int raw_heads;      /* damage of raw objects that loses no bytes */
    int shards;         /* damaged, and not repaired */
    int images;         /* damaged or missing */
    bool raw_removed;
    bool repair;
    struct tl_packer *packer; /* created when needed */
};

/* Add a line to the report, without its line end. TL_NOMEM. */
TL_MUST_USE int tl_checkup_line(struct tl_checkup *c, const char *format, ...) TL_PRINTF(2, 3);
/* Check a lane's stored shards, with their rows in the catalog; mend what can be, if it repairs.
 * Findings are counted; an error is one of the store. */
TL_MUST_USE int tl_check_lane(struct tl_checkup *c, struct tl_gen *gen, struct tl_lane *lane);

#endif
