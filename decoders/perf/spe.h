/* SPDX-License-Identifier: MIT */
/*
 * Records of the Arm Statistical Profiling Extension: one operation of a processor, chosen by
 * chance, with what happened to it. Pure functions; thread-safe.
 *
 * Source: Arm DDI0487, chapter "The Statistical Profiling Extension sample record specification".
 */
#ifndef TL_PERF_SPE_H
#define TL_PERF_SPE_H

#include "base/bytes.h"

#include <stdbool.h>

enum tl_spe_class { TL_SPE_OTHER, TL_SPE_MEMORY, TL_SPE_BRANCH }; /* of operations */

enum tl_spe_event { /* bit numbers in `events` */
                    TL_SPE_RETIRED = 1,
                    TL_SPE_NOT_TAKEN = 6,
                    TL_SPE_MISPREDICTED = 7
};

enum tl_spe_address {
    TL_SPE_PC,
    TL_SPE_TARGET,
    TL_SPE_DATA,
    TL_SPE_PHYSICAL,
    TL_SPE_BACK,
    TL_SPE_ADDRESSES
};
enum tl_spe_counter { TL_SPE_TOTAL, TL_SPE_ISSUE, TL_SPE_TRANSLATION, TL_SPE_COUNTERS };

struct tl_spe_record {
    uint8_t addresses; /* bits 1 << enum tl_spe_address that are there */
    uint8_t counters;  /* bits 1 << enum tl_spe_counter that are there */
    bool has_class, has_events, has_source, has_context, has_time;
    uint8_t class;                      /* enum tl_spe_class */
    uint8_t op;                         /* the operation's type packet */
    uint64_t address[TL_SPE_ADDRESSES]; /* BACK: target of the taken branch before it */
    uint16_t counter[TL_SPE_COUNTERS];  /* cycles */
    uint64_t events, source;
    uint32_t context; /* CONTEXTIDR_EL1, else _EL2 */
    uint64_t time;    /* ticks of the generic timer */
};

/*
 * Parse the record at the beginning of `in`; `at`: offset of its first byte in the buffer, by which
 * it may be aligned. Returns the bytes it takes, with padding before it; 0: it does not end there.
 * `*bad` is increased by the bytes that are no packets.
 */
size_t tl_spe_parse(struct tl_bytes in, uint64_t at, struct tl_spe_record *out, uint64_t *bad);

/* Was the operation executed, not only tried? Unless the record says that it was not. */
static inline bool tl_spe_is_retired(const struct tl_spe_record *r)
{
    return !r->has_events || r->events >> TL_SPE_RETIRED & 1;
}

/* Is it a branch that was taken? */
static inline bool tl_spe_is_taken(const struct tl_spe_record *r)
{
    return r->has_class && r->class == TL_SPE_BRANCH && r->addresses & 1 << TL_SPE_TARGET &&
           !(r->has_events && r->events >> TL_SPE_NOT_TAKEN & 1);
}

#define TL_SPE_TEXT 160 /* bytes of a text, with its NUL */
/* Write what happened, as "branch conditional mispredicted cycles 18"; returns `out`. */
char *tl_spe_text(const struct tl_spe_record *record, char out[static TL_SPE_TEXT]);

#endif
