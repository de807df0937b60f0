/* SPDX-License-Identifier: MIT */
/*
 * Packets of ETMv3 and PTM to flow items.
 *
 * What both formats have is here and in flow.c: state, places, time; flow_etm.c and flow_ptm.c
 * follow the program by outcomes, of each instruction (ETMv3) or of each waypoint (PTM). Any
 * sequence of packets is accepted; the only failures are those of the sink and out of memory. Not
 * thread-safe.
 *
 * Source: Arm IHI0014Q chapter 7 (ETMv3); IHI0035B chapters 3 and 4 (PFT).
 */
#ifndef TL_ETM3_FLOW_H
#define TL_ETM3_FLOW_H

#include "etm3/packet.h"
#include "flow/walker.h"
#include "isa/access.h"

#define TL_ETM3_BEHIND 40u /* packets that wait behind an instruction that may be taken back */

/* A packet that says something beside the flow: of a time, of cycles, of identifiers. */
struct tl_etm3_aside {
    uint8_t type; /* enum tl_etm3_type */
    uint8_t data; /* DATA: as in the packet, also the following ones */
    uint8_t tag, size;
    bool has_address, has_value;
    uint32_t address;
    uint64_t value;
    uint64_t offset;
};

/* What told the address of the next instruction, if anything did since the last one. */
enum tl_etm3_told {
    TL_ETM3_UNTOLD,
    TL_ETM3_TOLD_FIRST, /* a branch, or an I-sync that begins: another branch may follow */
    TL_ETM3_TOLD_ON     /* the same where the program was being followed */
};

struct tl_etm3_flow {
    struct tl_etm3_config config;
    struct tl_walker walker;
    struct tl_item_batch *out; /* borrowed */
    bool begun;                /* there was an I-sync since synchronisation */
    bool returning;            /* ETMv3: an exception exit was sent, and no branch since */
    uint8_t told;              /* ETMv3: enum tl_etm3_told */
    /*
     * ETMv3: instructions from the walker's place on that were executed and are not reported yet,
     * all of one block. The last of them may be taken back; `passed` is its outcome. What was sent
     * behind it waits with it.
     */
    uint32_t held;
    bool passed;
    bool half; /* the first half of the next instruction was executed: config.halves */
    uint64_t held_offset;
    uint64_t cycles; /* ETMv3: cycles since the last outcome */
    /* Of the load or store that was reported last. `apart`: other instructions were since. */
    struct tl_access access;
    bool apart;
    uint32_t next_address; /* of the next transfer of that instruction, */
    bool has_next;         /* if it is known */
    uint32_t pending[4];   /* addresses of accesses whose values follow, by tag; */
    uint8_t is_pending;    /* bit set of those that are known */
    uint8_t n_behind;
    struct tl_etm3_aside behind[TL_ETM3_BEHIND];
};

/* `image` may be NULL; it, `out` and what it delivers to are borrowed. Returns TL_NOMEM. */
TL_MUST_USE int tl_etm3_flow_init(struct tl_etm3_flow *flow, const struct tl_etm3_config *config,
                                  const struct tl_image *image, struct tl_item_batch *out);
void tl_etm3_flow_fini(struct tl_etm3_flow *flow);

/* As new, but decoded blocks are kept. */
void tl_etm3_flow_reset(struct tl_etm3_flow *flow);

/* Save or load all but the items, right after they were delivered. */
void tl_etm3_flow_state(struct tl_etm3_flow *flow, struct tl_state *state);

/* Synchronisation was lost at `offset`, which has been reported: what follows is told behind an
 * I-sync. */
void tl_etm3_flow_lose(struct tl_etm3_flow *flow);

void tl_etm3_flow_packet(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);

/* The end of the trace: what waits is reported. `in_branch`: it is within a branch packet, which
 * might have taken the last instruction back. */
void tl_etm3_flow_finish(struct tl_etm3_flow *flow, bool in_branch, uint64_t offset);

/* ---- parts of the implementation ------------------------------------------------------------- */

void tl_etm3_follow_etm(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);
void tl_etm3_follow_ptm(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);
/* ETMv3: the instruction traced last was not completed. */
void tl_etm3_take_back(struct tl_etm3_flow *flow);

/* Report the instructions that are held, and what waits behind them. */
void tl_etm3_release(struct tl_etm3_flow *flow, uint64_t offset);
/* Report it, or keep it behind the instruction that may be taken back. */
void tl_etm3_tell_aside(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);
void tl_etm3_tell_cycles(struct tl_etm3_flow *flow, uint64_t cycles, uint64_t offset);

/* Mode and address of a packet: execution goes on there. */
void tl_etm3_go_to(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);
/* An exception was taken where the walk stands: report it. Its handler's address must follow. */
void tl_etm3_tell_exception(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);
/* An I-sync: a new beginning, or a confirmation of the place. */
void tl_etm3_start(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet);
static inline bool tl_etm3_traces_data(const struct tl_etm3_config *config)
{
    return config->data_values || config->data_addresses;
}
/* The first `n` instructions of `block` are about to be reported: note the last load or store among
 * them. Returns how many they are up to it, 0: there is none. */
uint32_t tl_etm3_note_access(struct tl_etm3_flow *flow, const struct tl_block *block, uint32_t n);
/* Set the address of an access: as sent, or behind the one before of the same instruction. */
void tl_etm3_find_address(struct tl_etm3_flow *flow, const struct tl_etm3_packet *packet,
                          struct tl_etm3_aside *access);
/* Report what is held up to its last load or store, and the accesses that wait behind it. Returns
 * the block of the rest; NULL: out of memory. */
struct tl_block *tl_etm3_place_data(struct tl_etm3_flow *flow, struct tl_block *block,
                                    uint64_t offset);
/* An access to memory, of the load or store that was reported last. */
void tl_etm3_tell_data(struct tl_etm3_flow *flow, const struct tl_etm3_aside *access);
/* Execute the instruction at the walk's place. */
void tl_etm3_execute_one(struct tl_etm3_flow *flow, uint64_t offset);

#endif
