/* SPDX-License-Identifier: MIT */
/*
 * Instructions out of an STF stream: address, encoding, and on demand all that their group of
 * records tells (memory accesses, registers, events, page walks).
 *
 * The group is not decoded until asked for, which is what makes this fast. Not thread-safe.
 */
#ifndef TL_STF_INSNS_H
#define TL_STF_INSNS_H

#include "stf/group.h"
#include "stf/reader.h"

TL_C_BEGIN

enum tl_stf_insn_flag {
    TL_STF_TAKEN = 1,   /* an INST_PC_TARGET or EVENT_PC_TARGET: the flow goes elsewhere */
    TL_STF_FORCED = 2,  /* a FORCE_PC: does not follow from the instruction before */
    TL_STF_MEMORY = 4,  /* has memory accesses (of the core or of a bus master) */
    TL_STF_EVENTS = 8,  /* has EVENT records, or a target of one */
    TL_STF_OTHERS = 16, /* has registers, page walks, micro-ops, comments, … */
    TL_STF_HEADLESS =
        32 /* its group was longer than TL_STF_GROUP_MAX: the first records are gone */
};

#define TL_STF_GROUP_MAX    (UINT32_C(4) << 20) /* bytes of a group that are kept */
#define TL_STF_MODE_UNKNOWN 0xff

struct tl_stf_insn {
    uint64_t pc;
    const uint8_t *group; /* its records, the closing one last; borrowed until the next call */
    uint32_t group_size;  /* bytes */
    uint32_t opcode;
    uint8_t size;  /* 2 or 4: bytes of the closing record's opcode */
    uint8_t flags; /* enum tl_stf_insn_flag */
    uint8_t mode;  /* 0 U, 1 S, 2 H, 3 M as the last MODE_CHANGE before it said, or unknown */
    uint8_t shape; /* private: of its group (stf/group.h) */
};

/* What holds for all instructions of a batch. */
struct tl_stf_state {
    uint32_t tgid, tid, asid;
    bool has_process; /* a PROCESS_ID_EXT was seen */
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
 * The next instructions, at most `cap`: how many (at least 1), TL_AGAIN (push more), or TL_EOF.
 * A batch ends early where the process or the encoding mode changes. TL_BAD as
 * tl_stf_reader_next(), delivered behind the last whole instruction; also a trace that never
 * says where it begins (no FORCE_PC). TL_UNSUPPORTED: a transaction trace.
 */
int tl_stf_insns_read(struct tl_stf_insns *insns, struct tl_stf_insn *out, size_t cap,
                      struct tl_fail *fail);

/* Number (from 0) of the next instruction that tl_stf_insns_read() will return. */
uint64_t tl_stf_insns_at(const struct tl_stf_insns *insns);
/* Of the batch that the last tl_stf_insns_read() returned. */
const struct tl_stf_state *tl_stf_insns_state(const struct tl_stf_insns *insns);
const struct tl_stf_header *tl_stf_insns_header(const struct tl_stf_insns *insns);

/*
 * Go to instruction `at` (from 0), of an object that was opened with a source. Fast through a
 * chunk index, else only forward, by reading. Behind a jump by the index the mode is unknown and
 * the process is the header's, until the trace says more. TL_NOTFOUND: there are fewer
 * instructions. TL_UNSUPPORTED: backward without an index.
 */
TL_MUST_USE int tl_stf_insns_seek(struct tl_stf_insns *insns, uint64_t at, struct tl_fail *fail);

/* ---- what a group holds ------------------------------------------------------------------ */

/* What a struct tl_stf_insns begins with. Private. */
struct tl_stf_insns_front {
    struct tl_stf_layout layout;
};

/* The records of its group (stf/group.h). Valid as long as the instruction's group is. */
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

/* The function below, of a group of any records. */
uint64_t tl_stf_insn_next_any(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn);

/* Where the flow goes behind the instruction: its target if it has one, else the next address. */
static inline uint64_t tl_stf_insn_next(const struct tl_stf_insns *insns,
                                        const struct tl_stf_insn *insn)
{
    if (!(insn->flags & TL_STF_TAKEN))
        return insn->pc + insn->size;
    if (insn->shape) /* then the target is the first record */
        return tl_le64(insn->group + 1);
    return tl_stf_insn_next_any(insns, insn);
}

/*
 * The instruction's bytes in memory order (up to 16) as docs/stf.md says for the trace's ISA:
 * micro-ops hold the bytes of instructions that are not 2 or 4 bytes long. Returns their number.
 */
uint32_t tl_stf_insn_bytes(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn,
                           uint8_t out[TL_AT_LEAST(16)]);

TL_C_END

#endif
