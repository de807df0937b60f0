/* SPDX-License-Identifier: MIT */
/*
 * Following a program as the messages of N-Trace count it: by halfwords (I-CNT), and by the
 * outcomes of conditional branches (HIST). Not thread-safe.
 *
 * Source: RISC-V N-Trace 1.0, chapters 6 and 9.
 */
#ifndef TL_RISCV_NEXUS_WALK_H
#define TL_RISCV_NEXUS_WALK_H

#include "flow/walker.h"
#include "riscv/nexus_config.h"
#include "riscv/returns.h"

/* Halfwords that may be told in advance by ResourceFull; more is damage. */
#define TL_NEXUS_AHEAD_MAX (INT64_C(1) << 40)

/* Outcomes of branches: the newest in bit 0, so read from bit n - 1 down. */
struct tl_nexus_outcomes {
    uint64_t bits;
    unsigned n;
};

/* What the message says about the last instruction it counts. */
enum tl_nexus_last {
    TL_NEXUS_LAST_ANY,     /* nothing; a branch is not taken, unless an outcome says so */
    TL_NEXUS_LAST_TAKEN,   /* a taken branch */
    TL_NEXUS_LAST_ADDRESS, /* an indirect jump, whose target is told */
    TL_NEXUS_LAST_PLACE    /* the address behind it is told, whatever it is */
};

struct tl_nexus_count {
    int64_t halfwords; /* to execute; ignored if `by_outcomes` */
    bool by_outcomes;  /* execute up to the branch with the last outcome */
    struct tl_nexus_outcomes outcomes;
    enum tl_nexus_last last;
    uint64_t place;  /* LAST_PLACE: the address */
    bool is_history; /* every branch has an outcome (HTM); otherwise those without are not taken */
};

struct tl_nexus_walk {
    struct tl_nexus_config config;
    struct tl_walker walker;
    struct tl_returns returns;
    /* Of the last tl_nexus_count(): halfwords executed, and whether the last branch had no outcome
     * and LAST_PLACE decided */
    int64_t executed;
    bool guessed;
    bool tableless;  /* … and whether it met a CM.JT without its table */
    int rc;          /* < 0: cancelled (base/cancel.h), or the sink failed; the walk has stopped */
    uint32_t passed; /* blocks since the last look for that */
    struct tl_item_batch *unsaid; /* owned; items of tl_nexus_try(); NULL: none yet */
};

/*
 * Execute what a message counts. Returns false if that cannot be: the program cannot be followed,
 * or does not fit the message, which `*wrong` tells; it was reported as a gap. Or `walk->rc` is
 * set. `*count` is used up.
 */
bool tl_nexus_count(struct tl_nexus_walk *walk, struct tl_nexus_count *count, uint64_t offset,
                    bool *wrong);

/*
 * The same without telling anything, to find out whether the program fits the message. Returns true
 * if it does; the walk is then behind it. `*before` is the walk's place in front of it, for
 * tl_nexus_go_back().
 */
struct tl_nexus_place {
    struct tl_walker walker;
    struct tl_returns returns;
};
bool tl_nexus_try(struct tl_nexus_walk *walk, const struct tl_nexus_count *count, uint64_t offset,
                  struct tl_nexus_place *before);
void tl_nexus_go_back(struct tl_nexus_walk *walk, const struct tl_nexus_place *to);

void tl_nexus_walk_fini(struct tl_nexus_walk *walk);

#endif
