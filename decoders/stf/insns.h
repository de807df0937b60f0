/* SPDX-License-Identifier: MIT */
/*
 * Instructions of an STF stream: address, encoding, and on demand the rest of their group of
 * records (memory accesses, registers, events, page walks).
 *
 * Groups are only decoded on request, which makes this fast. Not thread-safe.
 */
#ifndef TL_STF_INSNS_H
#define TL_STF_INSNS_H

#include "stf/group.h"
#include "stf/reader.h"

TL_C_BEGIN

enum tl_stf_insn_flag {
    TL_STF_TAKEN = 1,   /* an INST_PC_TARGET or EVENT_PC_TARGET: the flow continues elsewhere */
    TL_STF_FORCED = 2,  /* a FORCE_PC: does not follow from the previous instruction */
    TL_STF_MEMORY = 4,  /* has memory accesses (by the core or a bus master) */
    TL_STF_EVENTS = 8,  /* has EVENT records, or an EVENT_PC_TARGET */
    TL_STF_OTHERS = 16, /* has registers, page walks, micro-ops, comments, … */
    /* The group was longer than TL_STF_GROUP_MAX: its first records are missing. */
    TL_STF_HEADLESS = 32
};

#define TL_STF_GROUP_MAX    (UINT32_C(4) << 20) /* maximum bytes kept of a group */
#define TL_STF_MODE_UNKNOWN 0xff

struct tl_stf_insn {
    uint64_t pc;
    const uint8_t *group; /* its records, the closing one last; borrowed until the next call */
    uint32_t group_size;  /* bytes */
    uint32_t opcode;
    uint8_t size;  /* 2 or 4: bytes of the closing record's opcode */
    uint8_t flags; /* enum tl_stf_insn_flag */
    uint8_t mode;  /* 0 U, 1 S, 2 H, 3 M according to the last MODE_CHANGE before it, or unknown */
    uint8_t shape; /* private: shape of its group (stf/group.h) */
};

/* State common to all instructions of a batch. */
struct tl_stf_state {
    uint32_t tgid, tid, asid;
    bool has_process; /* there was a PROCESS_ID_EXT */
    uint16_t iem;
};

struct tl_stf_insns;

TL_MUST_USE int tl_stf_insns_new(struct tl_stf_insns **out);
TL_MUST_USE int tl_stf_insns_open(struct tl_stf_insns **out, const struct tl_stf_source *source);
void tl_stf_insns_free(struct tl_stf_insns *insns);
/* As tl_stf_reader_push() and tl_stf_reader_finish(). */
void tl_stf_insns_push(struct tl_stf_insns *insns, struct tl_bytes bytes);
void tl_stf_insns_finish(struct tl_stf_insns *insns);

/*
 * Read the next instructions, at most `cap`. Returns how many (at least 1), TL_AGAIN (push more),
 * or TL_EOF. A batch ends early if the process or the encoding mode changes. TL_BAD as
 * tl_stf_reader_next(), after the last complete instruction has been returned; also for a trace
 * without a start address (no FORCE_PC). TL_UNSUPPORTED: a transaction trace.
 */
int tl_stf_insns_read(struct tl_stf_insns *insns, struct tl_stf_insn *out, size_t cap,
                      struct tl_fail *fail);

/* Number (from 0) of the next instruction that tl_stf_insns_read() will return. */
uint64_t tl_stf_insns_at(const struct tl_stf_insns *insns);
/* State of the batch that the last tl_stf_insns_read() returned. */
const struct tl_stf_state *tl_stf_insns_state(const struct tl_stf_insns *insns);
const struct tl_stf_header *tl_stf_insns_header(const struct tl_stf_insns *insns);

/*
 * Seek to instruction `at` (from 0), in an object opened with a source. Fast with a chunk index,
 * otherwise only forward, by reading. After an indexed seek the mode is unknown and the process is
 * the header's, until the trace reports them. Returns TL_NOTFOUND: there are fewer instructions;
 * TL_UNSUPPORTED: backward without an index.
 */
TL_MUST_USE int tl_stf_insns_seek(struct tl_stf_insns *insns, uint64_t at, struct tl_fail *fail);

/* ---- contents of a group ------------------------------------------------------------------ */

/* Common initial part of struct tl_stf_insns. Private. */
struct tl_stf_insns_front {
    struct tl_stf_layout layout;
};

/* The records of its group (stf/group.h). Valid as long as the instruction's group. */
static inline struct tl_stf_group tl_stf_insn_group(const struct tl_stf_insns *insns,
                                                    const struct tl_stf_insn *insn)
{
    struct tl_stf_group group;
    group.rest.p = insn->group;
    group.rest.n = insn->group_size;
    group.shape = insn->shape;
    group.layout = ((const struct tl_stf_insns_front *)(const void *)insns)->layout;
    return group;
}

/* tl_stf_insn_next() for arbitrary groups. Private. */
uint64_t tl_stf_insn_next_any(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn);

/* Address of the next instruction executed: the target if it has one, else the sequentially next
 * address. */
static inline uint64_t tl_stf_insn_next(const struct tl_stf_insns *insns,
                                        const struct tl_stf_insn *insn)
{
    if (!(insn->flags & TL_STF_TAKEN))
        return insn->pc + insn->size;
    if (insn->shape) /* in these shapes the target is the first record */
        return tl_le64(insn->group + 1);
    return tl_stf_insn_next_any(insns, insn);
}

/*
 * Get the instruction's bytes in memory order (up to 16), as described in docs/stf.md for the
 * trace's ISA: micro-ops hold the bytes of instructions that are not 2 or 4 bytes long. Returns
 * their number.
 */
uint32_t tl_stf_insn_bytes(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn,
                           uint8_t out[TL_AT_LEAST(16)]);

TL_C_END

#endif
