/* SPDX-License-Identifier: MIT */
/*
 * What a decoder of MTB needs to know of the unit: where in a dump of its RAM the records are, and
 * in which order. Pure functions, thread-safe.
 *
 * Source: Arm DDI0486 (CoreSight MTB-M0+), "Register descriptions".
 */
#ifndef TL_MTB_CONFIG_H
#define TL_MTB_CONFIG_H

#include "base/err.h"
#include "setup/setup.h"

#define TL_MTB_RECORD  8u                   /* bytes */
#define TL_MTB_BUF_MAX ((uint32_t)16 << 20) /* bytes of a buffer whose order registers give */

struct tl_mtb_config {
    bool placed; /* POSITION is known: start, size, head and wrapped are valid. Else the dump is
                    records in the order of time, among memory that was never written */
    bool
        wrapped; /* the oldest record is at `head`; else it is at the start, and `head` ends them */
    int64_t start;  /* of the buffer, as offset in the dump; it may begin in front of the dump */
    uint32_t size;  /* of the buffer, in bytes */
    uint32_t head;  /* of the next record, as offset in the buffer */
    uint32_t table; /* address of the vector table */
    bool stopped;   /* the processor's PC when it was halted is known: */
    uint32_t pc;
    bool too_large;
    uint64_t since; /* time for looking up memory, see struct tl_source */
};

/* Fill `out` from a source's registers. Absent registers get the documented defaults
 * (docs/setup.md), so this never fails. */
void tl_mtb_config_init(struct tl_mtb_config *out, const struct tl_source *source);

/* TL_UNSUPPORTED, with the reason in `fail`: the buffer is larger than TL_MTB_BUF_MAX. */
int tl_mtb_config_check(const struct tl_mtb_config *config, struct tl_fail *fail);

#endif
